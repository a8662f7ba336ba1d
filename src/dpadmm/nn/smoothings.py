"""Which entries of a weight tensor are neighbours, and how strongly a noisy gradient is averaged over them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from dpadmm.errors import InvalidParameter, shown

Strength = float | Callable[[int], float]
"""A number of at least zero, or a public function from the number of finished steps to one."""


class GridView(NamedTuple):
    """A tensor seen as `batch` grids of these side lengths, in row-major order."""

    batch: int
    sides: tuple[int, ...]


@runtime_checkable
class Smoothing(Protocol):
    """A public choice of neighbours, and how strong the smoothing is."""

    @property
    def strength(self) -> Strength: ...

    @property
    def joined(self) -> bool:
        """Whether all tensors together are smoothed as one."""
        ...

    def view(self, shape: tuple[int, ...]) -> GridView | None:
        """How a tensor of this shape is smoothed; None if it is left as it is."""
        ...


@dataclass(frozen=True)
class Ring:
    """Each entry of a tensor is a neighbour of the next, and the last of the first.

    The gradient g becomes q with q + strength·(2qᵢ − qᵢ₋₁ − qᵢ₊₁) = g, as in DP-LSSGD (Wang et al. 2020).

    Parameters
    ----------
    strength : float or callable
        At least 0; 0 leaves every gradient as it is. A callable is given the number of finished steps.
    over : {"tensor", "row", "all"}
        What is one ring: each tensor, in row-major order; each row of a tensor (its last axis); or all tensors
        together, in their order.

    Examples
    --------
    >>> Ring(1.0).view((10, 784)), Ring(1.0, over="row").view((10, 784))
    (GridView(batch=1, sides=(7840,)), GridView(batch=10, sides=(784,)))
    """

    strength: Strength
    over: Literal["tensor", "row", "all"] = "tensor"

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", checked_strength(self.strength))
        if self.over not in ("tensor", "row", "all"):
            raise InvalidParameter(f"over={shown(self.over)}", "'tensor', 'row' or 'all'", "choose one of these")

    @property
    def joined(self) -> bool:
        return self.over == "all"

    def view(self, shape: tuple[int, ...]) -> GridView | None:
        entries = math.prod(shape)
        length = shape[-1] if self.over == "row" and shape else entries
        return GridView(entries // length, (length,)) if entries and length > 1 else None


@dataclass(frozen=True)
class Grid:
    """Entries of an image-shaped tensor are neighbours of those beside, above and below; opposite edges meet.

    Parameters
    ----------
    strength : float or callable
        At least 0; 0 leaves every gradient as it is. A callable is given the number of finished steps.
    height, width : int, optional
        Size of the images that a layer reads: tensors whose rows hold whole images of this size are smoothed image by
        image. Without a size the last two axes of kernels (tensors of at least three axes) are the grid.

    Examples
    --------
    >>> Grid(1.0, 28, 28).view((10, 784)), Grid(1.0).view((16, 1, 8, 8)), Grid(1.0).view((10, 784))
    (GridView(batch=10, sides=(28, 28)), GridView(batch=16, sides=(8, 8)), None)
    """

    strength: Strength
    height: int | None = None
    width: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", checked_strength(self.strength))
        given = (self.height, self.width)
        if given == (None, None):
            return
        if not all(isinstance(side, int) and not isinstance(side, bool) and side >= 1 for side in given):
            raise InvalidParameter(
                f"height={shown(self.height)} and width={shown(self.width)}",
                "two integers of at least 1, or neither",
                "give both sides of the image, as in Grid(1.0, 28, 28)",
            )

    @property
    def joined(self) -> bool:
        return False

    def view(self, shape: tuple[int, ...]) -> GridView | None:
        entries = math.prod(shape)
        if not entries:
            return None
        if self.height is None or self.width is None:
            return _grids(entries, shape[-2:]) if len(shape) >= 3 else None
        sides = (self.height, self.width)
        whole_images = bool(shape) and shape[-1] % math.prod(sides) == 0
        return _grids(entries, sides) if whole_images or shape[-2:] == sides else None


def _grids(entries: int, sides: tuple[int, ...]) -> GridView | None:
    size = math.prod(sides)
    return GridView(entries // size, sides) if size > 1 else None


def checked_strength(strength: object) -> Strength:
    """`strength` as it was given if it is a callable, else as a float of at least zero."""
    if callable(strength):
        return strength
    usable = isinstance(strength, (int, float)) and not isinstance(strength, bool) and 0 <= strength < math.inf
    if not usable:
        raise InvalidParameter(
            f"strength={shown(strength)}",
            "a finite number >= 0, or a function from the number of finished steps to one",
            "choose 0 for no smoothing, and 1 or so for a little",
        )
    return float(strength)  # type: ignore[arg-type]


def strength_at(smoothing: Smoothing, step: int) -> float:
    """The strength after so many finished steps."""
    strength = smoothing.strength
    if not callable(strength):
        return strength
    found = checked_strength(strength(step))
    if callable(found):
        raise InvalidParameter(
            f"a schedule that returns a function at step {step}", "a number", "return the strength itself"
        )
    return found
