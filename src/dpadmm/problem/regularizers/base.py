"""What a regulariser is: a value and an exact proximal map."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol

import numpy as np

from dpadmm.errors import InvalidParameter
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


def checked_prox(regularizer: Regularizer, v: Array, step: float) -> Array:
    """`regularizer.prox(v, step)`, or say that a finite point has no usable one: penalties may be the user's own."""
    w = regularizer.prox(v, step)
    if np.shape(w) != v.shape or (not np.isfinite(w).all() and np.isfinite(v).all()):
        raise InvalidParameter(
            f"a penalty {getattr(regularizer, 'name', type(regularizer).__name__)!r} whose prox is not finite, or of "
            "another shape, at a finite point",
            "finite numbers of the shape of the point",
            "correct the prox of the penalty; a budget reserved for this fit counts as spent",
        )
    return w
