"""Gradients of mini-batches in plain NumPy for the algorithms as printed. NOT private: nothing here is a release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.problem.problem import Problem

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class PrintedGradients:
    """Mean gradients of the loss over the rows named. Nothing is clipped: l = 1, because rows are at most one long.

    Parameters
    ----------
    problem : Problem
        Whose loss and ridge.
    X, target : arrays
        Mapped rows, labels −1 and +1.
    rng : Generator
        Draws batches without replacement, and noise.
    """

    problem: Problem
    X: Array
    target: Array
    rng: np.random.Generator

    @property
    def n_rows(self) -> int:
        return len(self.target)

    def batch(self, size: int) -> Array:
        """Distinct rows; for small batches of a large table drawn until they are distinct."""
        if size * size > self.n_rows:
            return self.rng.choice(self.n_rows, size, replace=False)
        drawn = self.rng.integers(self.n_rows, size=size)
        while len(set(drawn.tolist())) < size:
            drawn = self.rng.integers(self.n_rows, size=size)
        return drawn

    def mean(self, x: Array, rows: Array | None = None) -> Array:
        X, target = (self.X, self.target) if rows is None else (self.X[rows], self.target[rows])
        slopes = self.problem.loss.slope(X @ x.astype(X.dtype), target)
        gradient: Array = (slopes.astype(X.dtype) @ X).astype(float) / len(target)
        return gradient + self.problem.public_gradient(x)

    def mean_difference(self, x: Array, anchor: Array, rows: Array) -> Array:
        """Of the gradients at two points, over the same rows."""
        X, target = self.X[rows], self.target[rows]
        margins = X @ np.stack([x, anchor], axis=1).astype(X.dtype)
        slope = self.problem.loss.slope
        slopes = slope(margins[:, 0], target) - slope(margins[:, 1], target)
        difference: Array = (slopes.astype(X.dtype) @ X).astype(float) / len(target)
        return difference + self.problem.public_gradient(x - anchor)

    def noise(self, deviation: float) -> Array:
        return deviation * self.rng.standard_normal(self.problem.shape) if deviation else np.zeros(self.problem.shape)
