"""Mean gradients of persons: their dense rows one after another, each read once."""

from __future__ import annotations

import numpy as np

from dpadmm.kernels.compiled.slopes import LARGEST, slope_at
from dpadmm.kernels.jit import kernel

U = np.uintp


@kernel(inline=True)
def _map(X, lower, upper, inverse, i, row):
    """Row i but for its factor."""
    if lower is None:
        for j in range(U(row.size)):
            row[j] = X[i, j]
    else:
        for j in range(U(row.size)):
            value = np.float64(X[i, j])
            value = value if value > lower[j] else lower[j]
            value = value if value < upper[j] else upper[j]
            row[j] = (value - lower[j]) * inverse[j]


@kernel("contract", "reassoc", inline=True)
def _dot(row, point):
    total = 0.0
    for j in range(U(row.size)):
        total += row[j] * point[j]
    return total


@kernel("contract", inline=True)
def _add(row, coefficient, mean):
    for j in range(U(row.size)):
        mean[j] += coefficient * row[j]
    mean[U(row.size)] += coefficient


@kernel()
def person_means(X, lower, upper, inverse, factors, target, rows, ends, shares, points, code, parameter, means):
    row = np.empty(X.shape[1])
    for p in range(U(ends.size - 1)):
        means[p] = 0.0
        for r in range(U(ends[p]), U(ends[p + U(1)])):
            i = U(rows[r])
            _map(X, lower, upper, inverse, i, row)
            for k in range(U(points.shape[0])):
                margin = factors[i] * (_dot(row, points[k]) + points[k, U(row.size)])
                numerator, denominator = slope_at(code, parameter, margin, target[0, i], False)
                slope = numerator / denominator
                slope = slope if abs(slope) <= LARGEST else 0.0
                _add(row, slope * factors[i] * shares[r], means[p, k])
