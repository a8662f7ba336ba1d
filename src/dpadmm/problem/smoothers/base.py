"""What a smoother is: a public linear map S = Q⁻¹ that averages neighbouring coordinates of a noisy gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from dpadmm.errors import InvalidParameter
from dpadmm.problem.checks import Array, count
from dpadmm.registry import Registry


class Smoother(Protocol):
    """A symmetric linear map with 0 ≺ S ≼ I, acting on the first axis of an array of shape (d,) or (d, K).

    It is a bijection applied after the noise, so it changes no privacy parameter in either direction.

    Attributes
    ----------
    name : str
        Name in the registry.
    free : int
        How many of the last coordinates (an intercept, for instance) are left as they are.
    """

    name: ClassVar[str]

    @property
    def free(self) -> int: ...

    def __call__(self, g: Array) -> Array:
        """S g."""
        ...

    def tau(self, d: int) -> float:
        """tr(S)/d."""
        ...

    def tau2(self, d: int) -> float:
        """tr(S²)/d, the factor by which smoothing shrinks the energy of white noise."""
        ...

    def norm_inverse(self, d: int) -> float:
        """‖Q‖₂ = ‖S⁻¹‖₂."""
        ...


SMOOTHERS: Registry[Callable[..., Smoother]] = Registry("smoother")


@SMOOTHERS.register("identity")
@dataclass(frozen=True)
class Identity:
    """No smoothing.

    Examples
    --------
    >>> import numpy as np
    >>> Identity()(np.array([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """

    free: int = 0
    name: ClassVar[str] = "identity"

    def __post_init__(self) -> None:
        object.__setattr__(self, "free", count("free", self.free))

    def __call__(self, g: Array) -> Array:
        return g.copy()

    def tau(self, d: int) -> float:
        return 1.0

    def tau2(self, d: int) -> float:
        return 1.0

    def norm_inverse(self, d: int) -> float:
        return 1.0


def on_leading(smooth: Callable[[Array], Array], g: Array, free: int) -> Array:
    """Smooth all but the last `free` coordinates of g, and keep its dtype."""
    leading = smoothed_size(g.shape[0], free)
    smoothed = smooth(g[:leading]).astype(g.dtype, copy=False)
    return np.concatenate([smoothed, g[leading:]]) if free else smoothed


def mean_with_free(mean: float, d: int, free: int) -> float:
    """Average of the eigenvalues over all d coordinates, the untouched ones having eigenvalue 1."""
    return (mean * smoothed_size(d, free) + free) / d


def smoothed_size(d: int, free: int, expected: int | None = None) -> int:
    """Return d − free, or say that the smoother does not fit."""
    size = d - free
    if size < 1 or (expected is not None and size != expected):
        wanted = "more coordinates than free ones" if expected is None else f"{expected} coordinates and {free} free"
        raise InvalidParameter(f"{d} coordinates", wanted, "build the smoother for this number of coordinates")
    return size
