"""This library's solvers on a panel: valid at the stated ε."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from dpadmm.declare.declaration import Declaration
from dpadmm.estimators.linear import DPLinearSVC, DPLogisticRegression
from dpadmm.preparation.private_graph import PrivateGraph
from dpadmm.problem.incidence import signed_incidence
from dpadmm.problem.problem import Problem
from dpadmm.reproduce.contenders.linear_panel import LinearPanel, data_graph
from dpadmm.reproduce.exhibit import Case, Numbers

GRAPH_SHARE = 0.2
"""Of the budget, for a private graph."""
Options = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class ValidSolver:
    """A solver with its public defaults, at δ = 1/n² or what a panel claims, whichever is less.

    Parameters
    ----------
    solver : str
        Its name.
    graph : {"private", "data"}
        Whether a graph is learned with a share of the budget, or from the rows as in Liu 2022, which is NOT private.
    smoothing : float
        ν of the ring Laplacian; 0 for none.
    options : tuple of (name, value)
        `solver_options`.
    parameters : tuple of (name, value)
        Other parameters of the estimator.
    ridged : bool
        Whether the solver takes the ridge of the panel, as its strongly convex part.
    """

    solver: str
    graph: Literal["private", "data"] = "private"
    smoothing: float = 0.0
    options: Options = ()
    parameters: Options = ()
    ridged: bool = True

    def __call__(self, case: Case) -> Numbers:
        panel: LinearPanel = case.panel
        rows = panel.rows(case)
        model = self.model(panel, case).fit(rows.X, rows.y)
        found = panel.judged(model.weights_, case)
        return {
            **found,
            "nonzeros": int(np.count_nonzero(model.coef_)),
            "plan": model.plan_.digest,
            **ranked(model, case),
        }

    def model(self, panel: LinearPanel, case: Case) -> DPLogisticRegression | DPLinearSVC:
        """The estimator before it is fitted."""
        rows = panel.rows(case)
        kind = RidgedLogisticRegression if panel.loss == "logistic" else RidgedLinearSVC
        model = kind(
            epsilon=case.x,
            delta=min(panel.delta, 1 / rows.n_rows**2),
            penalty=panel.penalty,
            alpha=panel.alpha,
            graph=self._graph(panel, case),
            solver=self.solver,
            smoothing=self.smoothing or None,
            classes=[-1, 1],
            solver_options=dict(self.options) or None,
            random_state=case.seed,
            **dict(self.parameters),
        )
        model.ridge = panel.ridge if self.ridged else 0.0
        return model

    def _graph(self, panel: LinearPanel, case: Case) -> Any:
        if panel.penalty != "graph":
            return None
        if self.graph == "private":
            return PrivateGraph(share=GRAPH_SHARE)
        rows = panel.rows(case)
        return signed_incidence(data_graph(rows), rows.n_features) if data_graph(rows) else []


def ranked(model: Any, case: Case) -> Numbers:
    """ξ_k of Chen & Lee 2020: the share of the relevant features among the k largest; of simulated tables alone."""
    if case.panel.split != "simulated":
        return {}
    order = np.argsort(-np.abs(np.ravel(model.coef_)))
    return coverage(order)


def coverage(order: Any, relevant: int = 20) -> Numbers:
    """ξ_k for the k of the paper, by the features in descending order; the first 20 features are the relevant ones.

    Examples
    --------
    >>> coverage(np.arange(100))["xi_20"], coverage(np.arange(100)[::-1])["xi_40"]
    (1.0, 0.0)
    """
    return {f"xi_{k}": float(np.mean(np.isin(np.arange(relevant), order[:k]))) for k in (20, 25, 30, 40)}


@dataclass(frozen=True, eq=False, kw_only=True)
class RidgedDeclaration(Declaration):
    """A declaration whose problem has a public ridge as well: the strongly convex problem of Liu 2022."""

    ridge: float = field(default=0.0)

    @cached_property
    def problem(self) -> Problem:
        return replace(super().problem, ridge=self.ridge)


class Ridged:
    """An estimator whose problem has a public ridge beside its penalty."""

    ridge = 0.0

    def declaration(self, *given: Any, **more: Any) -> Declaration:
        made = super().declaration(*given, **more)  # type: ignore[misc]
        same = {each.name: getattr(made, each.name) for each in fields(Declaration)}
        return RidgedDeclaration(ridge=self.ridge, **same)


class RidgedLogisticRegression(Ridged, DPLogisticRegression):
    """Logistic regression with a ridge."""


class RidgedLinearSVC(Ridged, DPLinearSVC):
    """The huberised SVM with a ridge."""
