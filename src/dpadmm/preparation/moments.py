"""The private second moment: released once with noise, then cleaned by what is known of the noise alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import InvalidParameter
from dpadmm.oracles.private import PrivateOracle
from dpadmm.preparation.base import BUDGET, PrivateTransformer
from dpadmm.preparation.covariance_cleaning import positive
from dpadmm.privacy.ledger import Ledger
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import FEATURE_MOMENT, FeatureMoment
from dpadmm.problem.rowmap import RowMap

Array = NDArray[np.float64]

LARGEST_DIMENSION = 3000
"""A second moment has d² entries, each with its own noise: beyond this many features it is all noise and memory."""

CLEAR = 4.0
"""Standard deviations of the noise above which a released number is believed to be positive."""


@dataclass(frozen=True, eq=False)
class NoisyMoment:
    """A released second moment of rows (features, 1), or of features alone.

    Parameters
    ----------
    matrix : (d, d)
        Symmetric.
    noise : float
        Standard deviation of the noise off the diagonal; on it the noise is √2 times as large.
    intercept : bool
        Whether the last coordinate is the constant, which lets the mean be taken off.
    n_rows : int
        Public number of rows.
    """

    matrix: Array
    noise: float
    intercept: bool
    n_rows: int

    @classmethod
    def ask(cls, oracle: PrivateOracle, intercept: bool) -> NoisyMoment:
        released = oracle.ask(FEATURE_MOMENT)
        noise = oracle.noise_std(FEATURE_MOMENT) / math.sqrt(2.0)
        return cls((released + released.T) / 2, noise, intercept, oracle.public_rows)

    @property
    def centred(self) -> bool:
        """Whether the constant is clear of the noise, so that dividing by its moment makes sense."""
        return self.intercept and bool(self.matrix[-1, -1] > CLEAR * math.sqrt(2.0) * self.noise)

    @property
    def mean(self) -> Array:
        """Mean features, each row weighed by the square of what scaled it down; zero where they are not centred."""
        if not self.centred:
            return np.zeros(len(self._features))
        return np.asarray(self.matrix[:-1, -1] / self.matrix[-1, -1])

    @property
    def covariance(self) -> Array:
        """Second moment of the features without that of their mean: a Schur complement."""
        if not self.centred:
            return self._features.copy()
        return np.asarray(self._features - self.matrix[-1, -1] * np.outer(self.mean, self.mean))

    @property
    def _features(self) -> Array:
        return self.matrix[:-1, :-1] if self.intercept else self.matrix

    @property
    def scale(self) -> Array:
        """What the covariance is divided by, on both sides, to carry nearly the same noise everywhere.

        Taking off the mean m adds noise: the variance of entry (i, j) grows from ν² to about
        ν²(1 + mᵢ² + mⱼ² + 2mᵢ²mⱼ²), which lies between one and two times ν²(1 + mᵢ²)(1 + mⱼ²).
        """
        return np.asarray(np.sqrt(1.0 + self.mean**2))

    @property
    def scaled_noise(self) -> float:
        """Standard deviation off the diagonal of the scaled covariance: that of the noise, at its largest, and of the
        rows themselves, which are a sample."""
        largest = float(np.max(self.mean**2, initial=0.0))
        added = self.noise**2 * (1 + 2 * largest + 2 * largest**2) / (1 + largest) ** 2
        variance = float(np.mean(np.diag(self.covariance) / self.scale**2))
        return math.sqrt(added + max(variance, 0.0) ** 2 / self.n_rows)


class MomentTransformer(PrivateTransformer):
    """Base of what is made from one second moment."""

    bounds: Any
    row_norm: float
    centred: bool

    def request(self, n_features: int) -> Request:
        return Request(FEATURE_MOMENT, 1, FeatureMoment())

    def _row_map(self, n_features: int) -> RowMap:
        return RowMap.declare(self.row_norm, bool(self.centred), self.bounds, n_features)

    def require_usable(self, n_features: int, sparse_rows: bool) -> None:
        """In a model its own row map holds, and another one would be forgotten silently."""
        super().require_usable(n_features, sparse_rows)
        if self.bounds is not None or self.row_norm != 1.0 or not self.centred:
            raise InvalidParameter(
                f"{type(self).__name__} with bounds, row_norm or centred, in a model",
                "those of the model",
                "give bounds, row_norm and fit_intercept to the model",
            )

    def _check(self, n_features: int, sparse_rows: bool) -> None:
        if n_features > LARGEST_DIMENSION:
            raise InvalidParameter(
                f"{n_features} features",
                f"at most {LARGEST_DIMENSION}",
                "choose fewer: the noise has d × d entries",
            )


class PrivateSecondMoment(MomentTransformer):
    """Releases the second moment of the rows with noise, and whitens rows by it.

    Parameters
    ----------
    bounds : (lower, upper) or None
        Public range of each feature, to which it is clipped and by which it is scaled to [0, 1].
    row_norm : float
        Public bound on the norm of a row, to which longer rows are scaled.
    centred : bool
        Append a constant to each row, which lets the mean be taken off; it counts in the norm.
    epsilon : float
        Budget of a `fit`."""

    def __init__(
        self,
        bounds: Any = None,
        row_norm: float = 1.0,
        centred: bool = True,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        relation: str = "replace-one",
        n_rows: int | None = None,
        invalid_rows: str = "error",
        ledger: Ledger | str | Path | None = None,
        dataset: str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.bounds = bounds
        self.row_norm = row_norm
        self.centred = centred
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.n_rows = n_rows
        self.invalid_rows = invalid_rows
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    def transform(self, X: Any) -> Array:
        """Whitened rows: mapped, freed of the mean, and stretched where they vary less, but not below the noise."""
        rows = self._rows(X)
        with np.errstate(all="ignore"):
            mapped = self.row_map_.apply(rows)[:, : self.n_features_in_]
            dense = mapped.toarray() if hasattr(mapped, "toarray") else mapped
            return np.asarray(dense @ self.whitening_.astype(dense.dtype))

    def _learn(self, oracle: PrivateOracle, rowmap: RowMap, n_features: int) -> tuple[dict[str, Any], Array]:
        moment = NoisyMoment.ask(oracle, rowmap.intercept)
        unit = rowmap.row_norm**2
        # Eigenvalues within the reach of the noise are not told apart.
        floor = 2.0 * moment.noise * math.sqrt(n_features)
        covariance = positive(moment.covariance, floor)
        values, vectors = np.linalg.eigh(covariance)
        whitening = (vectors * np.sqrt(values.mean() / values)) @ vectors.T
        learned = {
            "second_moment_": moment.matrix * unit,
            "covariance_": covariance * unit,
            "mean_": moment.mean,
            "whitening_": whitening,
            "noise_std_": moment.noise * unit,
            "row_map_": rowmap,
        }
        return learned, moment.matrix


PrivateSecondMoment.__doc__ = f"""{PrivateSecondMoment.__doc__}{BUDGET}
    Attributes
    ----------
    second_moment_ : (d, d) or (d + 1, d + 1)
        Mean of row rowᵀ with symmetric noise, the constant last where the rows are centred.
    covariance_ : (d, d)
        The same without the mean, its eigenvalues raised to the level of the noise.
    mean_ : (d,)
        Mean features.
    whitening_ : (d, d)
        covariance_^−½, scaled to keep the mean variance.
    noise_std_ : float
        Standard deviation of the noise off the diagonal of `second_moment_`; √2 times that on it.
    privacy_, plan_
        What was promised and asked.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (20000, 2)) @ [[1, 0], [0.9, 0.1]]
    >>> moment = PrivateSecondMoment(epsilon=1.0, random_state=0).fit(X)
    >>> before, after = np.cov(X.T), np.cov(moment.transform(X).T)
    >>> bool(before[0, 0] / before[1, 1] > 100 > 3 > after[0, 0] / after[1, 1])
    True
"""
