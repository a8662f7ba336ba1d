"""One visit of a hidden pass in decimal arithmetic of 80 digits: what the proof speaks of, for comparison."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np

from dpadmm.kernels.clipping import SAFETY
from dpadmm.problem import L1, Box, ElasticNet, GroupL2, Huber, HuberisedHinge, Logistic, SquaredL2, Zero

DIGITS = 80


def decimals(values):
    return np.array([Decimal(float(value)) for value in np.ravel(values)], dtype=object).reshape(np.shape(values))


def length(v):
    return sum((x * x for x in v), Decimal(0)).sqrt()


def exact_visit(program, state, row, norm, target, weight, clip):
    """(x, λ) before noise, from a state of decimals."""
    with localcontext(prec=DIGITS, Emin=-99999, Emax=99999):
        problem, (x, dual) = program.problem, state
        step, beta = Decimal(program.step), Decimal(program.beta)
        constraint = problem.constraint
        A = decimals(np.asarray(constraint.A.toarray() if hasattr(constraint.A, "toarray") else constraint.A))
        c = decimals(np.zeros(len(A)) if constraint.offset is None else constraint.offset)
        v = A.dot(x) - c + dual
        y = _prox(problem.regularizer, v, 1 / beta)
        after = v - y
        row = decimals(row)
        gradient = Decimal(weight) * _slope(problem.loss, row.dot(x), Decimal(target), norm, clip) * row
        gradient = gradient + decimals(problem.ridge_weights) * x
        right = x - step * gradient + step * beta * A.T.dot(y + c - after)
        metric = step * beta * A.T.dot(A) + decimals(np.eye(len(x)))
        return _solved(metric, right), after


def distance(program, one, two):
    """Of docs/proofs/iteration.md, in decimals."""
    with localcontext(prec=DIGITS, Emin=-99999, Emax=99999):
        x, dual = one[0] - two[0], one[1] - two[1]
        A = program.problem.constraint.A
        shifted = dual + decimals(np.asarray(A.toarray() if hasattr(A, "toarray") else A)).dot(x)
        coupling = Decimal(program.step) * Decimal(program.beta)
        return (length(x) ** 2 + coupling * length(shifted) ** 2).sqrt()


def _slope(loss, margin, target, norm, clip):
    if isinstance(loss, Logistic):
        slope = -target / (1 + (margin * target).exp())
    elif isinstance(loss, HuberisedHinge):
        h = Decimal(loss.h)
        slope = -target * min(max(1 + h - margin * target, Decimal(0)), 2 * h) / (2 * h)
    else:
        slope = margin - target
        if isinstance(loss, Huber):
            slope = min(max(slope, -Decimal(loss.threshold)), Decimal(loss.threshold))
    limit = Decimal(clip * SAFETY)
    cap = limit / Decimal(norm) if norm > 0 else abs(slope)
    return min(max(slope, -cap), cap)


def _prox(penalty, v, step):
    if isinstance(penalty, Zero):
        return v
    if isinstance(penalty, Box):
        return np.array([min(max(x, Decimal(penalty.lower)), Decimal(penalty.upper)) for x in v])
    if isinstance(penalty, GroupL2):
        y = v.copy()
        for group in penalty.groups:
            members = list(group)
            size = length(v[members])
            cut = step * Decimal(penalty.strength) * Decimal(len(members)).sqrt()
            y[members] = v[members] * (max(size - cut, Decimal(0)) / size if size else Decimal(0))
        return y
    strength = Decimal(penalty.strength)
    ratio = {L1: Decimal(1), SquaredL2: Decimal(0)}.get(type(penalty))
    ratio = Decimal(penalty.l1_ratio) if isinstance(penalty, ElasticNet) else ratio
    cut, shrink = step * strength * ratio, 1 + step * strength * (1 - ratio)
    return np.array([(x - min(max(x, -cut), cut)) / shrink for x in v])


def _solved(matrix, right):
    """Gaussian elimination; positive definite matrices need no pivots."""
    matrix, right = matrix.copy(), right.copy()
    for j in range(len(right)):
        for i in range(j + 1, len(right)):
            factor = matrix[i, j] / matrix[j, j]
            matrix[i] = matrix[i] - factor * matrix[j]
            right[i] = right[i] - factor * right[j]
    for j in range(len(right) - 1, -1, -1):
        right[j] = (right[j] - matrix[j, j + 1 :].dot(right[j + 1 :])) / matrix[j, j]
    return right
