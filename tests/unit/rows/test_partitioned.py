"""Rows in several parts answer as the same rows in one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dpadmm.errors import QueryRefused
from dpadmm.privacy.questions import SecondMoment
from dpadmm.problem.losses import Logistic, Softmax
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from dpadmm.rows.partitioned import FAN_IN, LocalParts, PartitionedRows, added
from dpadmm.rows.protocol import Visited
from tests.asking import EVERY_ROW
from tests.unit.rows.questions import RAW, RNG, D, N, questions, same

SPLITS = {"one": [N], "three": [30, 30, 31], "uneven": [1, 80, 10], "many": [7] * 13}


def tables(outputs, split, form=np.asarray, weighted=False):
    """The same rows whole and in parts."""
    loss = Logistic() if outputs == 1 else Softmax(outputs)
    target = RNG.choice([-1.0, 1.0], N) if outputs == 1 else RNG.integers(0, outputs, N)
    weights = RNG.uniform(size=N) if weighted else None

    def rows(part):
        some = None if weights is None else weights[part]
        return LocalRows(PackedRows.of(RowMap(2.0, True), form(RAW[part])), target[part], loss, 2.0, some)

    ends = np.cumsum(split)
    parts = [rows(slice(end - size, end)) for end, size in zip(ends, split, strict=True)]
    return rows(slice(None)), PartitionedRows(LocalParts(parts), split, D + 1, outputs)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("split", SPLITS)
def test_every_question_has_the_same_answer(split, outputs, form, weighted):
    whole, parts = tables(outputs, SPLITS[split], form, weighted)
    assert (parts.n_rows, parts.space.n_features, parts.space.point_shape) == (
        whole.n_rows,
        whole.space.n_features,
        whole.space.point_shape,
    )
    for name, ask in questions(outputs):
        if not (name == "below" and weighted):
            same(ask(whole), ask(parts))


def test_parts_can_be_prepared_but_not_visited():
    _, parts = tables(1, SPLITS["three"])
    assert not isinstance(parts, Visited)


def test_adding_leaves_the_answers_alone():
    answers = [np.ones(2) for _ in range(FAN_IN)]
    assert added(answers).tolist() == [FAN_IN, FAN_IN]
    assert answers[0].tolist() == [1.0, 1.0]


def test_bare_rows_hold_no_table_and_know_its_shape():
    whole, _ = tables(1, SPLITS["one"])
    bare = whole.bare()
    assert bare._X.size == 0
    assert bare._X.base is None
    same(bare.holding(RAW).ask(SecondMoment(), (), EVERY_ROW), whole.ask(SecondMoment(), (), EVERY_ROW))
    with pytest.raises(QueryRefused):
        bare.holding(RAW[1:])
