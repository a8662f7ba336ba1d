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
    curvature_fades : bool
        Whether the second derivative falls towards zero for margins that fit their targets well.
    usual_clip : float or None
        Default clip of a row's gradient, in units of the norm of a row; None where it follows the noise.
    bend : float
        Size of the margin at which the loss bends where its target is one; 0 for a loss that bends nowhere.
    kernel : (int, float) or None
        Code and parameter by which compiled loops know the loss (`dpadmm.kernels.loss_codes`); None if they do not.
    """

    name: ClassVar[str]

    @property
    def slope_bound(self) -> float: ...

    @property
    def curvature_bound(self) -> float: ...

    @property
    def outputs(self) -> int: ...

    @property
    def curvature_fades(self) -> bool: ...

    @property
    def usual_clip(self) -> float | None: ...

    @property
    def bend(self) -> float: ...

    @property
    def kernel(self) -> tuple[int, float] | None: ...

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


def kernel_of(loss: Loss) -> tuple[int, float] | None:
    """The kernel that the class of a loss declares itself; one that it inherits may have another slope."""
    return loss.kernel if "kernel" in vars(type(loss)) else None
