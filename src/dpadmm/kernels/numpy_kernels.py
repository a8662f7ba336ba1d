"""The kernels in NumPy: what they mean, what they are tested against, and the path of fits too short to compile for.

A *table* is the rows as the user gave them, with what is done to them on the way: the mapped row i is

    factorᵢ · ((clip(xᵢ, lower, upper) − lower)·inverse, 1)

without the clip where `lower` is None. Rows of factor zero contribute nothing and may hold anything.

What a kernel computes goes into its last argument: compiled ones take longer to hand over an array of their own than
NumPy takes to make one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_solve_banded
from scipy.special import expit

from dpadmm.kernels.clipping import clip_slopes
from dpadmm.kernels.loss_codes import HUBER, HUBERISED_HINGE, LOGISTIC, SOFTMAX

Array = NDArray[np.float64]
Vector = NDArray[Any] | None

PARALLEL = False
"""NumPy leaves threads to its BLAS."""

PAIR_COST = 256
"""Of a product of two stored entries in `sparse_gram`, in products of a dense block."""

NEGLIGIBLE_EXPONENT = 40.0

BLOCK_ENTRIES = 1 << 18
"""Entries of a table handled together: few enough to stay in cache between the two passes over them."""


def dense_sum(
    X: NDArray[Any],
    lower: Vector,
    upper: Vector,
    inverse: Vector,
    factors: Array,
    norms: Array,
    target: NDArray[Any],
    rows: NDArray[np.intp] | None,
    weights: Vector,
    start: int,
    stop: int,
    points: NDArray[Any],
    anchors: NDArray[Any] | None,
    gradient_clip: float,
    clip: float,
    code: int | Callable[[Array, Array], Array],
    parameter: float,
    total: Array,
) -> None:
    """Σ weight · clip(gradient) over the rows number `start` to `stop`, or over those of `rows`.

    Parameters
    ----------
    X, lower, upper, inverse, factors
        The table.
    norms : (n,)
        Norms by which contributions are measured.
    target : (columns, n)
        What the loss compares margins with, in float64 or int8.
    rows, weights : (batch,) or None
        Row numbers of a mini-batch, and a 0/1 weight each.
    points : (outputs, d + 1)
        Where the gradient is taken, in the precision of X; the last entry belongs to the constant of the row.
    anchors : like points, or None
        Sum clip(clip(gradient at point) − clip(gradient at anchor)) instead, the inner clips at `gradient_clip`.
    gradient_clip, clip : float
        Largest norms of one row's contribution.
    code, parameter
        The loss (`kernels.loss_codes`), and its constant. Here a slope function will do, too.
    total : (outputs, d + 1) float64
        Where the sum goes, whatever it holds.
    """
    total.fill(0.0)
    # One place for all blocks: fresh megabytes for each would cost more than the products.
    room = np.empty((min(stop - start, max(1, BLOCK_ENTRIES // max(1, X.shape[1]))), X.shape[1]))
    for block, weight in _blocks(rows, weights, start, stop, X.shape[1]):
        # `take` copies whole rows; an index looks at each entry's place.
        taken = X[block] if rows is None else X.take(block, axis=0)
        mapped = _mapped_dense(taken, lower, upper, inverse, factors[block], room)
        margin = factors[block, None] * (products(mapped, points[:, :-1]) + points[:, -1])
        there = None if anchors is None else factors[block, None] * (products(mapped, anchors[:, :-1]) + anchors[:, -1])
        slopes = _coefficients(margin, there, target[:, block].T, norms[block], gradient_clip, clip, code, parameter)
        slopes = _weighed(slopes, factors[block], weight)
        total[:, :-1] += slopes.T @ mapped
        total[:, -1] += slopes.sum(axis=0)


def dense_batch(
    X: NDArray[Any],
    facts: Array,
    rows: NDArray[np.intp],
    x: Array,
    clip: float,
    code: int,
    parameter: float,
    total: Array,
) -> None:
    """`dense_sum` over a mini-batch of a table without bounds at one vector: fewer arguments to hand over.

    `facts` are (n, 3): factor, norm and target of a row side by side, so that a row drawn at random brings one cache
    line of them and not three. `x` and `total` are (d + 1,) float64.
    """
    point, out, stop = x[None].astype(X.dtype), total[None], len(rows)
    known = (facts[:, 0], facts[:, 1], facts[:, 2:].T)
    dense_sum(X, None, None, None, *known, rows, None, 0, stop, point, None, clip, clip, code, parameter, out)


def person_means(
    X: NDArray[Any],
    lower: Vector,
    upper: Vector,
    inverse: Vector,
    factors: Array,
    target: NDArray[Any],
    rows: NDArray[np.intp],
    ends: NDArray[np.intp],
    shares: Array,
    points: Array,
    code: int | Callable[[Array, Array], Array],
    parameter: float,
    means: Array,
) -> None:
    """Σ share · gradient over the rows of each person, not clipped, for a loss of one output.

    A mean is a function of the rows of its person and of their order, to the last bit.

    Parameters
    ----------
    X, lower, upper, inverse, factors, target, code, parameter
        As in `dense_sum`.
    rows, shares : (m,)
        Rows of the table, person after person, and what each counts for.
    ends : (persons + 1,)
        Where the rows of each person begin and end among them.
    points : (points, d + 1) float64
        Where gradients are taken.
    means : (persons, points, d + 1) float64
        Where the means go, whatever it holds.
    """
    mapped = _mapped_dense(
        X.take(rows, axis=0), lower, upper, inverse, factors[rows], np.empty((len(rows), X.shape[1]))
    )
    margin = factors[rows, None] * (products(mapped, points[:, :-1]) + points[:, -1])
    places, label = np.arange(len(rows)), target[:, rows].T
    for k in range(len(points)):
        slopes = _slopes(margin[:, k : k + 1], label, code, parameter)[:, 0]
        weights = np.where(np.isfinite(slopes), slopes, 0.0) * factors[rows] * shares
        chosen = sparse.csr_matrix((weights, places, ends), shape=(len(ends) - 1, len(rows)))
        means[:, k, :-1] = chosen @ mapped
        means[:, k, -1] = chosen @ np.ones(len(rows))


def sparse_sum(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    upper: Vector,
    inverse: Vector,
    factors: Array,
    norms: Array,
    target: NDArray[Any],
    rows: NDArray[np.intp] | None,
    weights: Vector,
    start: int,
    stop: int,
    points: Array,
    anchors: Array | None,
    gradient_clip: float,
    clip: float,
    code: int | Callable[[Array, Array], Array],
    parameter: float,
    total: Array,
) -> None:
    """`dense_sum` for CSR rows with lower bounds of zero; points and the sum are (d + 1, outputs)."""
    features = len(points) - 1
    table = sparse.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, features), copy=False)
    total.fill(0.0)
    for block, weight in _blocks(rows, weights, start, stop, max(1, len(data) // max(1, len(factors)))):
        mapped = _mapped_sparse(table[block], upper, inverse, factors[block])
        margin = factors[block, None] * (mapped @ points[:-1] + points[-1])
        there = None if anchors is None else factors[block, None] * (mapped @ anchors[:-1] + anchors[-1])
        slopes = _coefficients(margin, there, target[:, block].T, norms[block], gradient_clip, clip, code, parameter)
        slopes = _weighed(slopes, factors[block], weight)
        total[:-1] += mapped.T @ slopes
        total[-1] += slopes.sum(axis=0)


def sparse_gram(data: Array, indices: NDArray[Any], indptr: NDArray[Any], total: Array) -> None:
    """Lower triangle of Σ row rowᵀ over CSR rows with sorted indices; zeros above it."""
    rows = sparse.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, len(total)), copy=False)
    total[...] = np.tril((rows.T @ rows).toarray())


def normals(generator: np.random.Generator, count: int) -> Array:
    """Independent standard normals; the compiled kernel makes the same of the same words, to rounding."""
    return generator.standard_normal(count)


def granular(total: Array, noise: Array, grid: float, deviation: float, denominator: float, answer: Array) -> None:
    """answer ← (R(deviation · noise) + R(total)) / denominator, R rounding to multiples of `grid`, a power of two.

    Nothing but the two roundings and the last product rounds: the compiled kernel has the same bits.
    """
    np.multiply(noise, deviation / grid, out=answer)
    np.rint(answer, out=answer)
    answer += on_grid(total, grid)
    answer += 0.0  # a zero is released without its sign, which would be that of what was rounded to zero
    answer *= grid / denominator


def on_grid(values: Array, grid: float) -> Array:
    """Values in whole units of a power of two."""
    counts = values / grid
    return np.rint(counts, out=counts)


def ring(g: Array, decay: float, gain: float, smoothed: Array) -> None:
    """smoothed ← gain · (1 − wR)⁻¹(1 − wR⁻¹)⁻¹ g along the first axis, R the cyclic shift and w = e^(−decay)."""
    forward = _periodic_filter(g, decay)
    np.multiply(gain, _periodic_filter(forward[::-1], decay)[::-1], out=smoothed)


def visits(
    rows: Array,
    norms: Array,
    target: Array,
    weights: Array,
    noise: Array,
    x: Array,
    dual: Array,
    A: Any,
    At: Any,
    offset: Vector,
    ridge: Array,
    bands: Array,
    threshold: Array | Callable[[Array, float], Array],
    stiffness: float,
    step: float,
    beta: float,
    clip: float,
    grid: float,
    code: int,
    parameter: float,
) -> tuple[Array, Array]:
    """(x, λ) after one iteration of noisy gradient ADMM for each row, in their order.

    Parameters
    ----------
    rows, norms, target, weights : (m, d), (m,), (m,), (m,)
        Mapped rows in float64, their norms, targets, and what their clipped gradients are multiplied by.
    noise : (m, d)
        Added to x after each row; whole multiples of `grid`, and then so is x.
    x, dual : (d,), (p,)
        The state; left as it is.
    A, At : (data, indices, starts) or None
        A and its transpose in CSR; None for y = the first entries of x.
    offset : (p,) or None
        c of Ax − y = c.
    ridge : (d,)
        Public ridge of each coefficient.
    bands : (d, width + 1)
        Cholesky factor of I + ηβAᵀA; row j holds column j from the diagonal downwards.
    threshold, stiffness : (p,), float
        Of an entrywise prox. Here a prox function will do, too.
    step, beta, clip, grid : float
        η, β, the largest norm of one row's gradient, and the power of two to whose multiples x is rounded.
    """
    d, p = len(x), len(dual)
    pull = _constraint(A, p, d)
    push = None if pull is None else pull.T
    width, diagonal = bands.shape[1], bands[:, 0] ** 2
    for k in range(len(rows)):
        applied = x[:p] if pull is None else pull @ x
        if offset is not None:
            applied = applied - offset
        v = applied + dual
        if callable(threshold):
            y = threshold(v, 1.0 / beta)
        else:
            cut = threshold / beta
            y = (v - np.clip(v, -cut, cut)) / (1.0 + stiffness / beta)
        dual = v - y
        back = y - dual if offset is None else y + offset - dual
        margin = np.array([[rows[k] @ x]])
        slope = _coefficients(margin, None, target[k : k + 1, None], norms[k : k + 1], clip, clip, code, parameter)
        moved = x - step * (weights[k] * slope[0, 0] * rows[k] + ridge * x)
        if push is None:
            moved[:p] += step * beta * back
        else:
            moved += step * beta * (push @ back)
        solved = moved / diagonal if width == 1 else cho_solve_banded((bands.T, True), moved, check_finite=False)
        x = np.rint(solved / grid) * grid + noise[k]
    return x, dual


def tail(
    before: Array,
    gradient: Array,
    features: int,
    constraints: int,
    outputs: int,
    A: Any,
    At: Any,
    offset: Vector,
    ridge: Array,
    threshold: Array,
    stiffness: float,
    step: float,
    beta: float,
    rate: float,
    momentum: float,
    weight: float,
    smoothed: int,
    decay: float,
    gain: float,
    y_first: bool,
    after: Array,
) -> None:
    """One ADMM step after its gradient.

        y ← prox(Ax − c + λ)                          first if `y_first`, else after x
        v ← momentum·v + S(gradient + ridge·x + β Aᵀ(Ax − y − c + λ)),  x ← x − step·v
        λ ← λ + rate·(Ax − y − c);  sums ← sums + weight·(x, y, λ)

    Parameters
    ----------
    before : (3d + 4m)·outputs
        x, y, λ, velocity and the sums of x, y, λ, one after another. d = `features`, m = `constraints`.
    A, At : (data, indices, indptr) or None
        CSR of A and of its transpose; None stands for [I 0].
    offset : (m·outputs,) or None
        c.
    ridge : (d·outputs,)
        Public quadratic.
    threshold, stiffness : (m·outputs,), float
        prox(v) = soft_threshold(v, threshold/β) / (1 + stiffness/β).
    smoothed : int
        How many of the first features lie on the ring of `ring`.
    after : like before
        Where the state after the step goes.
    """
    d, m = features, constraints
    blocks, at = [], 0
    for size in (d, m, m, d, d, m, m):
        blocks.append(before[at : at + size * outputs].reshape(size, outputs))
        at += size * outputs
    x, y, dual, velocity, *sums = blocks
    matrix, transposed = _constraint(A, m, d), _constraint(At, d, m)
    pull = 0.0 if offset is None else offset.reshape(m, outputs)

    def applied() -> Array:
        return np.asarray((x[:m] if matrix is None else matrix @ x) - pull)

    def auxiliary() -> Array:
        v, cut = applied() + dual, threshold.reshape(m, outputs) / beta
        return np.asarray((v - np.clip(v, -cut, cut)) / (1 + stiffness / beta))

    if y_first:
        y = auxiliary()
    residual = applied() - y + dual
    pulled = np.zeros_like(x)
    pulled[: m if matrix is None else d] = residual if matrix is None else transposed @ residual
    direction = gradient.reshape(d, outputs) + (ridge.reshape(d, outputs) * x + beta * pulled)
    if smoothed:
        ring(direction[:smoothed].copy(), decay, gain, direction[:smoothed])
    velocity = momentum * velocity + direction
    x = x - step * velocity
    if not y_first:
        y = auxiliary()
    dual = dual + rate * (applied() - y)
    if weight:
        sums = [total + weight * block for total, block in zip(sums, (x, y, dual), strict=True)]
    np.concatenate([block.ravel() for block in (x, y, dual, velocity, *sums)], out=after)


def plain_tail(
    before: Array,
    gradient: Array,
    ridge: Array,
    threshold: Array,
    stiffness: float,
    step: float,
    beta: float,
    rate: float,
    momentum: float,
    weight: float,
    y_first: bool,
    after: Array,
) -> None:
    """`tail` for A = [I 0], c = 0 and no ring: fewer arguments to hand over, and outputs make no difference."""
    sizes, rule = (ridge.size, threshold.size, 1), (step, beta, rate, momentum, weight)
    tail(before, gradient, *sizes, None, None, None, ridge, threshold, stiffness, *rule, 0, 1.0, 1.0, y_first, after)


def _constraint(parts: Any, rows: int, columns: int) -> Any:
    return None if parts is None else sparse.csr_array(parts, shape=(rows, columns))


def _periodic_filter(a: Array, decay: float) -> Array:
    """Solve c_i = a_i + w·c_{i−1} around the ring."""
    from scipy.signal import lfilter

    d, w = a.shape[0], math.exp(-decay)
    reach = min(d, math.ceil(NEGLIGIBLE_EXPONENT / decay))
    powers = np.exp(-decay * np.arange(reach))
    last = np.tensordot(powers, a[::-1][:reach], axes=1) / -math.expm1(-decay * d)
    filtered: Array = lfilter([1.0], [1.0, -w], a, axis=0, zi=w * last[None])[0]
    return filtered


def _blocks(
    rows: NDArray[np.intp] | None, weights: Vector, start: int, stop: int, width: int
) -> Iterator[tuple[Any, Vector]]:
    """Row numbers, a slice or an array, with their weights."""
    length = max(1, BLOCK_ENTRIES // max(1, width))
    for first in range(start, stop, length):
        part = slice(first, min(first + length, stop))
        yield (part if rows is None else rows[part]), (None if weights is None else weights[part])


def products(rows: Array, points: NDArray[Any]) -> Array:
    """⟨row, point⟩ for each row and point, to the same last bit wherever the row stands.

    BLAS rounds a row by the group it falls into: then taking one row away would move the slopes of others. NumPy adds
    the entries of a long row in another order where the row is alone.
    """
    shown = np.concatenate([rows, rows]) if len(rows) == 1 else rows
    found = [np.einsum("ij,j->i", shown, point.astype(np.float64, copy=False)) for point in points]
    return np.stack(found, axis=1)[: len(rows)]


def _mapped_dense(
    block: NDArray[Any], lower: Vector, upper: Vector, inverse: Vector, factors: Array, room: Array
) -> Array:
    """The mapped rows but for their factors, in float64, written over `room`."""
    mapped = room[: len(block)]
    mapped[...] = block
    if not factors.all():
        mapped[factors == 0] = 0
    if lower is not None and upper is not None and inverse is not None:
        np.clip(mapped, lower, upper, out=mapped)
        mapped -= lower
        mapped *= inverse
    return mapped


def _mapped_sparse(block: Any, upper: Vector, inverse: Vector, factors: Array) -> Any:
    data = block.data.astype(np.float64)
    if not factors.all():
        data[np.repeat(factors == 0, np.diff(block.indptr))] = 0
    if upper is not None and inverse is not None:
        data = np.clip(data, 0, upper[block.indices]) * inverse[block.indices]
    return sparse.csr_matrix((data, block.indices, block.indptr), shape=block.shape, copy=False)


def _coefficients(
    margin: NDArray[Any],
    there: NDArray[Any] | None,
    target: NDArray[Any],
    norms: Array,
    gradient_clip: float,
    clip: float,
    code: int | Callable[[Array, Array], Array],
    parameter: float,
) -> Array:
    """Clipped slopes (rows, outputs), or clipped differences of clipped slopes."""
    slopes = _slopes(margin, target, code, parameter)
    if there is not None:
        back = _clipped(_slopes(there, target, code, parameter), norms, gradient_clip)
        slopes = _clipped(slopes, norms, gradient_clip) - back
    return _clipped(slopes, norms, clip)


def _clipped(slopes: NDArray[Any], norms: Array, clip: float) -> Array:
    if slopes.shape[1] > 1:
        return clip_slopes(slopes, norms, clip)
    return clip_slopes(slopes[:, 0], norms, clip)[:, None]


def _slopes(
    margin: NDArray[Any], target: NDArray[Any], code: int | Callable[[Array, Array], Array], parameter: float
) -> NDArray[Any]:
    if callable(code):
        squeezed = [values[:, 0] if values.shape[1] == 1 else values for values in (margin, target)]
        return np.reshape(code(*squeezed), margin.shape)
    if code == LOGISTIC:
        return np.asarray(-target * expit(-margin * target))
    if code == HUBERISED_HINGE:
        return np.asarray(-target * np.clip(1 + parameter - margin * target, 0, 2 * parameter) / (2 * parameter))
    if code == SOFTMAX:
        weight = np.exp(margin - margin.max(axis=1, keepdims=True))
        slopes: NDArray[Any] = weight / weight.sum(axis=1, keepdims=True)
        slopes[np.arange(len(slopes)), target[:, 0].astype(np.intp)] -= 1
        return slopes
    error = margin - target
    return np.asarray(np.clip(error, -parameter, parameter) if code == HUBER else error)


def _weighed(slopes: Array, factors: Array, weights: Vector) -> Array:
    return slopes * (factors if weights is None else factors * weights)[:, None]
