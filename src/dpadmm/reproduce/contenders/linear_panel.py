"""A panel of the figures about linear models: a table, a problem on it, and how a model is judged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpadmm.preparation.sparse_precision import edges_of
from dpadmm.problem import L1, Constraint, Problem
from dpadmm.problem.incidence import EdgeList, signed_incidence
from dpadmm.problem.losses import HuberisedHinge, Logistic
from dpadmm.reproduce.contenders.public_splits import PublicRows, SplitKind, mapped_rows, public_rows, signs
from dpadmm.reproduce.exhibit import Case
from dpadmm.solvers.exact_minimiser import objective

Array = NDArray[Any]
GRAPH_STRENGTH, EDGES_A_FEATURE = 0.1, 2
"""Penalty of the graphical lasso on correlations, and how many of its edges are kept: the paper gives neither."""


@dataclass(frozen=True)
class LinearPanel:
    """min (1/n)Σ loss + (ridge/2)‖x‖² + alpha‖Ax‖₁ with a free intercept, A = I ("l1") or A = [φ; I] ("graph").

    Parameters
    ----------
    title, table : str
        In the figure, and of the data set.
    split : {"halves", "folds", "simulated"}
        What is trained on.
    penalty : {"l1", "graph"}
        For "graph" φ is learned without noise from the training rows, as in Liu 2022: what is judged is the problem
        with that graph. It is NOT private; a private method learns a graph of its own.
    alpha, ridge : float
        λ₁ and λ₂ of Liu 2022.
    loss : {"logistic", "hinge"}
        The hinge is huberised with h = 0.5.
    batch_size : int or None
        Of the algorithms as printed; None takes √n.
    delta : float
        That the paper claims.
    """

    title: str
    table: str
    split: SplitKind = "halves"
    penalty: Literal["l1", "graph"] = "l1"
    alpha: float = 1e-4
    ridge: float = 0.0
    loss: Literal["logistic", "hinge"] = "logistic"
    batch_size: int | None = None
    delta: float = 5e-4

    @property
    def tables(self) -> tuple[str, ...]:
        return () if self.split == "simulated" else (self.table,)

    def rows(self, case: Case) -> PublicRows:
        seed = 0 if self.split == "halves" else case.seed
        return public_rows(self.table, self.split, seed, case.quick)

    def batch(self, rows: PublicRows) -> int:
        return round(np.sqrt(rows.n_rows)) if self.batch_size is None else self.batch_size

    def problem(self, rows: PublicRows) -> Problem:
        """What is minimised, with the graph of the training rows."""
        loss = Logistic() if self.loss == "logistic" else HuberisedHinge()
        size = rows.n_features + 1
        edges = data_graph(rows) if self.penalty == "graph" else ()
        if edges:
            constraint = Constraint.stacked(signed_incidence(edges, rows.n_features), 1)
        else:
            constraint = Constraint.identity(size, 1)
        return Problem(loss, L1(self.alpha), constraint, ridge=self.ridge)

    def judged(self, weights: Array, case: Case) -> dict[str, float]:
        """Objectives on training and test rows, accuracy and AUC of coefficients, the intercept last."""
        from sklearn.metrics import roc_auc_score

        rows = self.rows(case)
        train, test = mapped_rows(rows)
        problem, weights = self.problem(rows), np.asarray(weights, dtype=float).ravel()
        if not np.all(np.isfinite(weights)):
            return {"objective": np.inf, "test_objective": np.inf, "accuracy": np.nan, "auc": np.nan}
        scores, labels = test @ weights, signs(rows.y_test)
        return {
            "objective": objective(problem, train, signs(rows.y), weights),
            "test_objective": objective(problem, test, labels, weights),
            "accuracy": float(np.mean(np.where(scores > 0, 1.0, -1.0) == labels)),
            "auc": float(roc_auc_score(labels, scores)),
        }


@lru_cache(maxsize=8)
def data_graph(rows: PublicRows) -> EdgeList:
    """The sparse inverse covariance of the training rows, the strongest partial correlations: NOT private."""
    features = mapped_rows(rows)[0][:, :-1].astype(float)
    covariance = np.cov(features, rowvar=False)
    root = np.sqrt(np.maximum(np.diag(covariance), 1e-12))
    edges = edges_of(covariance / np.outer(root, root), GRAPH_STRENGTH)[: EDGES_A_FEATURE * rows.n_features]
    return tuple((i, j, float(np.sign(weight))) for i, j, weight in edges)
