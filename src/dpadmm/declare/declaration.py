"""All public choices of one fit, from which problem, solver and certified plan follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dpadmm.declare.budgeted_steps import BudgetedSteps
from dpadmm.declare.penalties import Built, PenaltyChoice, build_penalty
from dpadmm.declare.recipe import Recipe, make_recipe, solver_class
from dpadmm.declare.resources import require_room
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.unit import Unit
from dpadmm.problem.losses.base import Loss
from dpadmm.problem.problem import Problem
from dpadmm.problem.rowmap import RowMap
from dpadmm.solvers.base import Solver


@dataclass(frozen=True, eq=False, kw_only=True)
class Declaration:
    """What one fit is told by its user, and nothing of its rows.

    Estimators, `dpadmm plan`, `dpadmm fit`, `dpadmm tune`, searches and audits each make one, and take the problem, the
    solver and the plan from it. Fields that are not described here mean what the parameter of `DPLogisticRegression`
    with the same name means, and None leaves the choice to the library.

    Parameters
    ----------
    budget : Budget
        What is promised.
    loss : Loss
        Of the model.
    n_rows : int
        The public number of rows: that of the table, or the nominal one that was declared.
    n_features : int
        Of the table, the intercept not among them.
    counted : bool
        Whether `n_rows` is the number of rows of the table, and not a nominal one.
    weighted : bool
        Whether rows or classes have public weights.
    unit : Unit
        Whose data is protected. Of persons `n_rows` is their number.
    spares : int
        How many questions more than needed are planned, of each kind that is asked more than once.
    surplus : float
        By how much the noise will be larger than planned, because many owners add it: 1 for one owner.

    Examples
    --------
    >>> from dpadmm.problem import Logistic
    >>> declared = Declaration(budget=Budget(1.0, 1e-6), loss=Logistic(), n_rows=50000, n_features=20, penalty="l1")
    >>> declared.recipe.solver.name, declared.plan.epsilon_achieved <= 1.0
    ('auto', True)
    """

    budget: Budget
    loss: Loss
    n_rows: int
    n_features: int
    counted: bool = True
    weighted: bool = False
    unit: Unit = Unit.ROW
    spares: int = 0
    surplus: float = 1.0
    penalty: str = "none"
    alpha: float = 1e-4
    l1_ratio: float = 0.5
    graph: Any = None
    groups: Any = None
    solver: str = "auto"
    smoothing: Any = None
    fit_intercept: bool = True
    row_norm: float | None = None
    bounds: Any = None
    clip_norm: float | None = None
    steps: int | None = None
    batch_size: int | None = None
    sampler: str | None = None
    accountant: str | None = None
    arithmetic: str = "granular"
    invalid_rows: str = "error"
    solver_options: Mapping[str, Any] | None = None

    @cached_property
    def budgeted(self) -> BudgetedSteps:
        """What is asked before training, within the same budget."""
        return BudgetedSteps.of(self.bounds, self.graph, self.penalty, self.n_features)

    @cached_property
    def rowmap(self) -> RowMap:
        """How each row is mapped, until a budgeted step says otherwise."""
        norm = 1.0 if self.row_norm is None else self.row_norm
        return RowMap.declare(norm, bool(self.fit_intercept), self.budgeted.public_bounds, self.n_features)

    @cached_property
    def problem(self) -> Problem:
        """What is minimised, as far as it is public before anything was asked."""
        require_room(self.n_features * self.loss.outputs)
        regularizer, constraint = self._penalised(self.budgeted.public_graph)
        # Exactly unit rows have a known mean square, but for rows that count less or a nominal number of them.
        exact = self.rowmap.unit_rows and self.counted and self.invalid_rows == "error" and not self.weighted
        return Problem(
            self.loss,
            regularizer,
            constraint,
            row_norm=self.rowmap.row_norm,
            unit_rows=exact,
            non_negative=self.rowmap.non_negative,
        )

    @cached_property
    def recipe(self) -> Recipe:
        """Problem, solver and certified plan."""
        return make_recipe(self)

    @property
    def plan(self) -> Plan:
        """The certified plan."""
        return self.recipe.plan

    @property
    def solver_class(self) -> type[Solver[Any]]:
        """Of the solver that is asked for, or that stands in for it."""
        return solver_class(self.solver, self.problem, self.smoothing, self.clip_norm)

    def completed(self, graph: Any) -> Recipe:
        """The recipe with the penalty that a learned graph gives."""
        regularizer, constraint = self._penalised(graph)
        return self.recipe.for_problem(replace(self.recipe.problem, regularizer=regularizer, constraint=constraint))

    def of_one_row(self) -> Declaration:
        """The same choices for a table of one row that is read in full.

        Its plan can always be certified, and making it looks at every other choice: what it refuses is refused whatever
        the number of rows.
        """
        sampler = "full" if self.solver_class.samples else self.sampler
        return replace(self, n_rows=1, sampler=sampler, batch_size=1, accountant=None)

    def _penalised(self, graph: Any) -> Built:
        free = int(self.rowmap.intercept)
        choice = PenaltyChoice(self.alpha, self.l1_ratio, graph, self.groups, self.n_features, free)
        return build_penalty(self.penalty, choice)
