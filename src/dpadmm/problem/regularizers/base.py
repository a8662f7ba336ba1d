"""What a regulariser is: a value and an exact proximal map."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol

from dpadmm.problem.checks import Array
from dpadmm.registry import Registry


class Regularizer(Protocol):
    """A penalty r(y) on the auxiliary variable, of shape (p,) or (p, K).

    Attributes
    ----------
    name : str
        Name in the registry.
    convex : bool
        Whether r is convex; convergence is claimed only if it is.
    separable : bool
        Whether r is a sum over the entries of y.
    """

    name: ClassVar[str]

    @property
    def convex(self) -> bool: ...

    @property
    def separable(self) -> bool: ...

    def value(self, y: Array) -> float:
        """r(y), infinite outside the domain."""
        ...

    def prox(self, v: Array, step: float) -> Array:
        """The exact global minimiser of r(w) + ‖w − v‖²/(2·step) over w."""
        ...


REGULARIZERS: Registry[Callable[..., Regularizer]] = Registry("penalty")
