"""How many times a base mechanism is run: a random number whose law is public and whose value stays secret."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import InvalidParameter, shown
from dpadmm.randomness import SelectionStream

LARGEST_MEAN = 1000.0
SHAPES = {"logarithmic": 0.0, "geometric": 1.0, "poisson": math.inf}
LAWS = ("geometric", "logarithmic", "negative-binomial", "poisson")
# Numbers of runs that are rarer than this, together, are counted as certain loss where a sum over them is needed.
RARE = 1e-15


@dataclass(frozen=True)
class Repetitions:
    """Law of the number K of runs: truncated negative binomial, its two named cases, or Poisson.

    Parameters
    ----------
    law : {"geometric", "logarithmic", "negative-binomial", "poisson"}
        All but Poisson have K ≥ 1; a Poisson number is zero with probability exp(−mean).
    mean : float
        E[K], above 1.
    shape : float, optional
        η > 0 of the negative binomial; 1 is geometric, and 0, the limit, logarithmic.

    Examples
    --------
    >>> law = Repetitions("geometric", 10.0)
    >>> round(law.stopping, 6), round(float(law.chances()[:3].sum()), 6)
    (0.1, 0.19)
    """

    law: str
    mean: float
    shape: float | None = None

    def __post_init__(self) -> None:
        if self.law not in LAWS:
            raise InvalidParameter(
                f"a number of trials that is {shown(self.law)}", "one of " + ", ".join(LAWS), "name one"
            )
        if not _real(self.mean) or not 1.0 < self.mean <= LARGEST_MEAN:
            raise InvalidParameter(
                f"a mean of {shown(self.mean)} trials",
                f"1 < mean <= {LARGEST_MEAN:g}",
                "choose a mean, usually about 10",
            )
        object.__setattr__(self, "mean", float(self.mean))
        named = self.law in SHAPES
        if named == (self.shape is not None):
            raise InvalidParameter(
                f"shape={shown(self.shape)} for {shown(self.law)} trials",
                "a shape for 'negative-binomial' alone",
                "correct it",
            )
        if self.shape is not None and (not _real(self.shape) or not 1e-3 <= self.shape <= 100):
            raise InvalidParameter(f"shape={shown(self.shape)}", "a shape from 0.001 to 100", "choose 1 for geometric")

    @property
    def eta(self) -> float:
        """η: 0 logarithmic, 1 geometric, infinite Poisson."""
        return SHAPES[self.law] if self.shape is None else float(self.shape)

    @property
    def stopping(self) -> float:
        """γ of the truncated negative binomial: the smallest value of 1 − (1 − γ)x on [0, 1]."""
        return _stopping(self.eta, self.mean)

    @property
    def nothing(self) -> float:
        """P[K = 0]."""
        return math.exp(-self.mean) if self.law == "poisson" else 0.0

    def chances(self) -> NDArray[np.float64]:
        """P[K = 0], P[K = 1], … up to where the rest is below `RARE`."""
        from scipy.special import gammaln

        size = 64
        while True:
            k = np.arange(size, dtype=np.float64)
            with np.errstate(divide="ignore"):
                if self.law == "poisson":
                    logs = k * math.log(self.mean) - self.mean - gammaln(k + 1)
                elif self.eta == 0:
                    logs = k * math.log1p(-self.stopping) - np.log(k) - math.log(-math.log(self.stopping))
                else:
                    scale = math.log(math.expm1(-self.eta * math.log(self.stopping)))
                    logs = k * math.log1p(-self.stopping) + gammaln(k + self.eta) - gammaln(k + 1) - scale
                    logs -= gammaln(self.eta)
            chances = np.exp(logs)
            if self.law != "poisson":
                chances[0] = 0.0
            # Beyond here neighbouring chances have at most this ratio, so that the rest is below a geometric sum.
            ratio = chances[-1] / chances[-2] if chances[-2] > 0 else 0.0
            if self.law != "poisson":
                ratio = max(ratio, 1.0 - self.stopping)
            if k[-1] > 2 * self.mean and chances[-1] < RARE * (1.0 - ratio):
                return np.asarray(chances)
            size *= 2

    def draw(self, stream: SelectionStream) -> int:
        """The secret number of runs."""
        if self.law == "poisson":
            return stream.poisson(self.mean)
        return stream.negative_binomial(self.eta, self.stopping)

    def to_dict(self) -> dict[str, Any]:
        return {"law": self.law, "mean": self.mean, "shape": self.shape}

    @property
    def text(self) -> str:
        kind = "negative binomial" if self.law == "negative-binomial" else self.law
        return f"{kind}{f' of shape {self.shape:g}' if self.shape is not None else ''} with mean {self.mean:g}"


def _real(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


@lru_cache(maxsize=64)
def _stopping(eta: float, mean: float) -> float:
    """γ with E[K] = mean, to fourteen digits; the draws use the same γ as the bounds."""
    from scipy.optimize import brentq

    def surplus(log_gamma: float) -> float:
        if eta == 0:
            return math.log(math.expm1(-log_gamma) / -log_gamma / mean)
        return math.log(eta * math.expm1(-log_gamma) / -math.expm1(eta * log_gamma) / mean)

    return math.exp(brentq(surplus, -50.0, -1e-12, xtol=1e-14))
