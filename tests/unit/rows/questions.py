"""Everything an oracle asks of rows, to compare one way of holding them with another."""

from __future__ import annotations

import numpy as np

from dpadmm.privacy.questions import (
    ClippedGradient,
    FeatureCurvature,
    FeatureMoment,
    GradientDifference,
    JointMoments,
    RowMoments,
    SecondMoment,
)
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.spiked_map import SpikedMap
from tests.asking import EVERY_ROW, below_sums, moment_sums, row_moment_sums

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
        yield f"gradient-{name}", lambda rows, batch=batch: rows.ask(ClippedGradient(0.3), (x,), batch)
        yield f"difference-{name}", lambda rows, batch=batch: rows.ask(GradientDifference(0.6), (x, anchor, 0.1), batch)
        for way, map_ in (("matrix", MATRIX), ("spiked", SPIKED)):
            yield (
                f"{way}-gradient-{name}",
                lambda rows, batch=batch, map_=map_: rows.transformed(map_).ask(ClippedGradient(0.3), (x,), batch),
            )
    moments = JointMoments(0.3, outputs, 0.5)
    yield "moments", lambda rows: moment_sums(rows, moments)
    yield "row-moments", lambda rows: row_moment_sums(rows, RowMoments(1.0, 0.1, 0.1, outputs, 0.5))
    yield "some-row-moments", lambda rows: row_moment_sums(rows, RowMoments(1.0, 0.0, 0.1, outputs, 0.5))
    yield "second-moment", lambda rows: rows.transformed(MATRIX).ask(SecondMoment(), (), EVERY_ROW)
    if outputs == 1:
        for scale in (1.0, 100.0):
            weights = scale * RNG.uniform(size=D + 1)
            yield (
                f"curvature-{scale:g}",
                lambda rows, weights=weights: rows.ask(FeatureCurvature(), (x, weights), EVERY_ROW),
            )
    yield "feature-moment", lambda rows: rows.ask(FeatureMoment(), (), EVERY_ROW)
    yield "below", lambda rows: below_sums(rows, np.zeros((2, D)))
    bounded = RowMap.declare(2.0, True, (0, 1), D)
    yield "remapped", lambda rows: rows.remapped(bounded).ask(SecondMoment(), (), EVERY_ROW)
