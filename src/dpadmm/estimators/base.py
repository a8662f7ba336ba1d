"""The wiring shared by all estimators: declare, plan, train behind the barrier, state what was promised."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from dpadmm import kernels
from dpadmm.errors import InvalidData, InvalidParameter
from dpadmm.estimators.input import numeric_table, one_column
from dpadmm.estimators.penalties import PenaltyChoice, build_penalty
from dpadmm.estimators.progress import progress_observer
from dpadmm.estimators.recipe import Choices, Recipe, make_recipe
from dpadmm.estimators.weights import DECLARED, row_weights
from dpadmm.kernels import Work
from dpadmm.oracles.base import PrivateOracle
from dpadmm.oracles.local import LocalRows
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.ledger import Ledger, Payment
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.problem.losses.base import Loss
from dpadmm.problem.problem import Problem
from dpadmm.problem.rowmap import RowMap, finite_rows
from dpadmm.randomness import make_streams
from dpadmm.solvers.base import run


@dataclass(frozen=True, eq=False)
class Target:
    """What is public about the target.

    `encode` gives targets as the loss wants them, and which of them are valid; `weigh`, if any, the weights of
    encoded targets, within [0, 1].
    """

    loss: Loss
    encode: Callable[[NDArray[Any]], tuple[NDArray[Any], NDArray[np.bool_]]]
    classes: NDArray[Any] | None = None
    assumptions: tuple[str, ...] = ()
    weigh: Callable[[NDArray[Any]], NDArray[np.float64]] | None = None


@dataclass(frozen=True, eq=False)
class Prepared:
    """A fit up to the moment the first question is asked; `rows` are private, the rest is public."""

    recipe: Recipe
    rows: LocalRows
    rowmap: RowMap
    target: Target
    assumptions: tuple[str, ...]


class PrivateLinearModel(BaseEstimator):  # type: ignore[misc]
    """Base of the private linear models; the parameters are those of `DPLogisticRegression`."""

    epsilon: float
    delta: float
    relation: str
    penalty: str
    alpha: float
    l1_ratio: float
    graph: Any
    groups: Any
    solver: str
    smoothing: Any
    fit_intercept: bool
    row_norm: float
    bounds: Any
    clip_norm: float | None
    steps: int | None
    batch_size: int | None
    sampler: str | None
    accountant: str | None
    invalid_rows: str
    n_rows: int | None
    solver_options: Mapping[str, Any] | None
    ledger: Ledger | str | Path | None
    dataset: str | None
    random_state: int | None
    verbose: int

    def _keep(self, parameters: dict[str, Any]) -> None:
        """`__init__` stores its arguments unchanged, under their own names; `fit` looks at them."""
        for name in self._get_param_names():
            setattr(self, name, parameters[name])

    # -- what a subclass decides ---------------------------------------------------------------------------------

    def _declare_target(self, y: NDArray[Any]) -> Target:
        """What is public about the target."""
        raise TypeError("a subclass declares its target")

    def _store(self, weights: NDArray[np.float64]) -> None:
        """Set `coef_` and `intercept_` from the released weights."""
        raise TypeError("a subclass stores its coefficients")

    # -- training ------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, public_weight: Any = None) -> Self:
        """Train on private rows. Every call spends the whole budget again.

        Parameters
        ----------
        X : (n, d) array, CSR matrix or DataFrame
            Rows. float32 stays float32.
        y : (n,)
            Labels or targets.
        public_weight : (n,), optional
            Weights of the rows, at least zero; only their ratios matter. They must be public constants (of a survey's
            design, say), never computed from private rows: hence the name.
        """
        # A floating-point warning about a private row would be a message about it.
        with np.errstate(all="ignore"):
            return self._fit(X, y, public_weight)

    def _fit(self, table: Any, y: Any, public_weight: Any) -> Self:
        streams = make_streams(self.random_state)
        payment = Payment(self.ledger, self.dataset, seeded=not streams.secret)
        prepared = self._prepared(table, y, public_weight, payment.check)
        recipe, target = prepared.recipe, prepared.target
        payment.reserve(recipe.plan)
        oracle = PrivateOracle(prepared.rows, recipe.plan, streams)
        engine = kernels.choose(*_work(recipe.plan, recipe.problem.shape[0]))
        try:
            with progress_observer(bool(self.verbose), recipe.solver.name) as observe, kernels.use(engine):
                solution = run(recipe.solver, recipe.problem, oracle, (observe,))
        except KeyboardInterrupt as interruption:
            interruption.add_note(
                "The fit was interrupted: no model was made, and the reserved budget counts as spent."
            )
            raise
        oracle.require_promise_kept()
        payment.commit(oracle.spent, solution.coefficients)
        validate_data(self, table, skip_check_array=True)
        if target.classes is not None:
            self.classes_ = target.classes
        self._release(prepared, solution.coefficients, seeded=not streams.secret)
        return self

    def _prepared(
        self,
        table: Any,
        y: Any,
        public_weight: Any = None,
        affordable: Callable[[Budget | Plan], None] = lambda wanted: None,
    ) -> Prepared:
        """Declare, plan and map: all that `fit` does before anything is charged or asked.

        `affordable` refuses a budget before the rows are looked at, and the plan before they are mapped.
        """
        budget = Budget(self.epsilon, self.delta, Relation.parse(self.relation))
        affordable(budget)
        X, y = self._validated(table, y)
        target = self._declare_target(y)
        if public_weight is not None and self.n_rows is not None:
            raise InvalidParameter(
                "public_weight with a declared n_rows",
                "one of the two",
                "drop public_weight: dividing by the largest weight would tell whether its row is there",
            )
        weights = row_weights(public_weight, len(y))
        weighted = not (weights is None and target.weigh is None)
        rowmap = RowMap.declare(self.row_norm, bool(self.fit_intercept), self.bounds, X.shape[1])
        nominal, assumed = self._nominal_rows(X.shape[0], budget.relation)
        problem = self._problem(target.loss, rowmap, X.shape[1], weighted)
        recipe = make_recipe(problem, budget, nominal, self._choices())
        affordable(recipe.plan)
        rows = self._private_rows(X, y, rowmap, target, weights)
        declared = (DECLARED,) if weighted else ()
        assumptions = (*target.assumptions, *declared, *assumed, *_on_invalid_rows(self.invalid_rows))
        return Prepared(recipe, rows, rowmap, target, assumptions)

    def _release(self, prepared: Prepared, weights: NDArray[np.float64], seeded: bool) -> None:
        recipe = prepared.recipe
        self.row_map_ = prepared.rowmap
        self.weights_ = weights
        self.n_iter_ = recipe.solver.steps
        self.plan_ = recipe.plan
        self.privacy_ = PrivacyStatement.of(recipe.plan, recipe.solver.name, prepared.assumptions, seeded)
        self._store(weights)

    def _problem(self, loss: Loss, rowmap: RowMap, n_features: int, weighted: bool) -> Problem:
        choice = PenaltyChoice(self.alpha, self.l1_ratio, self.graph, self.groups, n_features, int(rowmap.intercept))
        regularizer, constraint = build_penalty(self.penalty, choice)
        # Exactly unit rows have a known mean square, but for rows that count less or a nominal number of them.
        exact = rowmap.unit_rows and self.n_rows is None and self.invalid_rows == "error" and not weighted
        return Problem(
            loss,
            regularizer,
            constraint,
            row_norm=rowmap.row_norm,
            unit_rows=exact,
            non_negative=rowmap.non_negative,
        )

    def _choices(self) -> Choices:
        return Choices(
            self.solver,
            self.sampler,
            self.batch_size,
            self.steps,
            self.clip_norm,
            self.accountant,
            self.smoothing,
            self.solver_options,
        )

    def _nominal_rows(self, actual: int, relation: Relation) -> tuple[int, tuple[str, ...]]:
        """The public row count, and what has to be assumed about it."""
        if self.n_rows is None:
            if relation is Relation.REPLACE_ONE:
                return actual, ("the number of rows is public",)
            return actual, (
                "the number of rows was treated as public, so that removing a row means replacing it by an empty one; "
                "declare n_rows to protect the row count too",
            )
        if relation is Relation.REPLACE_ONE and self.n_rows != actual:
            raise InvalidParameter(
                "an n_rows that differs from the table under replace-one",
                "n_rows=None, or the number of rows",
                "drop n_rows; only relation='add-remove' takes a nominal row count",
            )
        if isinstance(self.n_rows, bool) or not isinstance(self.n_rows, (int, np.integer)) or self.n_rows < 1:
            raise InvalidParameter(f"n_rows={self.n_rows!r}", "a whole number >= 1", "declare a public row count")
        return int(self.n_rows), ("the nominal row count n_rows was declared from public knowledge",)

    def _private_rows(
        self, X: Any, y: NDArray[Any], rowmap: RowMap, declared: Target, weights: NDArray[np.float64] | None
    ) -> LocalRows:
        """Map the rows by the public rule; rows that break the declaration are refused or count as zero."""
        if self.invalid_rows not in ("error", "zero"):
            raise InvalidParameter(f"invalid_rows={self.invalid_rows!r}", "'error' or 'zero'", "choose one of these")
        target, valid = declared.encode(y)
        if self.invalid_rows == "error":
            if not finite_rows(X).all():
                raise InvalidData(
                    "X with NaN or infinity (inf) in it", "finite numbers", "clean the table, or invalid_rows='zero'"
                )
            if not valid.all():
                raise InvalidData(
                    "y with NaN, infinity (inf) or a label outside `classes`",
                    "declared labels or finite targets",
                    "declare all classes, clean the labels, or use invalid_rows='zero'",
                )
        if declared.weigh is not None:
            weights = declared.weigh(target) * (1.0 if weights is None else weights)
        return LocalRows(rowmap.pack(X, valid), target, declared.loss, rowmap.row_norm, weights)

    def _validated(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        tolerant = self.invalid_rows == "zero"
        if y is None:
            raise InvalidData("y=None; this estimator requires y to be passed, but the target y is None", "y", "pass y")
        X = check_array(
            numeric_table(X, tolerant),
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            estimator=self,
        )
        y = one_column(y)
        if len(y) != X.shape[0]:
            raise InvalidData("X and y of inconsistent lengths", "one label a row", "pass matching X and y")
        return X, y

    # -- use -----------------------------------------------------------------------------------------------------

    def _margins(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        X = validate_data(self, numeric_table(X), reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        mapped = self.row_map_.apply(X)
        return np.asarray(mapped @ self.weights_.astype(mapped.dtype, copy=False), dtype=np.float64)

    def save(self, path: str | Path) -> Path:
        """Write the model as a folder of `model.npz` and `model.json`; no pickle. See `dpadmm.load_model`."""
        from dpadmm.estimators.persistence import save_model

        return save_model(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.non_deterministic = self.random_state is None
        return tags


def _on_invalid_rows(policy: str) -> tuple[str, ...]:
    if policy == "zero":
        return ()
    return ("every row fits what was declared; had one not, the refusal to train would have told so",)


def _work(plan: Plan, n_features: int) -> Iterator[Work]:
    """The public size of what a plan asks for."""
    return (Work(query.readings, query.denominator, n_features) for query in plan.queries)
