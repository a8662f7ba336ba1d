"""A hidden pass: one iteration of noisy gradient ADMM a row, without leaving the loop. See `reference.visits`."""

from __future__ import annotations

import numpy as np

from dpadmm.kernels.clipping import SAFETY
from dpadmm.kernels.compiled.slopes import clipped, slope_at
from dpadmm.kernels.jit import kernel


@kernel("reassoc", "contract")
def _dot(a, b):
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@kernel("contract")
def _product(matrix, v, out):
    """out = matrix v, a CSR matrix."""
    data, indices, starts = matrix
    for i in range(out.size):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += data[k] * v[indices[k]]
        out[i] = total


@kernel("contract")
def _solve(bands, v):
    """v ← (LLᵀ)⁻¹v, in place; row j of `bands` is column j of L from the diagonal downwards."""
    d, width = bands.shape
    for j in range(d):
        v[j] /= bands[j, 0]
        for i in range(1, min(width, d - j)):
            v[j + i] -= bands[j, i] * v[j]
    for j in range(d - 1, -1, -1):
        total = v[j]
        for i in range(1, min(width, d - j)):
            total -= bands[j, i] * v[j + i]
        v[j] = total / bands[j, 0]


@kernel("contract")
def visits(
    rows,
    norms,
    target,
    weights,
    noise,
    x,
    dual,
    A,
    At,
    offset,
    ridge,
    bands,
    threshold,
    stiffness,
    step,
    beta,
    clip,
    grid,
    code,
    parameter,
):
    d, p = x.size, dual.size
    x, dual = x.copy(), dual.copy()
    applied, back, pushed = np.empty(p), np.empty(p), np.zeros(d)
    scale = 1.0 / (1.0 + stiffness / beta)
    cells = 1.0 / grid
    for k in range(rows.shape[0]):
        row = rows[k]
        if A is None:
            for i in range(p):
                applied[i] = x[i]
        else:
            _product(A, x, applied)
        for i in range(p):
            shift = 0.0 if offset is None else offset[i]
            v = applied[i] - shift + dual[i]
            cut = threshold[i] / beta
            y = (v - min(max(v, -cut), cut)) * scale
            dual[i] = v - y
            back[i] = y + shift - dual[i]
        if A is None:
            for i in range(p):
                pushed[i] = back[i]
        else:
            _product(At, back, pushed)
        numerator, denominator = slope_at(code, parameter, _dot(row, x), target[k], False)
        slope = weights[k] * clipped(numerator, denominator, norms[k], clip * SAFETY)
        for j in range(d):
            x[j] += step * (beta * pushed[j] - (slope * row[j] + ridge[j] * x[j]))
        _solve(bands, x)
        for j in range(d):
            x[j] = np.rint(x[j] * cells) * grid + noise[k, j]
    return x, dual
