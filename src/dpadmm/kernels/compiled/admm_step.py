"""A release, and what follows it: smoothing on a ring, and the rest of an ADMM step, each in one call.

What is inlined stays in this file. Arrays of several outputs are read row by row as one vector.
"""

from __future__ import annotations

import numpy as np

from dpadmm.kernels.jit import kernel

U = np.uintp
NEGLIGIBLE_EXPONENT = 40.0


@kernel()
def granular(total, noise, grid, deviation, denominator, answer):
    sums, normals, out = total.ravel(), noise.ravel(), answer.reshape(answer.size)
    scale, unit = deviation / grid, grid / denominator
    for k in range(U(out.size)):
        # A zero is released without its sign, which would be that of what was rounded to zero.
        out[k] = (np.rint(normals[k] * scale) + np.rint(sums[k] / grid) + 0.0) * unit


@kernel("contract", inline=True)
def _four(values, at, stride):
    return values[U(at)], values[U(at + stride)], values[U(at + 2 * stride)], values[U(at + 3 * stride)]


@kernel("contract")
def _filter(values, n, stride, first, decay):
    """values_i ← values_i + w·values_{i−1} around the ring, in place; w = e^(−decay).

    Four steps at a time, so that only one product in four waits for the one before.
    """
    w = np.exp(-decay)
    w2, w3, w4 = w * w, w * w * w, w * w * w * w
    reach = min(n, int(np.ceil(NEGLIGIBLE_EXPONENT / decay)))
    begin, last = n - reach + reach % 4, 0.0
    for k in range(n - reach, begin):
        last = last * w + values[U(first + k * stride)]
    for k in range(begin, n, 4):
        a, b, c, e = _four(values, first + k * stride, stride)
        last = last * w4 + ((w3 * a + w2 * b) + (w * c + e))
    last /= -np.expm1(-decay * n)
    whole = n - n % 4
    for k in range(0, whole, 4):
        at = first + k * stride
        a, b, c, e = _four(values, at, stride)
        b1 = b + w * a
        c1 = c + w * b1
        e1 = e + w * c1
        values[U(at)] = a + w * last
        values[U(at + stride)] = b1 + w2 * last
        values[U(at + 2 * stride)] = c1 + w3 * last
        last = e1 + w4 * last
        values[U(at + 3 * stride)] = last
    for k in range(whole, n):
        last = values[U(first + k * stride)] + w * last
        values[U(first + k * stride)] = last


@kernel()
def _smooth(values, n, outputs, decay, gain):
    """S values for the first n rows, in place: once around the ring and once back."""
    for k in range(outputs):
        _filter(values, n, outputs, k, decay)
        _filter(values, n, -outputs, (n - 1) * outputs + k, decay)
    for k in range(n * outputs):
        values[k] *= gain


@kernel()
def ring(g, decay, gain, smoothed):
    smoothed[:] = g
    _smooth(smoothed.reshape(g.size), g.shape[0], g.size // g.shape[0], decay, gain)


@kernel("contract")
def _product(matrix, values, at, outputs, out):
    """out = A · values[at:], A in CSR."""
    data, indices, indptr = matrix
    for i in range(U(indptr.size - 1)):
        for k in range(outputs):
            out[i * U(outputs) + U(k)] = 0.0
        for position in range(U(indptr[i]), U(indptr[i + U(1)])):
            entry, start = data[position], U(at) + U(indices[position]) * U(outputs)
            for k in range(outputs):
                out[i * U(outputs) + U(k)] += entry * values[start + U(k)]


@kernel("contract")
def _applied(A, values, size, offset, outputs, out):
    """out = A x − c for x at the head of `values`."""
    if A is None:
        for k in range(size):
            out[k] = values[k]
    else:
        _product(A, values, 0, outputs, out)
    if offset is not None:
        for k in range(size):
            out[k] -= offset[k]


@kernel("contract")
def _auxiliary(applied, state, y, dual, size, threshold, stiffness, beta):
    """y ← prox(Ax − c + λ): shrink towards zero by threshold/β, then divide by 1 + stiffness/β."""
    scale = 1.0 / (1.0 + stiffness / beta)
    for k in range(size):
        v = applied[k] + state[dual + k]
        cut = threshold[k] / beta
        inside = min(max(v, -cut), cut)
        state[y + k] = (v - inside) * scale


@kernel("contract")
def tail(
    before,
    gradient,
    features,
    constraints,
    outputs,
    A,
    At,
    offset,
    ridge,
    threshold,
    stiffness,
    step,
    beta,
    rate,
    momentum,
    weight,
    smoothed,
    decay,
    gain,
    y_first,
    after,
):
    d, m = U(features * outputs), U(constraints * outputs)
    y, dual, velocity, sums = d, d + m, d + m + m, d + d + m + m
    for k in range(U(after.size)):
        after[k] = before[k]
    g = gradient.reshape(gradient.size)
    applied, pulled = np.empty(m), np.empty(d)
    _applied(A, after, m, offset, outputs, applied)
    if y_first:
        _auxiliary(applied, after, y, dual, m, threshold, stiffness, beta)
    residual = applied
    for k in range(m):
        residual[k] = applied[k] - after[y + k] + after[dual + k]
    if A is None:
        for k in range(m):
            pulled[k] = residual[k]
        for k in range(m, d):
            pulled[k] = 0.0
    else:
        _product(At, residual, 0, outputs, pulled)
    for k in range(d):
        pulled[k] = g[k] + (ridge[k] * after[k] + beta * pulled[k])
    if smoothed > 0:
        _smooth(pulled, smoothed, outputs, decay, gain)
    for k in range(d):
        after[velocity + k] = momentum * after[velocity + k] + pulled[k]
        after[k] -= step * after[velocity + k]
    _applied(A, after, m, offset, outputs, applied)
    if not y_first:
        _auxiliary(applied, after, y, dual, m, threshold, stiffness, beta)
    for k in range(m):
        after[dual + k] += rate * (applied[k] - after[y + k])
    if weight != 0.0:
        for k in range(d + m + m):
            after[sums + k] += weight * after[k]


@kernel()
def plain_tail(before, gradient, ridge, threshold, stiffness, step, beta, rate, momentum, weight, y_first, after):
    sizes, rule = (ridge.size, threshold.size, 1), (step, beta, rate, momentum, weight)
    tail(before, gradient, *sizes, None, None, None, ridge, threshold, stiffness, *rule, 0, 1.0, 1.0, y_first, after)
