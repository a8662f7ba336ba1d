"""What tests ask: sums over all rows, sums of several parts taken apart again, and oracles with another mechanism."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np

from dpadmm.oracles.gate import Gate
from dpadmm.oracles.mechanisms import Granular
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.questions import CountsBelow, Space
from dpadmm.privacy.sampling import Batch
from dpadmm.rows.lattice_sum import LatticeSum

EVERY_ROW = Batch(None)


def moment_sums(rows, statistic):
    """Σ s ⊗ a and √balance · Σ a aᵀ."""
    total, d = rows.ask(statistic, (), EVERY_ROW), rows.space.n_features
    split = math.prod(rows.space.point_shape)
    return _part(total, slice(0, split), rows.space.point_shape), _part(total, slice(split, None), (d, d))


def row_moment_sums(rows, statistic):
    """Σ s ⊗ a, √mean · Σ a, √diagonal · Σ a∘a, √length · Σ ‖a‖²; empty where the weight is zero."""
    total, d = rows.ask(statistic, (), EVERY_ROW), rows.space.n_features
    weights = (1.0, statistic.mean, statistic.diagonal, statistic.length)
    shapes = (rows.space.point_shape, (d,), (d,), (1,))
    parts, start = [], 0
    for shape, weight in zip(shapes, weights, strict=True):
        shape = shape if weight > 0 else (0,)
        parts.append(_part(total, slice(start, start + math.prod(shape)), shape))
        start += math.prod(shape)
    return tuple(parts)


def below_sums(rows, thresholds):
    """Σ (1[x ≤ t] − ½) for each row of thresholds and each feature."""
    levels, features = np.shape(thresholds)
    return rows.ask(CountsBelow(features, levels), (thresholds,), EVERY_ROW)


def _part(total, places, shape):
    if isinstance(total, LatticeSum):
        return LatticeSum(total.counts[places].reshape(shape), total.units[places].reshape(shape))
    return total[places].reshape(shape)


def answering(total, n_rows, shape=None):
    """Rows of which every sum is the same."""
    shape = total.shape if shape is None else shape
    return SimpleNamespace(n_rows=n_rows, space=Space(shape, shape[0]), ask=lambda question, at, batch: total)


def private(rows, plan, streams, mechanism=None):
    """An oracle over the rows, with a mechanism of the test's own if it has one: a subclass of `Granular`."""
    made = None if mechanism is None else mechanism(plan, rows.space.n_features, streams.noise)
    return PrivateOracle(rows, Gate(plan), streams, made)


def private_with(mechanism):
    """`private` with this mechanism."""
    return partial(private, mechanism=mechanism)


def less_noise(factor):
    """The mechanism with so many times less noise than planned."""

    class Quieter(Granular):
        def release(self, total, query, clip, gate):
            return super().release(total, replace(query, noise_multiplier=query.noise_multiplier / factor), clip, gate)

    return Quieter
