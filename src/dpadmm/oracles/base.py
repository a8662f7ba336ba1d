"""The barrier: queries are admitted against the plan, noised, counted, and nothing else leaves."""

from __future__ import annotations

import math
import os
import threading
from collections import Counter
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import ddot

from dpadmm import kernels
from dpadmm.errors import Diverged, PromiseBroken, QueryRefused
from dpadmm.kernels import numpy_kernels
from dpadmm.kernels.clipping import SMALLEST_CLIP
from dpadmm.privacy import arithmetic
from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.events import Event
from dpadmm.privacy.passage import NOISY_PASS, Passage
from dpadmm.privacy.plan import Plan, Query
from dpadmm.privacy.questions import (
    CentredScore,
    ClippedGradient,
    CountsBelow,
    FeatureCurvature,
    FeatureMoment,
    GradientDifference,
    HiddenWalk,
    JointMoments,
    RowMoments,
    SecondMoment,
)
from dpadmm.privacy.sampling import Batch, Everything, Permutation
from dpadmm.privacy.state_grid import Footing
from dpadmm.problem.hidden_pass_program import Program
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.randomness import Streams
from dpadmm.rows.lattice_sum import LatticeSum, Sum, joined
from dpadmm.rows.protocol import Preparable, Rows, Scored, State, Visited

Array = NDArray[np.float64]

LARGEST_POINT = 1e30
"""Queries at points of larger norm are refused: margins would overflow and a row could show itself as a NaN."""
LARGEST_SQUARE = LARGEST_POINT**2

LARGEST_CONDITION = 1e6
"""Of a change of coordinates P: sums are formed before Pᵀ, whose rounding then stays far below a clip after it."""

LARGEST_STRETCH = 1e60
"""Coordinates that stretch a row further are refused: products with a sum would overflow."""


class PrivateOracle:
    """Answers the queries of one plan, each with fresh noise, and refuses every other.

    Notes
    -----
    *Formal guarantees.* Let the rows report sums of per-record contributions of norm at most the clip they are
    given (docs/proofs/sensitivity.md, Claim 1). Then the transcript of all answers is an adaptive composition of
    exactly the Gaussian sums in `plan.event`, and so has the (ε, δ) the accountant certified for that event. The raw
    sums reach no attribute, log or exception; the only path from a sum to a caller is `release`. What finite arithmetic
    adds to this is charged or named in `docs/proofs/float.md`.

    Hidden passes are the exception to the transcript: their states stay in here, and `release_state` hands out the
    last one, once, after all planned passes. Accounting by iteration rests on nobody having seen another.
    """

    def __init__(self, rows: Rows, plan: Plan, streams: Streams) -> None:
        if rows.n_rows < 1:
            raise QueryRefused("an empty table has nothing to ask")
        if plan.arithmetic is Arithmetic.FLOATING:
            raise QueryRefused("a plan of an earlier version is not carried out; calibrate again")
        self._rows, self._plan, self._streams = rows, plan, streams
        self._is_exact = plan.arithmetic is Arithmetic.EXACT
        self._seen = rows
        self._lock, self._process = threading.Lock(), os.getpid()
        self._queries = {query.kind: query for query in reversed(plan.queries)}
        self._most_rows = arithmetic.most_rows(plan.n_rows, plan.budget.relation)
        if rows.n_rows > self._most_rows:
            raise QueryRefused("a table of far more rows than declared; declare a public number nearer to theirs")
        self._rounding = arithmetic.summation_error(self._most_rows, rows.point_shape[0])
        self._variation = 0.0
        self._sound: set[str] = set()
        self._asked: Counter[str] = Counter()
        self._performed: Counter[str] = Counter()
        self._program: Program | None = None
        self._state: State | None = None

    def gradient(self, x: Array, kind: str = "gradient") -> Array:
        """Noisy mean of the clipped row gradients at `x`."""
        with self._turn(self._seen):
            query = self._admit(kind, x)
            batch = query.sampler.draw(self._rows.n_rows, self._streams.sampling)
            return self.release(query, query.clip_norm, self._seen.gradient_sum(x, query.clip_norm, batch))

    def difference(self, x: Array, anchor: Array, clip_norm: float, kind: str = "difference") -> Array:
        """Noisy mean of clip(∇f_i(x)) − clip(∇f_i(anchor)), each difference clipped to the public `clip_norm`.

        A clip of zero, or too small for the arithmetic, answers exactly zero without reading a row; it still counts.
        """
        with self._turn(self._seen):
            query = self._admit(kind, x, anchor)
            scalable = isinstance(query.question, GradientDifference)
            if not scalable or not 0 <= clip_norm <= query.clip_norm:
                raise QueryRefused(
                    f"the plan's {kind!r} query allows a clip between 0 and {query.clip_norm:g}, if scalable"
                )
            if clip_norm < SMALLEST_CLIP:
                self._count(query)
                return np.zeros_like(x)
            batch = query.sampler.draw(self._rows.n_rows, self._streams.sampling)
            gradient_clip = query.clip_norm / 2
            total = self._seen.difference_sum(x, anchor, gradient_clip, clip_norm, batch)
            return self.release(query, clip_norm, total)

    def moments(self) -> tuple[Array, Array]:
        """Noisy means of label ⊗ row and of row rowᵀ, released as one vector; the plan says how they are weighed."""
        with self._turn():
            query = self._admit("moments")
            statistic = query.question
            if type(statistic) is not JointMoments or statistic.outputs != self._outputs:
                raise QueryRefused("the plan's moments are not those of this loss")
            correlation, second = self._rows.moment_sums(statistic)
            joint = self.release(query, query.clip_norm, joined([correlation, second]))
        split, weight = correlation.size, math.sqrt(statistic.balance)
        return joint[:split].reshape(correlation.shape).copy(), joint[split:].reshape(second.shape) / weight

    def row_moments(self) -> tuple[Array, ...]:
        """Noisy means of label ⊗ row, row, row∘row and ‖row‖², released as one vector; empty where not planned."""
        with self._turn():
            query = self._admit("moments")
            statistic = query.question
            if type(statistic) is not RowMoments or statistic.outputs != self._outputs:
                raise QueryRefused("the plan's moments are not those of this loss")
            parts = self._rows.row_moment_sums(statistic)
            joint = self.release(query, query.clip_norm, joined(parts))
        pieces = np.split(joint, np.cumsum([part.size for part in parts])[:-1])
        weights = (1.0, statistic.mean, statistic.diagonal, statistic.length)
        return tuple(
            piece.reshape(part.shape) / math.sqrt(weight or 1.0)
            for piece, part, weight in zip(pieces, parts, weights, strict=True)
        )

    def second_moment(self) -> Array:
        """Noisy mean of row rowᵀ in the current coordinates, rows clipped to norm one."""
        with self._turn():
            query = self._admit("second moment")
            if type(query.question) is not SecondMoment:
                raise QueryRefused("the plan's query is no second moment")
            return self.release(query, query.clip_norm, self._seen.second_moment_sum())

    def feature_curvature(self, x: Array, weights: Array) -> Array:
        """Noisy mean of l''(⟨row, x⟩)·weights∘row∘row, each scaled down to norm one.

        Rows and x are in the coordinates of the table, whatever those of the gradients are by now.
        """
        with self._turn():
            query = self._admit("curvature")
            if type(query.question) is not FeatureCurvature:
                raise QueryRefused("the plan's query is no curvature")
            if not x.shape == weights.shape == self._rows.point_shape == (self._rows.n_features,):
                raise QueryRefused("a curvature is asked for at one coefficient and with one weight a feature")
            # NaN and infinity fail the comparisons too.
            if not (ddot(x, x) <= LARGEST_SQUARE and np.all((weights >= 0) & (weights < math.inf))):
                raise QueryRefused("a curvature is asked for at a finite point, with finite weights of at least zero")
            return self.release(query, query.clip_norm, self._rows.curvature_sum(x, weights))

    def feature_moment(self) -> Array:
        """Noisy mean of row rowᵀ for the mapped rows divided by their declared norm."""
        with self._turn():
            query = self._admit("feature moment")
            if type(query.question) is not FeatureMoment or not isinstance(self._rows, Preparable):
                raise QueryRefused("the plan's query is no feature moment")
            return self.release(query, query.clip_norm, self._rows.feature_moment_sum())

    def shares_below(self, thresholds: Array) -> Array:
        """Noisy shares of the rows whose features are at most the public `thresholds`, (levels, features)."""
        with self._turn():
            query = self._admit("quantile counts")
            statistic = query.question
            if type(statistic) is not CountsBelow or thresholds.shape != (statistic.levels, statistic.features):
                raise QueryRefused("the plan's counts are of other features or thresholds")
            if not np.isfinite(thresholds).all() or not isinstance(self._rows, Preparable):
                raise QueryRefused("thresholds must be finite numbers, and rows such as can be counted")
            total = self._rows.below_sums(thresholds)
            if total.shape != thresholds.shape:
                raise QueryRefused("the plan's counts are of other features than the table's")
            return self.release(query, query.clip_norm, total) + 0.5

    def change_map(self, rowmap: RowMap) -> None:
        """Rows are mapped anew by a public rule; every row keeps to the declared norm, so nothing is charged."""
        if self._seen is not self._rows or not isinstance(self._rows, Preparable):
            raise QueryRefused("rows are mapped anew before coordinates change")
        with np.errstate(all="ignore"):
            self._rows = self._seen = self._rows.remapped(rowmap)

    def score(self, x: Array) -> float:
        """Noisy mean of the centred scores of the model `x` on all rows."""
        with self._turn():
            query = self._admit("score", x)
            if not isinstance(self._rows, Scored) or type(query.sampler) is not Everything:
                raise QueryRefused("only rows with a score, and all of them, are scored")
            return float(self.release(query, query.clip_norm, self._rows.score_sum(x, query.clip_norm))[0])

    def noisy_pass(self, program: Program) -> None:
        """Visit every row once, in a fresh secret order, with noise after each visit. The state stays hidden."""
        with self._turn():
            query = self._admit(NOISY_PASS)
            if not isinstance(self._rows, Visited) or type(program) is not Program:
                raise QueryRefused("rows that are only summed, or a program that is not the library's own")
            footing = Footing.of(program, self._rows.n_rows, query.count, query.clip_norm)
            if not isinstance(query.question, HiddenWalk) or query.question.passage != Passage.of(footing):
                raise QueryRefused("the program differs from the one the plan was certified for")
            if self._program is not None and self._program is not program:
                raise QueryRefused("all passes of a plan follow one program")
            order = _once_each(query.sampler.draw(self._rows.n_rows, self._streams.sampling), self._rows.n_rows)
            state = program.start() if self._state is None else self._state
            noise = footing.noise(query.noise_multiplier)
            draw = partial(self._draw_on_grid, noise.deviation, noise.grid)
            self._program = program
            x, dual = self._rows.noisy_pass(
                program, state, query.clip_norm, order, lambda visits: draw((visits, self._rows.n_features)), noise.grid
            )
            dual = noise.dual_grid * numpy_kernels.on_grid(dual, noise.dual_grid)
            self._state = x, dual + self._draw_on_grid(noise.dual_deviation, noise.dual_grid, dual.shape)
            self._count(query)

    def last_state(self) -> State:
        """(x, λ) after all planned passes. Neither an earlier state nor this one again is ever answered."""
        with self._lock:
            query, state = self._queries.get(NOISY_PASS), self._state
            if query is None or state is None or self._performed[NOISY_PASS] != query.count:
                raise QueryRefused("no state leaves before all planned passes are made, and the last one leaves once")
            self._state = None
            return self.release_state(query, state)

    def change_coordinates(self, matrix: Array | SpikedMap) -> None:
        """Later gradients and second moments are of Pᵀ row; the clip holds for every P, so nothing is charged.

        Sums are formed before Pᵀ, so an oblique P would enlarge their rounding, and is refused. Where rows refuse P
        themselves, because it stretches them too far, their coordinates are those of the table again.
        """
        size, condition = _size_and_condition(matrix)
        features = self._rows.n_features
        if matrix.shape != (features, features) or not size <= LARGEST_STRETCH:
            raise QueryRefused("coordinates must be a finite square matrix of moderate size with one row a feature")
        if not condition <= LARGEST_CONDITION:
            raise QueryRefused("coordinates so oblique that rounding a sum in the old ones shows in the new ones")
        self._seen = self._rows  # lets go of the norms in the last coordinates before new ones are found
        with np.errstate(all="ignore"):
            self._seen = self._rows.transformed(matrix)
        self._rounding = arithmetic.summation_error(self._most_rows, features, condition)

    def noise_std(self, kind: str) -> float:
        """Public: standard deviation of the noise on each entry of an answer, but for the small slack of rounding."""
        query = self._plan.query(kind)
        if query is None:
            raise QueryRefused(f"the plan contains no {kind!r} query")
        return query.noise_std

    @property
    def public_rows(self) -> int:
        """Public: the number of rows the plan was made for."""
        return self._plan.n_rows

    def release(self, query: Query, clip_norm: float, total: Sum) -> Array:
        """The only exit: add noise proportional to the clip, divide by the public denominator, count."""
        if isinstance(total, LatticeSum) is not self._is_exact:
            raise QueryRefused("the rows compute in another arithmetic than the plan promises")
        self._count(query)
        if isinstance(total, LatticeSum):
            return self._exactly(query, clip_norm, total)
        return self._granularly(query, clip_norm, total)

    def _granularly(self, query: Query, clip_norm: float, total: Array) -> Array:
        """Sum and noise each rounded to one public grid, the noise enlarged by what rounding may add to the sum."""
        grid, deviation = arithmetic.granularity(
            clip_norm, query.noise_multiplier, self._most_rows, self._rounding, total.size
        )
        noise = self._streams.noise.standard_normal(total.shape)
        answer = np.empty(total.shape)
        kernels.active().granular(total, noise, grid, deviation, query.denominator, answer)
        return answer

    def _exactly(self, query: Query, clip_norm: float, total: LatticeSum) -> Array:
        """Integers plus discrete Gaussian integers; only then numbers of a computer."""
        deviations = arithmetic.exact_deviations(query.noise_multiplier * clip_norm, total.units)
        self._variation += arithmetic.variation(deviations)
        budget = self._plan.budget
        if not self._variation * (1.0 + math.exp(budget.epsilon)) <= arithmetic.RESERVED_SHARE * budget.delta:
            raise QueryRefused("so many exact releases that their distance from the Gaussian exceeds what is reserved")
        noisy = total.counts + self._streams.noise.discrete_gaussian(deviations)
        return np.asarray(noisy * (total.units / query.denominator))

    def release_state(self, query: Query, state: State) -> State:
        """The exit of hidden passes, whose noise is already in the state; zeros leave without the sign of a sum."""
        x, dual = state
        return x + 0.0, dual + 0.0

    def _draw_on_grid(self, deviation: float, grid: float, shape: tuple[int, ...]) -> Array:
        """Fresh normals, rounded to multiples of a power of two."""
        drawn = self._streams.noise.standard_normal(shape)
        drawn *= deviation / grid
        np.rint(drawn, out=drawn)
        drawn *= grid
        return drawn

    @property
    def _outputs(self) -> int:
        return 1 if len(self._rows.point_shape) == 1 else self._rows.point_shape[1]

    @property
    def spent(self) -> Event:
        """What was performed so far, in the order of the plan."""
        return Event(
            tuple(
                replace(query.part, count=self._performed[query.kind] if query is self._queries[query.kind] else 0)
                for query in self._plan.queries
            )
        )

    def require_promise_kept(self) -> None:
        """Raise unless exactly the planned event was performed."""
        if self.spent != self._plan.event:
            raise PromiseBroken("the queries performed differ from the queries planned, so nothing is released")

    def _turn(self, summing: Rows | None = None) -> AbstractContextManager[object]:
        """One query at a time, in the process that made the oracle: neither threads nor forks may ask one twice.

        NumPy is silent meanwhile, as its warnings could tell of rows; not where compiled kernels do without it, because
        to silence it takes longer than to add a batch.
        """
        if os.getpid() != self._process:
            raise QueryRefused("an oracle answers only in the process that made it; make a new plan in each process")
        alone = getattr(summing, "kernels_suffice", False) and kernels.active() is not numpy_kernels
        return self._lock if alone else _Silently(self._lock)

    def _admit(self, kind: str, *points: Array) -> Query:
        query = self._queries.get(kind)
        if query is None:
            raise QueryRefused(f"the plan contains no {kind!r} query")
        if self._asked[kind] >= query.count:
            raise QueryRefused(f"all {query.count} planned {kind!r} queries have been answered")
        if kind not in self._sound:
            self._require_sound(query)
            self._sound.add(kind)
        if isinstance(query.question, (ClippedGradient, GradientDifference, CentredScore)) != bool(points):
            raise QueryRefused(f"the plan's {kind!r} query is of another sort")
        for point in points:
            if point.shape != self._seen.point_shape:
                raise QueryRefused(f"the oracle answers at points of shape {self._seen.point_shape} only")
            entries = point if point.ndim == 1 else point.ravel()
            # NaN and infinity fail the comparison too.
            if not ddot(entries, entries) <= LARGEST_SQUARE:
                raise Diverged("the solver asked for a gradient at a point that is not finite; use a smaller step")
        self._asked[kind] += 1
        return query

    def _require_sound(self, query: Query) -> None:
        """What a query must be whenever it is asked. Queries never change, so one look is enough."""
        if not (math.isfinite(query.noise_multiplier) and query.noise_multiplier > 0):
            raise QueryRefused("a query without noise is never answered")
        if query.question.reads_all and query.question.proof is not None:
            if not query.clip_norm >= query.question.reach(self._plan.budget.relation):
                raise QueryRefused("the plan declares a statistic to move less than it can")
            if type(query.sampler) is not Everything:
                raise QueryRefused("a statistic reads every row, and the plan counts on a sample")
        if isinstance(query.question, HiddenWalk) != isinstance(query.sampler, Permutation):
            raise QueryRefused("a secret order of all rows belongs to a hidden pass, and only to one")

    def _count(self, query: Query) -> None:
        """Only what the plan holds can be performed; anything else leaves the promise unkept."""
        planned = self._queries.get(query.kind)
        if query is planned or query == planned:
            self._performed[query.kind] += 1

    def __reduce__(self) -> Any:
        raise TypeError("an oracle holds private rows and is never copied or stored")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(queries={[query.kind for query in self._plan.queries]})"


class _Silently:
    """Holds a lock and silences the arithmetic of NumPy."""

    __slots__ = ("_lock", "_silence")

    def __init__(self, lock: threading.Lock) -> None:
        self._lock, self._silence = lock, np.errstate(all="ignore")

    def __enter__(self) -> None:
        self._lock.acquire()
        self._silence.__enter__()

    def __exit__(self, *failure: object) -> None:
        self._silence.__exit__(None, None, None)
        self._lock.release()


def _once_each(batch: Batch, n_rows: int) -> NDArray[np.intp]:
    """The row numbers of a batch that holds each row exactly once."""
    rows = batch.rows
    if rows is None or batch.weights is not None or not np.array_equal(np.sort(rows), np.arange(n_rows)):
        raise QueryRefused("a pass visits each row exactly once")
    return rows


def _size_and_condition(matrix: Array | SpikedMap) -> tuple[float, float]:
    """Largest entry, or a bound on it, and the ratio of the extreme singular values, infinite without full rank."""
    if isinstance(matrix, SpikedMap):
        return matrix.norm_bound, matrix.condition
    size = float(np.abs(matrix).max(initial=0.0))
    if not 0 < size < math.inf:
        return size, math.inf
    squares = np.linalg.eigvalsh((matrix / size).T @ (matrix / size))
    return size, math.sqrt(float(squares[-1] / squares[0])) if squares[0] > 0 else math.inf
