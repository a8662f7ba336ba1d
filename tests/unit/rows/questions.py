"""Everything an oracle asks of rows, to compare one way of holding them with another."""

from __future__ import annotations

import numpy as np

from dpadmm.privacy.questions import JointMoments, RowMoments
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.spiked_map import SpikedMap

N, D = 91, 4
RNG = np.random.default_rng(0)
RAW = RNG.standard_normal((N, D)) * 10.0 ** RNG.integers(-2, 3, (N, 1))
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


def same(one, two, rtol=1e-12):
    one, two = (answer if isinstance(answer, tuple) else (answer,) for answer in (one, two))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol / 10)


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
    if outputs == 1:
        for scale in (1.0, 100.0):
            weights = scale * RNG.uniform(size=D + 1)
            yield f"curvature-{scale:g}", lambda rows, weights=weights: rows.curvature_sum(x, weights)
    yield "feature-moment", lambda rows: rows.feature_moment_sum()
    yield "below", lambda rows: rows.below_sums(np.zeros((2, D)))
    bounded = RowMap.declare(2.0, True, (0, 1), D)
    yield "remapped", lambda rows: rows.remapped(bounded).second_moment_sum()
