"""The wiring shared by all estimators: declare, plan, train behind the barrier, state what was promised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from dpadmm import kernels
from dpadmm.cells.feature_tables import numeric_table, with_names
from dpadmm.cells.holders import brought_here, named
from dpadmm.declare.declaration import Declaration
from dpadmm.declare.recipe import Recipe
from dpadmm.declare.remarks import announce, remarks_on
from dpadmm.declare.target import Target
from dpadmm.declare.weights import DECLARED, row_weights
from dpadmm.errors import InvalidParameter
from dpadmm.estimators.declared_rows import fit_unit, nominal_rows, on_invalid_rows, require_scorable
from dpadmm.estimators.fit_size import work_of
from dpadmm.estimators.fit_table import (
    MemoryTable,
    OwnedByMany,
    OwnersTable,
    RemoteTable,
    assumed_of_persons,
    held_elsewhere,
    in_memory,
    persons_of,
    private_rows,
    require_single_rows,
)
from dpadmm.estimators.parameter_types import require_plain
from dpadmm.estimators.pipelines import NOTHING_ELSE, maps_before, require_nothing_learned_before
from dpadmm.estimators.standard_errors import Uncertain
from dpadmm.estimators.unknown_arguments import knows_its_names
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.assumptions import Assumption
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.server_address import PlaceParameter
from dpadmm.privacy.unit import Unit
from dpadmm.problem.checks import count
from dpadmm.problem.incidence import EdgeList, signed_incidence
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows.protocol import Rows
from dpadmm.sessions.progress_bar import progress_observer
from dpadmm.solvers.auto.noise_spread.transcript import Listener
from dpadmm.solvers.base import run

if TYPE_CHECKING:
    from dpadmm.privacy.selection import SearchPlan


@dataclass(frozen=True, eq=False)
class Prepared:
    """What is public of a fit up to the moment the first question is asked."""

    declaration: Declaration
    recipe: Recipe
    rowmap: RowMap
    target: Target
    assumptions: tuple[str | Assumption, ...]
    graph: EdgeList | None = None


NOT_CHOSEN = ("budget", "loss", "n_rows", "n_features", "counted", "weighted", "unit", "spares", "surplus")
CHOICES = tuple(field.name for field in fields(Declaration) if field.name not in NOT_CHOSEN)
"""Parameters of the estimators that a declaration takes as they are."""


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

    def declare_target(self, labels: NDArray[Any]) -> Target:
        """What is public about the target; classes that were not declared are read from `labels`."""
        raise TypeError("a subclass declares its target")

    def _store(self, weights: NDArray[np.float64]) -> None:
        """Set `coef_` and `intercept_` from the released weights."""
        raise TypeError("a subclass stores its coefficients")

    # -- before anything is read ---------------------------------------------------------------------------------

    def plan(self, n_rows: int, n_features: int, n_classes: int | None = None, unit: str = "row") -> Plan:
        """What `fit` will ask of such a table, with its noise, certified from public numbers alone.

        Parameters
        ----------
        n_rows, n_features : int
            Of the table; with unit="person", `n_rows` is the number of persons.
        n_classes : int, optional
            Of a classifier that declares no `classes`; 2 if left out.
        unit : {"row", "person"}
            Whose data is protected: "person" if `fit` will be given the ids of the persons.

        Examples
        --------
        >>> from dpadmm import DPLogisticRegression
        >>> plan = DPLogisticRegression(epsilon=1.0, delta=1e-6).plan(n_rows=50000, n_features=20)
        >>> plan.epsilon_achieved <= 1.0
        True
        """
        require_plain(self.get_params(deep=False))
        n_rows, n_features = count("n_rows", n_rows, minimum=1), count("n_features", n_features, minimum=1)
        classes = count("n_classes", 2 if n_classes is None else n_classes, minimum=2)
        target = self.declare_target(np.arange(classes))
        return self.declaration(n_rows, n_features, target, unit=fit_unit(unit)).plan

    def declaration(
        self, n_rows: int, n_features: int, target: Target, weighted: bool = False, unit: Unit = Unit.ROW
    ) -> Declaration:
        """All public choices of a fit on so many rows, or persons; `weighted` if rows have public weights."""
        budget = Budget(self.epsilon, self.delta, Relation.parse(self.relation))
        nominal, _ = nominal_rows(self.n_rows, n_rows, budget.relation, unit)
        parameters = self.get_params(deep=False)
        return Declaration(
            budget=budget,
            loss=target.loss,
            n_rows=nominal,
            n_features=n_features,
            counted=self.n_rows is None,
            weighted=weighted or target.weigh is not None,
            unit=unit,
            **{name: parameters[name] for name in CHOICES},
        )

    # -- training ------------------------------------------------------------------------------------------------

    @knows_its_names
    def fit(self, X: Any, y: Any = None, public_weight: Any = None, person: Any = None) -> Self:
        """Train on private rows. Every call spends the whole budget again.

        Parameters
        ----------
        X : (n, d) array, CSR matrix, DataFrame, dask array, dask DataFrame or torch tensor
            Rows. An array of type float32 stays so; lists and DataFrames are read cell by cell, in double precision.
            Rows held by Dask or on a device are summed there. Or a `dpadmm.network.Federation`, whose owners keep
            their rows and their labels.
        y : (n,)
            Labels or targets; left out for a federation.
        public_weight : (n,), optional
            Weights of the rows, at least zero; only their ratios matter. They must be public constants (of a survey's
            design, say), never computed from private rows: hence the name.
        person : (n,), optional
            Ids of the persons whose rows these are: numbers or texts. Then each person is protected with all their
            rows, however many they are (docs/persons.md), and `n_rows` is the public number of persons. Without ids
            a person with several rows is protected less.
        """
        # A floating-point warning about a private row would be a message about it.
        with np.errstate(all="ignore"):
            return self._fit(X, y, public_weight, person)

    def _fit(self, table: Any, y: Any, public_weight: Any, person: Any) -> Self:
        from dpadmm.sessions import Session

        require_plain(self.get_params(deep=False))
        require_nothing_learned_before(self)
        session = Session(self.ledger, self.dataset, self.random_state)
        prepared, rows = self.prepare(table, y, public_weight, person, session.afford)
        recipe, target = prepared.recipe, prepared.target
        features = recipe.problem.shape[0]
        sizes = [work_of(query, features, table, unit=recipe.plan.unit) for query in recipe.plan.queries]
        engine = kernels.choose(*sizes)
        settings = [self.get_params(deep=False)]
        budget, number, unit = recipe.plan.budget, recipe.plan.n_rows, recipe.plan.unit
        announce(remarks_on(budget, number, settings, features=features, unit=unit))
        kernels.announce(engine, *sizes)
        with session.carrying_out(recipe.plan, engine) as work:
            oracle = work.oracle(rows)
            with progress_observer(bool(self.verbose), recipe.solver.name) as observe:
                prepared = self._answered(prepared, oracle)
                solver, problem = prepared.recipe.solver, prepared.recipe.problem
                asked = self._listen(oracle, prepared.recipe, bool(prepared.declaration.budgeted.all))
                solution = run(solver, problem, asked, (observe,))
            work.release(solution.coefficients)
        validate_data(self, named(table), skip_check_array=True)
        self.maps_before_ = maps_before(self)
        if target.classes is not None:
            self.classes_ = target.classes
        self._release(prepared, solution.coefficients)
        self.privacy_ = work.statement(prepared.recipe.solver.name, prepared.assumptions)
        if isinstance(asked, Listener):
            self._transcript = asked.transcript(solver, problem)
        return self

    def prepare(
        self,
        table: Any,
        y: Any,
        public_weight: Any = None,
        person: Any = None,
        affordable: Callable[[Budget | Plan], None] = lambda wanted: None,
    ) -> tuple[Prepared, Rows]:
        """Declare, plan and map: all that `fit` does before anything is charged or asked. Nothing is released.

        What is public, and the private rows.

        `affordable` refuses a budget before the rows are looked at, and the plan before they are mapped.
        """
        require_plain(self.get_params(deep=False))
        budget = Budget(self.epsilon, self.delta, Relation.parse(self.relation))
        affordable(budget)
        given = self._given(table, y)
        target = self.declare_target(given.labels(self.reads_classes))
        if public_weight is not None and self.n_rows is not None:
            raise InvalidParameter(
                "public_weight with a declared n_rows",
                "one of the two",
                "drop public_weight: dividing by the largest weight would tell whether its row is there",
            )
        persons = persons_of(person, given.n_rows, public_weight, self.invalid_rows)
        weights = row_weights(brought_here(public_weight), given.n_rows)
        unit, number = (Unit.ROW, given.n_rows) if persons is None else (Unit.PERSON, persons.count)
        owned = isinstance(given, OwnersTable)
        if owned:
            require_single_rows("of many owners", persons)
        assumed = () if owned else nominal_rows(self.n_rows, number, budget.relation, unit)[1]
        declaration = self.declaration(number, given.n_features, target, weights is not None, unit)
        if isinstance(given, OwnersTable):
            declaration = given.adapted(declaration)
        recipe, rowmap = declaration.recipe, declaration.rowmap
        declaration.budgeted.require_usable(given.is_sparse)
        affordable(recipe.plan)
        rows = private_rows(given, rowmap, target, weights, recipe.plan, self.invalid_rows, persons)
        declared = (DECLARED,) if declaration.weighted else ()
        policy = on_invalid_rows(self.invalid_rows)
        about_ids = () if persons is None else assumed_of_persons(self.invalid_rows)
        assumptions = (*target.assumptions, *declared, *assumed, *about_ids, *policy, *given.assumptions, NOTHING_ELSE)
        return Prepared(declaration, recipe, rowmap, target, assumptions), rows

    def _answered(self, prepared: Prepared, oracle: PrivateOracle) -> Prepared:
        """Ask the budgeted steps; their answers stand where public declarations would."""
        declaration, rowmap, recipe = prepared.declaration, prepared.rowmap, prepared.recipe
        steps, n_features = declaration.budgeted, declaration.n_features
        if steps.bounds is not None:
            bounds = steps.bounds.ask_bounds(oracle, n_features)
            rowmap = RowMap.declare(rowmap.row_norm, rowmap.intercept, bounds, n_features)
            oracle.change_map(rowmap)
        graph = None
        if steps.graph is not None:
            graph = steps.graph.ask_graph(oracle, rowmap.intercept)
            recipe = declaration.completed(signed_incidence(graph, n_features) if graph else [])
        return replace(prepared, recipe=recipe, rowmap=rowmap, graph=graph)

    def become_zero(self, declaration: Declaration, target: Target) -> Self:
        """The model of all zeros, which has learned nothing."""
        self.row_map_, self.n_iter_ = declaration.rowmap, 0
        self.weights_ = np.zeros(declaration.problem.shape)
        if target.classes is not None:
            self.classes_ = target.classes
        self._store(self.weights_)
        return self

    def _release(self, prepared: Prepared, weights: NDArray[np.float64]) -> None:
        recipe = prepared.recipe
        self.row_map_ = prepared.rowmap
        if prepared.graph is not None:
            self.graph_ = prepared.graph
        self.weights_ = weights
        self.n_iter_ = recipe.solver.steps
        self.plan_ = recipe.plan
        self._store(weights)

    def _given(self, X: Any, y: Any) -> MemoryTable | RemoteTable | OwnersTable:
        """The table, left where it is if it is not in memory."""
        if isinstance(X, OwnedByMany):
            return X.for_model(self, y)
        held = None if y is None else held_elsewhere(X, y, self.invalid_rows == "zero")
        return in_memory(X, y, self.invalid_rows, self) if held is None else held

    @property
    def reads_classes(self) -> bool:
        """Whether classes are read from the labels, because none were declared."""
        return getattr(self, "classes", ()) is None

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

    def margins(self, X: Any) -> NDArray[np.float64]:
        """Scores of the mapped rows, in the units of the loss."""
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
