"""A private graph of features: which of them depend on each other when all others are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.estimators.row_maps import LaplacianBlur
from dpadmm.oracles.private import PrivateOracle
from dpadmm.preparation.base import BUDGET, SHARE
from dpadmm.preparation.covariance_cleaning import clean
from dpadmm.preparation.moments import MomentTransformer, NoisyMoment
from dpadmm.preparation.sparse_precision import Edge, edges_of
from dpadmm.privacy.ledger import Ledger
from dpadmm.problem.checks import count, number
from dpadmm.problem.incidence import EdgeList, signed_incidence
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.smoothers import GraphLaplacian

Array = NDArray[np.float64]


class PrivateGraph(MomentTransformer):
    """The sparse inverse covariance of private rows, as a graph of features.

    A second moment is released with noise. All else is post-processing: the mean is taken off, what noise may have made
    is cleaned away, and the graphical lasso of the rest gives edges with partial correlations. In a model,
    `DPLogisticRegression(penalty="graph", graph=PrivateGraph(share=0.2))`, they make the φ of A = [φ; I]: one row
    eᵢ − eⱼ for features that go together and eᵢ + eⱼ for features that exclude each other.

    Parameters
    ----------
    bounds, row_norm, centred
        As in `PrivateSecondMoment`; in a model its own row map holds instead.
    strictness : float
        Factor on what an entry must exceed to be told from noise, and on the penalty of the graphical lasso; at one,
        noise makes about one false edge for every ten features.
    max_edges : int or None
        Keep the strongest only; None keeps two a feature.
    weighted : bool
        Whether edges weigh as much as their partial correlation, or all the same.
    smoothing : float
        ν of `transform`, which averages features along the edges of positive partial correlation."""

    def __init__(
        self,
        bounds: Any = None,
        row_norm: float = 1.0,
        centred: bool = True,
        *,
        strictness: float = 1.0,
        max_edges: int | None = None,
        weighted: bool = False,
        smoothing: float = 1.0,
        share: float = 0.2,
        epsilon: float | None = None,
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
        self.strictness = strictness
        self.max_edges = max_edges
        self.weighted = weighted
        self.smoothing = smoothing
        self.share = share
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.n_rows = n_rows
        self.invalid_rows = invalid_rows
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    def ask_graph(self, oracle: PrivateOracle, intercept: bool) -> EdgeList:
        """Ask for the second moment and make the edges."""
        return self._edges(NoisyMoment.ask(oracle, intercept))

    def transform(self, X: Any) -> Array:
        """Rows averaged along the graph (`LaplacianBlur`); without edges they stay as they are."""
        rows = self._rows(X)
        alike = tuple((i, j, weight) for i, j, weight in self.edges_ if weight > 0)
        smoother = GraphLaplacian(number("smoothing", self.smoothing), alike, self.n_features_in_)
        dense = rows.toarray() if hasattr(rows, "toarray") else rows
        return LaplacianBlur(smoother).fit(dense).transform(dense)

    def _learn(self, oracle: PrivateOracle, rowmap: RowMap, n_features: int) -> tuple[dict[str, Any], Array]:
        moment = NoisyMoment.ask(oracle, rowmap.intercept)
        edges = self._edges(moment)
        return {"edges_": edges, "phi_": signed_incidence(edges, n_features)}, moment.matrix

    def _edges(self, moment: NoisyMoment) -> list[Edge]:
        covariance = moment.covariance / np.outer(moment.scale, moment.scale)
        cleaned = clean(covariance, moment.scaled_noise, float(self.strictness))
        limit = 2 * len(covariance) if self.max_edges is None else int(self.max_edges)
        found = edges_of(cleaned.matrix, cleaned.threshold)[:limit]
        return found if self.weighted else [(i, j, float(np.sign(weight))) for i, j, weight in found]

    def _check(self, n_features: int, sparse_rows: bool) -> None:
        super()._check(n_features, sparse_rows)
        number("strictness", self.strictness, strict=True)
        number("smoothing", self.smoothing)
        if self.max_edges is not None:
            count("max_edges", self.max_edges, minimum=1)


PrivateGraph.__doc__ = f"""{PrivateGraph.__doc__}{SHARE}{BUDGET}
    Attributes
    ----------
    edges_ : list of (i, j, weight)
        Strongest first; the weight has the sign of the partial correlation, and its size where `weighted`, else one.
    phi_ : sparse (edges, d)
        φ, to be passed as `graph` to a model.
    privacy_, plan_
        What was promised and asked, of a fit by itself.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, (20000, 4)); X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    >>> PrivateGraph(epsilon=1.0, random_state=0).fit(X).edges_[0][:2]
    (0, 1)
"""
