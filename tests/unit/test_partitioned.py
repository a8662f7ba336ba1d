"""Rows in several parts answer as the same rows in one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dpadmm.oracles.local import LocalRows
from dpadmm.oracles.partitioned import FAN_IN, LocalParts, PartitionedRows, added
from dpadmm.oracles.rows import Preparable, Visited
from dpadmm.privacy.sampling import Batch
from dpadmm.privacy.statistics import JointMoments, RowMoments
from dpadmm.problem.losses import Logistic, Softmax
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.spiked import SpikedMap

N, D = 91, 4
RNG = np.random.default_rng(0)
RAW = RNG.standard_normal((N, D)) * 10.0 ** RNG.integers(-2, 3, (N, 1))
SPLITS = {"one": [N], "three": [30, 30, 31], "uneven": [1, 80, 10], "many": [1] * N}
BATCHES = {
    "all": Batch(None),
    "weighted": Batch(None, RNG.uniform(size=N)),
    "drawn": Batch(RNG.permutation(N)[:40]),
    "padded": Batch(RNG.permutation(N)[:40], RNG.integers(0, 2, 40).astype(float)),
    "one-part": Batch(np.array([3, 2])),
    "empty": Batch(np.zeros(0, dtype=np.intp)),
}
MATRIX = RNG.standard_normal((D + 1, D + 1))
SPIKED = SpikedMap(RNG.uniform(0.5, 2, D + 1), RNG.standard_normal(D + 1), 3.0)


def tables(outputs, split, form=np.asarray, weighted=False):
    """The same rows whole and in parts."""
    loss = Logistic() if outputs == 1 else Softmax(outputs)
    target = RNG.choice([-1.0, 1.0], N) if outputs == 1 else RNG.integers(0, outputs, N)
    weights = RNG.uniform(size=N) if weighted else None

    def rows(part):
        some = None if weights is None else weights[part]
        return LocalRows(RowMap(2.0, True).pack(form(RAW[part])), target[part], loss, 2.0, some)

    ends = np.cumsum(split)
    parts = [rows(slice(end - size, end)) for end, size in zip(ends, split, strict=True)]
    return rows(slice(None)), PartitionedRows(LocalParts(parts), split, D + 1, outputs)


def same(one, two):
    one, two = (answer if isinstance(answer, tuple) else (answer,) for answer in (one, two))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def questions(outputs):
    x, anchor = (RNG.standard_normal((D + 1, outputs) if outputs > 1 else D + 1) for _ in range(2))
    for name, batch in BATCHES.items():
        yield f"gradient-{name}", lambda rows, batch=batch: rows.gradient_sum(x, 0.3, batch)
        yield f"difference-{name}", lambda rows, batch=batch: rows.difference_sum(x, anchor, 0.3, 0.1, batch)
        for way, map_ in (("matrix", MATRIX), ("spiked", SPIKED)):
            yield (
                f"{way}-gradient-{name}",
                lambda rows, batch=batch, map_=map_: rows.transformed(map_).gradient_sum(x, 0.3, batch),
            )
    moments = JointMoments(0.3, outputs, 0.5)
    yield "moments", lambda rows: rows.moment_sums(moments)
    yield "row-moments", lambda rows: rows.row_moment_sums(RowMoments(1.0, 0.1, 0.1, outputs, 0.5))
    yield "some-row-moments", lambda rows: rows.row_moment_sums(RowMoments(1.0, 0.0, 0.1, outputs, 0.5))
    yield "second-moment", lambda rows: rows.transformed(MATRIX).second_moment_sum()
    yield "feature-moment", lambda rows: rows.feature_moment_sum()
    yield "below", lambda rows: rows.below_sums(np.zeros((2, D)))
    bounded = RowMap.declare(2.0, True, (0, 1), D)
    yield "remapped", lambda rows: rows.remapped(bounded).second_moment_sum()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("split", SPLITS)
def test_every_question_has_the_same_answer(split, outputs, form, weighted):
    whole, parts = tables(outputs, SPLITS[split], form, weighted)
    assert (parts.n_rows, parts.n_features, parts.point_shape) == (whole.n_rows, whole.n_features, whole.point_shape)
    for name, ask in questions(outputs):
        if not (name == "below" and weighted):
            same(ask(whole), ask(parts))


def test_parts_can_be_prepared_but_not_visited():
    _, parts = tables(1, SPLITS["three"])
    assert isinstance(parts, Preparable)
    assert not isinstance(parts, Visited)


def test_adding_leaves_the_answers_alone():
    answers = [(np.ones(2), np.ones(1)) for _ in range(FAN_IN)]
    total = added(answers)
    assert total[0].tolist() == [FAN_IN, FAN_IN]
    assert answers[0][0].tolist() == [1.0, 1.0]


def test_bare_rows_hold_no_table_and_know_its_shape():
    from dpadmm.errors import QueryRefused

    whole, _ = tables(1, SPLITS["one"])
    bare = whole.bare()
    assert bare._X.size == 0
    assert bare._X.base is None
    same(bare.holding(RAW).second_moment_sum(), whole.second_moment_sum())
    with pytest.raises(QueryRefused):
        bare.holding(RAW[1:])
