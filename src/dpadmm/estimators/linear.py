"""The three estimators: logistic and softmax regression, the huberised SVM, and linear regression."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from dpadmm.cells.target_columns import distinct
from dpadmm.declare.target import (
    Target,
    declared_classes,
    declared_range,
    hinge_loss,
    logistic_loss,
    regression_loss,
    target_of_classes,
    target_of_range,
)
from dpadmm.errors import InvalidData
from dpadmm.estimators.base import PrivateLinearModel
from dpadmm.estimators.standard_errors import knows_its_noise
from dpadmm.estimators.unknown_arguments import knows_its_names
from dpadmm.problem.losses.base import Loss

if TYPE_CHECKING:
    from dpadmm.privacy.ledger import Ledger

PARAMETERS = """
    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one `fit`. delta must be below one over the number of rows.
    relation : {"replace-one", "add-remove"}
        Which tables count as neighbours.
    penalty : {"none", "l1", "l2", "elasticnet", "group", "fused", "graph", "nuclear", "scad", "mcp"}
        Penalty on the coefficients; the intercept is never penalised.
    alpha, l1_ratio : float
        Strength, and the L1 share of the elastic net.
    graph, groups
        Edges (or a matrix) for "graph"; feature groups for "group". Public; or, as `graph`, a
        `dpadmm.PrivateGraph(share=...)`, which learns the graph with a share of the budget.
    solver : {"auto", "full-admm", "dp-sadmm", "dp-vradmm", "ssadmm", "mpadmm", "noisy-admm", "dp-sgd", "dp-gd"}
        The algorithm. "auto" needs no tuning; beyond 3000 features it sees the mean row instead of a second moment, and
        stays linear in their number. With smoothing and with a given `clip_norm` it is "full-admm". "noisy-admm"
        releases and covers its last state only; see `dpadmm plan --solver noisy-admm` before choosing it.
    smoothing : None, float or smoother
        ν of a ring Laplacian, or a smoother object. Never changes the privacy.
    fit_intercept : bool
        Append a constant to each row; it counts in the row's norm.
    row_norm : float or None
        Declared bound on the norm of a row; longer rows are scaled down to it, in `fit` and in `predict` alike. None is
        1; without `bounds` there is then a warning, because nothing was declared about the features.
    bounds : (lower, upper) or None
        Declared range of each feature; values are clipped to it and scaled to [0, 1]. Or a
        `dpadmm.PrivateQuantileClipper(bounds, share=...)`, which finds a narrower one with a share of the budget.
    clip_norm : float or None
        Clip of one row's gradient. By default "auto" has a cap of its own rules; for the other solvers it is half of
        `row_norm`, up to all of it where noise is small, and twice `row_norm` for the squared loss. Where it is given,
        "auto" is replaced by "full-admm".
    steps, batch_size, sampler, accountant
        Of the solver; None leaves the choice to the library. Samplers: "truncated-poisson", "poisson", "fixed",
        "full". Accountants: "gaussian", "pld", "rdp".
    arithmetic : {"granular", "exact"}
        "granular" rounds sums and noise to a public grid and charges for it. "exact" sums integers and draws discrete
        Gaussian noise without any rounding; slower, for at most 2048 features, no weights and no hidden passes
        (solver "noisy-admm").
    invalid_rows : {"error", "zero"}
        What to do with a row that holds a NaN, an infinity or an undeclared label.
    n_rows : int or None
        Public nominal number of rows, for relation="add-remove".
    solver_options : dict or None
        Any further public field of the solver, such as step_size, beta, averaging or momentum.
    ledger : dpadmm.Ledger, path or None
        Record of what data sets have spent: charged before training, refuses a fit beyond the limit of `dataset`.
        Survives `clone` and grid search.
    dataset : str or None
        The owner's name for these rows in the ledger.
    random_state : None or int
        None draws noise from a cryptographic generator; an int makes the fit repeatable and NOT private.
    verbose : int
        1 shows a progress bar.
"""

CLASSES = """    classes : sequence or None
        Declared class labels.
    class_weight : dict or None
        Public weight of each label, 1 where none is given; only their ratios matter.
"""

ATTRIBUTES = """
    Attributes
    ----------
    coef_, intercept_ : ndarray
        In the units of the raw features, for a row that is not scaled. A row longer than `row_norm` counts by its
        own scale, so that `X @ coef_.T + intercept_` is not its score (docs/coefficients.md).
    coef_std_, intercept_std_ : ndarray
        Standard deviations of the coefficients over the privacy noise, the rows held fixed; computed when first asked
        for, by replays of the plan on the released answers (docs/uncertainty.md). Only for solver "auto".
    n_iter_ : int
        Steps taken: a public constant.
    privacy_ : PrivacyStatement
        What was promised. `print(model.privacy_)`.
    plan_ : Plan
        Every query that was asked of the data.
    graph_ : list of (i, j, weight)
        Edges of a private graph, if one was asked for.
"""


class _PrivateClassifier(ClassifierMixin, PrivateLinearModel):  # type: ignore[misc]
    classes: Sequence[Any] | None
    class_weight: Mapping[Any, float] | None

    @knows_its_names
    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        relation: str = "replace-one",
        penalty: str = "none",
        alpha: float = 1e-4,
        l1_ratio: float = 0.5,
        graph: Any = None,
        groups: Any = None,
        solver: str = "auto",
        smoothing: Any = None,
        fit_intercept: bool = True,
        row_norm: float | None = None,
        bounds: Any = None,
        clip_norm: float | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        sampler: str | None = None,
        accountant: str | None = None,
        arithmetic: str = "granular",
        classes: Sequence[Any] | None = None,
        class_weight: Mapping[Any, float] | None = None,
        invalid_rows: str = "error",
        n_rows: int | None = None,
        solver_options: Mapping[str, Any] | None = None,
        ledger: Ledger | str | Path | None = None,
        dataset: str | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._keep(locals())

    def _loss(self, n_classes: int) -> Loss:
        raise TypeError("a subclass names its loss")

    def declare_target(self, labels: NDArray[Any]) -> Target:
        if self.classes is not None:
            classes = declared_classes(self.classes)
            source = "classes-declared"
        else:
            classes = _observed_classes(labels, tolerant=self.invalid_rows == "zero")
            source = "classes-public"
        return target_of_classes(self._loss, classes, self.class_weight, source)

    def _store(self, weights: NDArray[np.float64]) -> None:
        coef, offset = self.row_map_.fold(weights)
        self.coef_, self.intercept_ = coef.T.copy(), offset

    @property
    def coef_std_(self) -> NDArray[np.float64]:
        return self._folded_std()[0].T.copy()

    @property
    def intercept_std_(self) -> NDArray[np.float64]:
        return self._folded_std()[1]

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores of the mapped rows: (n,) for two classes, (n, K) for more."""
        return self.margins(X)

    @available_if(knows_its_noise)  # type: ignore[untyped-decorator]
    def decision_std(self, X: Any) -> NDArray[np.float64]:
        """Standard deviation of each score over the privacy noise, in the shape of `decision_function`."""
        return self._margin_std(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Most likely class of each row."""
        scores = self.decision_function(X)
        winner = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[winner])


class DPLogisticRegression(_PrivateClassifier):
    """Differentially private logistic regression: binary, or softmax for more than two classes.

    Examples
    --------
    >>> import numpy as np
    >>> from dpadmm import DPLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (2000, 3)); y = (X[:, 0] > 0).astype(int)
    >>> model = DPLogisticRegression(epsilon=1.0, classes=[0, 1], random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> model.privacy_.seeded
    True
    """

    def _loss(self, n_classes: int) -> Loss:
        return logistic_loss(n_classes)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities of each row."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithms of the class probabilities."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return np.asarray(log_softmax(scores, axis=1))


class DPLinearSVC(_PrivateClassifier):
    """Differentially private linear support vector machine with the huberised hinge loss; two classes."""

    def _loss(self, n_classes: int) -> Loss:
        return hinge_loss(n_classes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class DPLinearRegression(RegressorMixin, PrivateLinearModel):  # type: ignore[misc]
    """Differentially private linear regression with squared or Huber loss.

    `loss` is "squared" or "huber"; `target_bounds` is the declared public range of y: targets are clipped to it and
    scaled to [−1, 1]. Without it the range is from −1 to 1, and `fit` warns. Clipped gradients pull predictions of
    skewed targets from the mean towards the median, the more so the smaller epsilon is; solver="full-admm" with the
    squared loss does not.

    Examples
    --------
    >>> import numpy as np
    >>> from dpadmm import DPLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, (5000, 2)); y = X @ [1.0, -1.0]
    >>> model = DPLinearRegression(epsilon=1.0, fit_intercept=False, random_state=0).fit(X, y)
    >>> bool(np.abs(model.coef_ - [1.0, -1.0]).max() < 0.2)
    True
    """

    @knows_its_names
    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        loss: str = "squared",
        target_bounds: tuple[float, float] | None = None,
        relation: str = "replace-one",
        penalty: str = "none",
        alpha: float = 1e-4,
        l1_ratio: float = 0.5,
        graph: Any = None,
        groups: Any = None,
        solver: str = "auto",
        smoothing: Any = None,
        fit_intercept: bool = True,
        row_norm: float | None = None,
        bounds: Any = None,
        clip_norm: float | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        sampler: str | None = None,
        accountant: str | None = None,
        arithmetic: str = "granular",
        invalid_rows: str = "error",
        n_rows: int | None = None,
        solver_options: Mapping[str, Any] | None = None,
        ledger: Ledger | str | Path | None = None,
        dataset: str | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._keep(locals())

    def declare_target(self, labels: NDArray[Any]) -> Target:
        return target_of_range(regression_loss(self.loss), self.target_bounds)

    def _store(self, weights: NDArray[np.float64]) -> None:
        coef, offset = self.row_map_.fold(weights)
        self.target_range_ = lower, upper = declared_range(self.target_bounds)
        half = (upper - lower) / 2
        self.coef_ = half * coef[:, 0]
        self.intercept_ = float(half * offset[0] + lower + half)

    @property
    def _half_range(self) -> float:
        lower, upper = self.target_range_
        return (upper - lower) / 2

    @property
    def coef_std_(self) -> NDArray[np.float64]:
        return self._half_range * self._folded_std()[0][:, 0]

    @property
    def intercept_std_(self) -> float:
        return self._half_range * float(self._folded_std()[1][0])

    @available_if(knows_its_noise)  # type: ignore[untyped-decorator]
    def predict_std(self, X: Any) -> NDArray[np.float64]:
        """Standard deviation of each prediction over the privacy noise."""
        return self._half_range * self._margin_std(X)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predicted targets of the mapped rows."""
        margins = self.margins(X)
        lower, upper = self.target_range_
        half = (upper - lower) / 2
        return half * margins + lower + half

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


for _model in (DPLogisticRegression, DPLinearSVC):
    _model.__doc__ = f"{_model.__doc__}{PARAMETERS}{CLASSES}{ATTRIBUTES}"
DPLinearRegression.__doc__ = f"{DPLinearRegression.__doc__}{PARAMETERS}{ATTRIBUTES}"


def _observed_classes(y: NDArray[Any], tolerant: bool) -> NDArray[Any]:
    from sklearn.utils.multiclass import check_classification_targets

    if y.dtype.kind == "f":
        finite = np.isfinite(y)
        if not (tolerant or finite.all()):
            raise InvalidData(
                "y with NaN or infinity (inf) in it", "finite labels", "clean the labels and declare `classes`"
            )
        y = y[finite]
    classes = declared_classes(distinct(y))
    with warnings.catch_warnings(), suppress(ValueError, TypeError):
        # A warning such as "more than half of the labels are unique" would tell something about the data.
        warnings.simplefilter("ignore")
        check_classification_targets(classes)
        return np.sort(classes)
    raise InvalidData(
        "labels that scikit-learn does not take for classes. Unknown label type: continuous numbers or bytes",
        "whole numbers, truth values or text",
        "use DPLinearRegression for a target that is a number, or declare `classes`",
    )
