"""What all questions have in common. A question is data: it holds what the plan fixes, and one file says all about it.

What a question is asked *at*, released points and public numbers of one ask, comes with the ask, so that no array
enters a plan, a digest or a gate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import ddot

from dpadmm.errors import Diverged, QueryRefused
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.events import GaussianSums, Part
from dpadmm.privacy.sampling import Everything, Sampler
from dpadmm.registry import Registry

A = TypeVar("A")
Array = NDArray[np.float64]
At = tuple[Any, ...]
"""Where a question is asked: released or public values of one ask."""
Frame = Literal["table", "seen"]

LARGEST_POINT = 1e30
"""Questions at points of larger norm are refused: margins would overflow and a row could show itself as a NaN."""
LARGEST_SQUARE = LARGEST_POINT**2

SATURATED = 1e3
"""Margin of a row at the points an audit asks about: as far as a slope goes."""


class Kind(str, Generic[A]):
    """Label under which a plan holds a query, typed by the answer: `GRADIENT = Kind[Array]("gradient")`."""

    __slots__ = ()


class Space(NamedTuple):
    """Public shapes of the coordinates a question is asked in."""

    point_shape: tuple[int, ...]
    n_features: int

    @property
    def outputs(self) -> int:
        return 1 if len(self.point_shape) == 1 else self.point_shape[1]


class View(Protocol):
    """Some private rows as an engine shows them to a question: in float64 and finite.

    All that it answers is computed row by row, to the same last bit wherever a row stands, as arrays or as tensors of
    the engine's device. A product of linear algebra would not keep that.

    Attributes
    ----------
    row_norm : float
        Declared norm of a row in the coordinates of the table.
    """

    row_norm: float

    @property
    def rows(self) -> Any:
        """Mapped rows in the question's frame, (m, d)."""
        ...

    @property
    def raw(self) -> Any:
        """The rows as they were given, (m, raw features)."""
        ...

    @property
    def target(self) -> Any:
        """What the loss expects, (m,) or (m, columns)."""
        ...

    def dot(self, x: Array) -> Any:
        """⟨row, x⟩ of each row, (m,), or (m, outputs) for a point with several columns."""
        ...

    def slopes(self, x: Array) -> Any:
        """Derivative of each row's loss in its margin at `x`, (m,) or (m, outputs)."""
        ...

    def curvatures(self, x: Array) -> Any:
        """Second derivative of each row's loss in its margin at `x`, (m,); refused where there are several outputs."""
        ...

    def labels(self, slope_unit: float) -> Any:
        """(m, outputs): descent slopes at zero over `slope_unit`, cut to ±1, or e_y − 1/K for K outputs."""
        ...

    def scores(self, x: Array) -> Any:
        """How well the model `x` does on each row, from 0 to 1, (m,); refused by rows without a rule for it."""
        ...

    def numbers(self, values: Any) -> Any:
        """Public constants, or comparisons of rows, in float64 where the rows are."""
        ...

    def clipped(self, vectors: Any, size: float) -> Any:
        """One vector a row, (m, …), scaled down to norm `size` where it is longer; zero where it is not finite."""
        ...

    def totals(self, vectors: Any) -> Any:
        """The sum of the entries of each row of (m, entries), (m,)."""
        ...

    def joined(self, parts: Iterable[Any]) -> Any:
        """Several vectors a row as one flat vector a row, (m, entries)."""
        ...


class Suspects(Protocol):
    """Two rows made up for an audit: two tables differ in them and in nothing else."""

    @property
    def raw(self) -> tuple[Array, Array]:
        """As they were given."""
        ...

    @property
    def mapped(self) -> tuple[Array, Array]:
        """As a model sees them."""
        ...


class Question(Generic[A]):
    """A sum over rows: what one row contributes, how far that can be, and what is made of the noisy mean.

    Subclasses are frozen dataclasses of public numbers, registered in `QUESTIONS`. Their answers have the type `A`.

    Attributes
    ----------
    name : str
        In the registry, and in stored plans.
    words : str
        What is summed, as a short phrase for statements.
    proof : str or None
        The page that proves `reach`. None where contributions are clipped and nothing else is claimed of them.
    frame : {"table", "seen"}
        Whether it is asked in the coordinates of the table or in those chosen last.
    reads_all : bool
        Whether every row takes part, whatever the sampler of a fit.
    may_be_cut : bool
        Whether `reach` is proved for contributions of which any entries were moved towards zero, too.
    walks : bool
        Whether rows are visited one after another and nothing but the last state is answered: it is no sum then.

    Formal guarantees
    -----------------
    Noise of multiplier z has standard deviation z·`reach(relation)` on the sum. The reach is the sensitivity of the sum
    divided by the distance of the relation; under add-remove it is the largest norm of one contribution.

    A question that an engine has no fast way for is answered by `contributions`. The engine then scales a contribution
    down to norm `size` where it is longer, drops what is not finite, and weighs it by at most one. Exact arithmetic
    also cuts its entries off towards zero, and refuses a question that does not say that it `may_be_cut`.
    """

    name: ClassVar[str]
    words: ClassVar[str] = ""
    proof: ClassVar[str | None] = None
    frame: ClassVar[Frame] = "table"
    reads_all: ClassVar[bool] = True
    may_be_cut: ClassVar[bool] = False
    walks: ClassVar[bool] = False

    def reach(self, relation: Relation) -> float:
        """Sensitivity of the sum divided by the distance of the relation."""
        raise NotImplementedError

    @property
    def size(self) -> float:
        """Largest norm of one row's contribution."""
        return self.reach(Relation.ADD_REMOVE)

    def accept(self, at: At, space: Space) -> float:
        """Refuse a place that is not public, finite and of this shape; else the public clip there (∞: the plan's)."""
        require_places(self, at)
        return math.inf

    def contributions(self, view: View, at: At) -> Any:
        """One vector a row, (m, …), of elementwise operations and of what the view answers: each of its own row alone.

        They may be longer than `size` and not finite. Whoever adds them up clips them. For no row they have the shape
        of the answer all the same.
        """
        raise QueryRefused(f"these rows do not answer {self.name!r}")

    def answer(self, mean: Array, space: Space) -> A:
        """What the noisy mean says: it may be split and rescaled, being released."""
        return mean  # type: ignore[return-value]

    def noised(self, answer: A) -> Array:
        """The vector that was noised, of an answer: the inverse of `answer`, flat."""
        return np.asarray(answer).ravel()

    def pieces(self, space: Space) -> dict[str, slice]:
        """Parts of the noised vector that an audit may look at apart, by name; none where it is one thing."""
        return {}

    def probes(self, pair: Suspects, space: Space) -> Iterable[At]:
        """Where two tables that differ in one row answer most differently, for audits to choose from."""
        return ((),)

    def sampler(self, usual: Sampler) -> Sampler:
        """What draws the rows, where a fit usually draws them by another sampler."""
        return Everything() if self.reads_all else usual

    def part(self, sampler: Sampler, noise_multiplier: float, count: int) -> Part:
        """What `count` releases are to an accountant."""
        return GaussianSums(sampler, noise_multiplier, count)

    @property
    def rows_read(self) -> int:
        """How often rows are read at each ask: once, but for passes that visit them one by one."""
        return 1


QUESTIONS: Registry[type[Question[Any]]] = Registry("question")


def require_places(question: Question[Any], at: At, *expected: str) -> None:
    """Refuse another number of points and numbers than the question is asked at."""
    if len(at) != len(expected):
        needed = " and ".join(expected) if expected else "nothing"
        raise QueryRefused(f"{question.name!r} is of another sort: it is asked at {needed}")


def require_point(point: Array, space: Space) -> None:
    """Refuse a point of another shape, or one at which a row could show itself."""
    if point.shape != space.point_shape:
        raise QueryRefused(f"the oracle answers at points of shape {space.point_shape} only")
    entries = point if point.ndim == 1 else point.ravel()
    # NaN and infinity fail the comparison too.
    if not ddot(entries, entries) <= LARGEST_SQUARE:
        raise Diverged("the solver asked for a gradient at a point that is not finite; use a smaller step")


def far_points(pair: Suspects, shape: tuple[int, ...]) -> Iterator[Array]:
    """The origin, and points far along the two rows, their middle and their difference, either way."""
    first, second = pair.mapped
    yield np.zeros(shape)
    directions = [row for row in (first, second, first + second, first - second) if row.any()]
    for row, sign in product(directions, (1.0, -1.0)):
        far = sign * SATURATED * row / float(np.vdot(row, row))
        if len(shape) == 1:
            yield far
        else:
            yield from (far[:, None] * np.eye(shape[1])[output] for output in {0, shape[1] - 1})


def clip_there(question: Question[Any], at: At, space: Space) -> float:
    """Largest norm of a contribution to the question at this place: an engine that adds them up clips to it."""
    return min(question.size, question.accept(at, space))


def gradients(view: View, x: Array) -> Any:
    """Gradient of each row's loss at x, as long as it is: (m, d), or (m, d, outputs)."""
    slopes, rows = view.slopes(x), view.rows
    return rows * slopes[:, None] if slopes.ndim == 1 else rows[:, :, None] * slopes[:, None, :]


def outer(left: Any, right: Any) -> Any:
    """left ⊗ right of each row."""
    return left[:, :, None] * right[:, None, :]


def orthogonal_reach(relation: Relation) -> float:
    """Of contributions in the unit ball, two of which have no negative inner product: at most √2 apart."""
    return 1.0 if relation is Relation.ADD_REMOVE else math.sqrt(2.0) / 2
