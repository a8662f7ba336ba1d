"""Private quantiles by noisy bisection: bounds that fit the data, within bounds that are public."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm.errors import InvalidParameter, shown
from dpadmm.oracles.private import PrivateOracle
from dpadmm.preparation.base import BUDGET, SHARE, PrivateTransformer
from dpadmm.privacy.ledger import Ledger
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import QUANTILE_COUNTS, CountsBelow
from dpadmm.problem.checks import count
from dpadmm.problem.rowmap import LARGEST_BOUND, RowMap

Array = NDArray[np.float64]

MOST_ROUNDS = 40
"""Beyond it thresholds would differ by rounding alone."""


CLEAR = 2.5
"""Standard deviations of the noise on a share that lie between a quantile and the ends of the data, at least."""


class PrivateQuantileClipper(PrivateTransformer):
    """Clips each feature to private quantiles and scales it to [0, 1].

    Each round asks, for every feature at once, which share of the values lies at or below the middle of the interval
    that is left, and keeps the half in which the quantile must be. After r rounds the quantile is known to 2^−r of the
    public range. Quantiles nearer to 0 or 1 than the noise allows to see are moved inwards, by a public rule, until
    they are 2.5 standard deviations of it away. A feature whose quantiles meet (a constant, a rare category) keeps its
    public bounds, and so do all of them where that would move quantiles beyond 1/4 and 3/4: too few rows.

    Parameters
    ----------
    bounds : (lower, upper)
        Public range of each feature, numbers or one entry a feature. It may be generous: a tenfold range costs little
        more than three rounds.
    quantiles : (low, high)
        0 and 1 stand for the public bounds themselves, and cost nothing.
    rounds : int
        Bisections; each takes an equal part of the budget."""

    def __init__(
        self,
        bounds: Any,
        quantiles: tuple[float, float] = (0.05, 0.95),
        rounds: int = 10,
        *,
        share: float = 0.1,
        epsilon: float | None = None,
        delta: float = 1e-5,
        relation: str = "replace-one",
        n_rows: int | None = None,
        invalid_rows: str = "error",
        ledger: Ledger | str | Path | None = None,
        dataset: str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.bounds = bounds
        self.quantiles = quantiles
        self.rounds = rounds
        self.share = share
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.n_rows = n_rows
        self.invalid_rows = invalid_rows
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    def request(self, n_features: int) -> Request:
        rounds = count("rounds", self.rounds, minimum=1)
        if rounds > MOST_ROUNDS:
            raise InvalidParameter(f"rounds={rounds}", f"at most {MOST_ROUNDS}", "ask for fewer")
        return Request(QUANTILE_COUNTS, rounds, CountsBelow(n_features, len(self._inner())))

    def public_bounds(self, n_features: int) -> tuple[Array, Array]:
        """Declared bounds within which the quantiles are sought."""
        if self.bounds is None:
            raise InvalidParameter("bounds=None", "a public range of each feature", "declare bounds=(lower, upper)")
        declared = RowMap.declare(1.0, False, self.bounds, n_features)
        return np.asarray(declared.lower), np.asarray(declared.upper)

    def ask_bounds(self, oracle: PrivateOracle, n_features: int) -> tuple[Array, Array]:
        """Bisect; the released answers decide which thresholds are asked next."""
        lower, upper = self.public_bounds(n_features)
        margin = CLEAR * oracle.noise_std(QUANTILE_COUNTS)
        levels = np.clip(self._inner(), min(margin, 0.5), max(1.0 - margin, 0.5))[:, None]
        left, right = (np.tile(bound, (len(levels), 1)) for bound in (lower, upper))
        for _ in range(self.rounds):
            middle = left + (right - left) / 2
            above = oracle.ask(QUANTILE_COUNTS, middle) < levels
            left, right = np.where(above, middle, left), np.where(above, right, middle)
        low, high = self._pair()
        found_lower = left[0] if low > 0 else lower
        found_upper = right[-1] if high < 1 else upper
        least = np.maximum(2.0 * 2.0**-self.rounds * (upper - lower), 2.0 / LARGEST_BOUND)
        met = (found_upper - found_lower <= least) | (margin > 0.25)
        return np.where(met, lower, found_lower), np.where(met, upper, found_upper)

    def transform(self, X: Any) -> Any:
        """Rows clipped to the private bounds and scaled to [0, 1]; dense or sparse as they came."""
        rows = self._rows(X)
        lower, width = self.lower_, self.upper_ - self.lower_
        # A warning about a row would be a message about it.
        with np.errstate(all="ignore"):
            if sparse.issparse(rows):
                scaled = sparse.csr_matrix(rows, copy=True)
                scaled.sum_duplicates()
                inside = np.clip(scaled.data, 0.0, self.upper_[scaled.indices]) / width[scaled.indices]
                scaled.data = inside.astype(rows.dtype)
                return scaled
            return ((np.clip(rows, lower, self.upper_) - lower) / width).astype(rows.dtype, copy=False)

    def _learn(self, oracle: PrivateOracle, rowmap: RowMap, n_features: int) -> tuple[dict[str, Any], Array]:
        lower, upper = self.ask_bounds(oracle, n_features)
        return {"lower_": lower, "upper_": upper}, np.stack([lower, upper])

    def _row_map(self, n_features: int) -> RowMap:
        return RowMap.declare(1.0, False, self.public_bounds(n_features), n_features)

    def _check(self, n_features: int, sparse_rows: bool) -> None:
        lower, _ = self.public_bounds(n_features)
        if sparse_rows and (self._pair()[0] > 0 or lower.any()):
            raise InvalidParameter(
                "sparse rows with a lower bound that may not be zero",
                "public lower bounds of 0 and quantiles=(0, high)",
                "pass dense rows, or clip from above only",
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False  # from above only, and only from zero
        return tags

    def _pair(self) -> tuple[float, float]:
        try:
            low, high = (float(level) for level in self.quantiles)
        except (TypeError, ValueError):
            low, high = np.nan, np.nan
        if not 0 <= low < high <= 1:
            raise InvalidParameter(
                f"quantiles={shown(self.quantiles)}", "(low, high) with 0 <= low < high <= 1", "correct the quantiles"
            )
        return low, high

    def _inner(self) -> list[float]:
        """The quantiles that must be asked for."""
        inner = [level for level in self._pair() if 0 < level < 1]
        if not inner:
            raise InvalidParameter("quantiles=(0, 1)", "a quantile between 0 and 1", "declare bounds alone instead")
        return inner


PrivateQuantileClipper.__doc__ = f"""{PrivateQuantileClipper.__doc__}{SHARE}{BUDGET}
    Attributes
    ----------
    lower_, upper_ : (d,)
        The private bounds.
    privacy_, plan_
        What was promised and asked, of a fit by itself.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(50, 10, (5000, 1))
    >>> clipper = PrivateQuantileClipper((0, 1000), epsilon=1.0, random_state=0).fit(X)
    >>> bool(abs(clipper.lower_[0] - 33.6) < 4 and abs(clipper.upper_[0] - 66.4) < 4)
    True
"""
