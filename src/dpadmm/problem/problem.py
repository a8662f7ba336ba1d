"""The problem itself: minimise (1/n)Σ loss + (ridge/2)‖x‖² + r(y) subject to Ax + By = c. It holds no data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpadmm.errors import InvalidParameter
from dpadmm.problem.checks import Array, number
from dpadmm.problem.constraints import Constraint
from dpadmm.problem.losses.base import Loss
from dpadmm.problem.regularizers import L1, GroupL2, Regularizer


@dataclass(frozen=True)
class Problem:
    """What is minimised, in public terms only.

    Parameters
    ----------
    loss : Loss
        Loss of one row.
    regularizer : Regularizer
        Penalty r on the auxiliary variable y.
    constraint : Constraint
        Ax + By = c.
    ridge : float
        Public quadratic (ridge/2)‖x‖² on all but the free coordinates, kept out of what is clipped and noised.
    row_norm : float
        Declared bound on the norm of every row, an intercept's column of ones included.
    unit_rows : bool
        Whether every row has exactly that norm.
    non_negative : bool
        Whether no entry of a row is negative, because the declared bounds map features to [0, 1].

    Examples
    --------
    >>> from dpadmm.problem import L1, Constraint, Logistic
    >>> lasso = Problem(Logistic(), L1(0.01), Constraint.identity(5), row_norm=2.0)
    >>> lasso.shape, lasso.smoothness, lasso.gradient_bound
    ((5,), 1.0, 2.0)
    """

    loss: Loss
    regularizer: Regularizer
    constraint: Constraint
    ridge: float = 0.0
    row_norm: float = 1.0
    unit_rows: bool = False
    non_negative: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "ridge", number("ridge", self.ridge))
        object.__setattr__(self, "row_norm", number("row_norm", self.row_norm, strict=True))
        rows = self.constraint.n_auxiliary
        if isinstance(self.regularizer, GroupL2) and self.regularizer.rows_needed > rows:
            raise InvalidParameter(
                f"a group with row {self.regularizer.rows_needed - 1}", f"rows below {rows}", "correct the groups"
            )
        if isinstance(self.regularizer, L1) and len(self.regularizer.weights or range(rows)) != rows:
            raise InvalidParameter("weights of another length", f"{rows} weights", "give one weight for each row of y")

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of x: (d,) for one output, (d, outputs) for several."""
        return self._with_outputs(self.constraint.n_features)

    @cached_property
    def smoothness(self) -> float:
        """Lipschitz constant of the gradient of any mean of row losses plus the ridge."""
        return self.loss.curvature_bound * self.row_norm**2 + self.ridge

    @property
    def gradient_bound(self) -> float:
        """Largest norm of one row's gradient; infinite where only clipping bounds it."""
        return self.loss.slope_bound * self.row_norm

    @property
    def convex(self) -> bool:
        """Whether every convergence claim for convex problems applies."""
        return self.regularizer.convex

    def public_gradient(self, x: Array) -> Array:
        """Gradient of the public ridge."""
        if self.ridge == 0.0:
            return np.zeros_like(x)
        return self.ridge_weights.reshape(-1, *([1] * (x.ndim - 1))) * x

    def penalty(self, x: Array) -> float:
        """r at the y that x determines, plus the ridge; needs B = −I."""
        return self.regularizer.value(self.constraint.feasible_auxiliary(x)) + self.ridge_value(x)

    def ridge_value(self, x: Array) -> float:
        """(ridge/2)‖x‖² without the free coordinates."""
        return float(np.sum(self.public_gradient(x) * x)) / 2

    @property
    def ridge_weights(self) -> Array:
        """The ridge of each coordinate: zero for the free ones."""
        free = self.constraint.free
        return np.concatenate([np.full(self.constraint.n_features - free, self.ridge), np.zeros(free)])

    def zeros(self) -> tuple[Array, Array, Array]:
        """Starting point (x, y, dual), all zero."""
        sizes = (self.constraint.n_features, self.constraint.n_auxiliary, self.constraint.n_rows)
        x, y, dual = (np.zeros(self._with_outputs(size)) for size in sizes)
        return x, y, dual

    def _with_outputs(self, size: int) -> tuple[int, ...]:
        return (size,) if self.loss.outputs == 1 else (size, self.loss.outputs)
