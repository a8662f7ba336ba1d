"""The wiring shared by all estimators: declare, plan, train behind the barrier, state what was promised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from dpadmm import kernels
from dpadmm.cells.feature_tables import numeric_table, public_form, with_names
from dpadmm.cells.holders import brought_here, named
from dpadmm.cells.target_columns import has_public_type
from dpadmm.errors import InvalidData, InvalidParameter
from dpadmm.estimators.declared import (
    nominal_rows,
    on_invalid_rows,
    require_finite,
    require_policy,
    require_scorable,
    require_valid,
)
from dpadmm.estimators.given import Elsewhere, InMemory, held_elsewhere, require_summed_only
from dpadmm.estimators.habits import knows_its_names
from dpadmm.estimators.input import feature_table, label_column
from dpadmm.estimators.parameters import require_plain
from dpadmm.estimators.penalties import Built, PenaltyChoice, build_penalty
from dpadmm.estimators.pipelines import NOTHING_ELSE, require_nothing_learned_before
from dpadmm.estimators.progress import progress_observer
from dpadmm.estimators.recipe import Choices, Recipe, make_recipe
from dpadmm.estimators.remarks import announce, remarks_on
from dpadmm.estimators.room import require_room
from dpadmm.estimators.steps import Steps
from dpadmm.estimators.uncertainty import Uncertain
from dpadmm.estimators.weights import DECLARED, row_weights
from dpadmm.estimators.work import work_of
from dpadmm.oracles.base import PrivateOracle
from dpadmm.privacy.address import PlaceParameter
from dpadmm.privacy.arithmetic import Arithmetic, most_rows
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.problem.incidence import EdgeList, signed_incidence
from dpadmm.problem.losses.base import Loss
from dpadmm.problem.problem import Problem
from dpadmm.problem.rowmap import RowMap
from dpadmm.randomness import make_streams
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from dpadmm.rows.protocol import Rows
from dpadmm.solvers.auto.spread.transcript import Listener
from dpadmm.solvers.base import run

if TYPE_CHECKING:
    from dpadmm.privacy.selection import SearchPlan


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
    rows: Rows
    rowmap: RowMap
    target: Target
    assumptions: tuple[str, ...]
    steps: Steps
    graph: EdgeList | None = None


class PrivateLinearModel(Uncertain, BaseEstimator):  # type: ignore[misc]
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
    row_norm: float | None
    bounds: Any
    clip_norm: float | None
    steps: int | None
    batch_size: int | None
    sampler: str | None
    accountant: str | None
    arithmetic: str
    invalid_rows: str
    n_rows: int | None
    solver_options: Mapping[str, Any] | None
    ledger = PlaceParameter()
    dataset: str | None
    random_state: int | None
    verbose: int
    plan_: Plan | SearchPlan

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

    @knows_its_names
    def fit(self, X: Any, y: Any, public_weight: Any = None) -> Self:
        """Train on private rows. Every call spends the whole budget again.

        Parameters
        ----------
        X : (n, d) array, CSR matrix, DataFrame, dask array, dask DataFrame or torch tensor
            Rows. An array of type float32 stays so; lists and DataFrames are read cell by cell, in double precision.
            Rows held by Dask or on a device are summed there.
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
        from dpadmm.privacy.ledger import Payment

        require_plain(self.get_params(deep=False))
        require_nothing_learned_before(self)
        streams = make_streams(self.random_state)
        payment = Payment(self.ledger, self.dataset, seeded=not streams.secret)
        prepared = self._prepared(table, y, public_weight, payment.check)
        recipe, target = prepared.recipe, prepared.target
        features = recipe.problem.shape[0]
        work = [work_of(query, features, table) for query in recipe.plan.queries]
        engine = kernels.choose(*work)
        settings = [self.get_params(deep=False)]
        announce(remarks_on(recipe.plan.budget, recipe.plan.n_rows, settings, features=features))
        kernels.announce(engine, *work)
        with payment.reserving(recipe.plan):
            oracle = PrivateOracle(prepared.rows, recipe.plan, streams)
            with progress_observer(bool(self.verbose), recipe.solver.name) as observe, kernels.use(engine):
                prepared = self._answered(prepared, oracle)
                solver, problem = prepared.recipe.solver, prepared.recipe.problem
                asked = self._listen(oracle, prepared.recipe, bool(prepared.steps.all))
                solution = run(solver, problem, asked, (observe,))
            oracle.require_promise_kept()
            payment.commit(oracle.spent, solution.coefficients)
        validate_data(self, named(table), skip_check_array=True)
        if target.classes is not None:
            self.classes_ = target.classes
        self._release(prepared, solution.coefficients, seeded=not streams.secret)
        if isinstance(asked, Listener):
            self._transcript = asked.transcript(solver, problem)
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
        require_plain(self.get_params(deep=False))
        budget = Budget(self.epsilon, self.delta, Relation.parse(self.relation))
        affordable(budget)
        given = self._given(table, y)
        target = self._declare_target(given.labels(self._reads_classes))
        if public_weight is not None and self.n_rows is not None:
            raise InvalidParameter(
                "public_weight with a declared n_rows",
                "one of the two",
                "drop public_weight: dividing by the largest weight would tell whether its row is there",
            )
        weights = row_weights(brought_here(public_weight), given.n_rows)
        weighted = not (weights is None and target.weigh is None)
        nominal, assumed = nominal_rows(self.n_rows, given.n_rows, budget.relation)
        recipe, rowmap, steps = self._recipe(budget, target.loss, nominal, given.n_features, weighted)
        steps.require_usable(given.is_sparse)
        affordable(recipe.plan)
        rows = self._private_rows(given, rowmap, target, weights, recipe.plan)
        declared = (DECLARED,) if weighted else ()
        policy = on_invalid_rows(self.invalid_rows)
        assumptions = (*target.assumptions, *declared, *assumed, *policy, *given.assumptions, NOTHING_ELSE)
        return Prepared(recipe, rows, rowmap, target, assumptions, steps)

    def _answered(self, prepared: Prepared, oracle: PrivateOracle) -> Prepared:
        """Ask the budgeted steps; their answers stand where public declarations would."""
        steps, rowmap, recipe = prepared.steps, prepared.rowmap, prepared.recipe
        if steps.bounds is not None:
            bounds = steps.bounds.ask_bounds(oracle, steps.n_features)
            rowmap = RowMap.declare(rowmap.row_norm, rowmap.intercept, bounds, steps.n_features)
            oracle.change_map(rowmap)
        graph = None
        if steps.graph is not None:
            graph = steps.graph.ask_graph(oracle, rowmap.intercept)
            phi = signed_incidence(graph, steps.n_features) if graph else []
            regularizer, constraint = self._penalty(rowmap, steps.n_features, phi)
            recipe = recipe.for_problem(replace(recipe.problem, regularizer=regularizer, constraint=constraint))
        return replace(prepared, recipe=recipe, rowmap=rowmap, graph=graph)

    def _recipe(
        self, budget: Budget, loss: Loss, n_rows: int, n_features: int, weighted: bool
    ) -> tuple[Recipe, RowMap, Steps]:
        """Solver and certified plan, the map of rows, and the budgeted steps, all from public numbers."""
        require_room(n_features * loss.outputs)
        steps = Steps.of(self.bounds, self.graph, self.penalty, n_features)
        rowmap = RowMap.declare(self._row_norm, bool(self.fit_intercept), steps.public_bounds, n_features)
        problem = self._problem(loss, rowmap, n_features, weighted, steps.public_graph)
        return make_recipe(problem, budget, n_rows, self._choices(weighted), steps.requests), rowmap, steps

    @property
    def _row_norm(self) -> float:
        return 1.0 if self.row_norm is None else self.row_norm

    def _release(self, prepared: Prepared, weights: NDArray[np.float64], seeded: bool) -> None:
        recipe = prepared.recipe
        self.row_map_ = prepared.rowmap
        if prepared.graph is not None:
            self.graph_ = prepared.graph
        self.weights_ = weights
        self.n_iter_ = recipe.solver.steps
        self.plan_ = recipe.plan
        self.privacy_ = PrivacyStatement.of(recipe.plan, recipe.solver.name, prepared.assumptions, seeded)
        self._store(weights)

    def _penalty(self, rowmap: RowMap, n_features: int, graph: Any) -> Built:
        choice = PenaltyChoice(self.alpha, self.l1_ratio, graph, self.groups, n_features, int(rowmap.intercept))
        return build_penalty(self.penalty, choice)

    def _problem(self, loss: Loss, rowmap: RowMap, n_features: int, weighted: bool, graph: Any) -> Problem:
        regularizer, constraint = self._penalty(rowmap, n_features, graph)
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

    def _choices(self, weighted: bool) -> Choices:
        return Choices(
            self.solver,
            self.sampler,
            self.batch_size,
            self.steps,
            self.clip_norm,
            self.accountant,
            self.smoothing,
            self.solver_options,
            self.arithmetic,
            weighted,
        )

    def _private_rows(
        self,
        given: InMemory | Elsewhere,
        rowmap: RowMap,
        declared: Target,
        weights: NDArray[np.float64] | None,
        plan: Plan,
    ) -> Rows:
        """Map the rows by the public rule; rows that break the declaration are refused or count as zero."""
        if not isinstance(given, InMemory):
            require_policy(self.invalid_rows)
            require_summed_only(given.place, plan)
            return given.rows(rowmap, declared, weights, strict=self.invalid_rows == "error")
        X = given.X
        target, valid = self._encoded(X, given.y, declared)
        if plan.arithmetic is Arithmetic.EXACT:
            from dpadmm.rows.lattice_rows import LatticeRows

            limit = most_rows(plan.n_rows, plan.budget.relation)
            return LatticeRows(PackedRows.of(rowmap, X, valid), target, declared.loss, rowmap.row_norm, limit)
        if declared.weigh is not None:
            weights = declared.weigh(target) * (1.0 if weights is None else weights)
        return LocalRows(PackedRows.of(rowmap, X, valid), target, declared.loss, rowmap.row_norm, weights)

    def _encoded(self, X: Any, y: NDArray[Any], declared: Target) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """Targets as the loss wants them and which are valid, or None: invalid rows are refused, if so declared."""
        require_policy(self.invalid_rows)
        target, valid = declared.encode(y)
        if self.invalid_rows != "error":
            return target, valid
        require_finite(X)
        require_valid(labelled=bool(valid.all()))
        return target, None

    def _given(self, X: Any, y: Any) -> InMemory | Elsewhere:
        """The table, left where it is if it is not in memory."""
        held = None if y is None else held_elsewhere(X, y, self.invalid_rows == "zero")
        return self._validated(X, y) if held is None else held

    @property
    def _reads_classes(self) -> bool:
        return getattr(self, "classes", ()) is None

    def _validated(self, table: Any, y: Any) -> InMemory:
        tolerant = self.invalid_rows == "zero"
        if y is None:
            raise InvalidData("y=None; this estimator requires y to be passed, but the target y is None", "y", "pass y")
        X = feature_table(table, tolerant, self)
        column = label_column(y)
        if len(column) != X.shape[0]:
            raise InvalidData("X and y of inconsistent lengths", "one label a row", "pass matching X and y")
        return InMemory(X, column, public_form(table, X, refuses=not tolerant), has_public_type(y))

    # -- use -----------------------------------------------------------------------------------------------------

    def _mapped(self, X: Any) -> Any:
        check_is_fitted(self)
        X = validate_data(
            self,
            with_names(numeric_table(X), X),
            reset=False,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
        )
        require_scorable(X)
        return self.row_map_.apply(X)

    def _margin_std(self, X: Any) -> NDArray[np.float64]:
        mapped = self._mapped(X)
        return self._noise_spread().margin_std(mapped)

    def _margins(self, X: Any) -> NDArray[np.float64]:
        mapped = self._mapped(X)
        return np.asarray(mapped @ self.weights_.astype(mapped.dtype, copy=False), dtype=np.float64)

    def save(self, path: str | Path, force: bool = False) -> Path:
        """Write the model as a folder of `model.npz` and `model.json`; no pickle. See `dpadmm.load_model`.

        `score.py` and `score.sql` beside them score rows without this library (docs/coefficients.md).
        A folder that holds anything is refused; with `force` an earlier model is replaced.
        """
        from dpadmm.estimators.persistence import save_model

        return save_model(self, path, force)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.non_deterministic = self.random_state is None
        return tags
