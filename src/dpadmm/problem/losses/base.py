"""What a loss is: a value and a slope per row, with the two bounds that privacy and step sizes rest on."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol

from dpadmm.problem.checks import Array
from dpadmm.registry import Registry


class Loss(Protocol):
    """A convex loss of the margin ⟨row, x⟩, per row and never a mean.

    The gradient of one row is ``outer(row, slope)``, so its norm is ‖row‖·‖slope‖ and clipping needs no
    matrix of gradients.

    Attributes
    ----------
    name : str
        Name in the registry.
    slope_bound : float
        Supremum of |slope| (of ‖slope‖₂ where there are several outputs).
    curvature_bound : float
        Supremum of the second derivative in the margin (of its spectral norm where there are several outputs).
    outputs : int
        Columns of x: 1 means that margins have shape (n,), more that they have shape (n, outputs).
    """

    name: ClassVar[str]

    @property
    def slope_bound(self) -> float: ...

    @property
    def curvature_bound(self) -> float: ...

    @property
    def outputs(self) -> int: ...

    def value(self, margin: Array, target: Array) -> Array:
        """Loss of each row, shape (n,)."""
        ...

    def slope(self, margin: Array, target: Array) -> Array:
        """Derivative of each row's loss in its margin, shape of `margin`."""
        ...

    def curvature(self, margin: Array, target: Array) -> Array:
        """Second derivative of each row's loss in its margin, shape (n,) or (n, K, K)."""
        ...


LOSSES: Registry[Callable[..., Loss]] = Registry("loss")
