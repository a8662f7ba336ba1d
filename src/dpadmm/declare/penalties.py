"""From the names users write ("l1", "fused", "graph", …) to a regulariser and a constraint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from dpadmm.errors import InvalidParameter, shown
from dpadmm.problem.checks import count, number
from dpadmm.problem.constraints import Constraint
from dpadmm.problem.regularizers import L1, MCP, SCAD, ElasticNet, GroupL2, Nuclear, SquaredL2, Zero
from dpadmm.problem.regularizers.base import Regularizer
from dpadmm.registry import Registry

REAL = (np.float32, np.float64)
"""Types of real numbers that sparse matrices and model files know everywhere; whole numbers and booleans are too."""


@dataclass(frozen=True)
class PenaltyChoice:
    """What the user asked for; the last `free` coordinates (the intercept) are never penalised."""

    alpha: float
    l1_ratio: float
    graph: Any
    groups: Any
    n_features: int
    free: int

    @property
    def size(self) -> int:
        return self.n_features + self.free


Built = tuple[Regularizer, Constraint]
PENALTIES: Registry[Callable[[PenaltyChoice], Built]] = Registry("penalty")


def build_penalty(name: str, choice: PenaltyChoice) -> Built:
    if name is None:
        name = "none"
    number("alpha", choice.alpha)
    return PENALTIES[name](choice)


def uses(name: str | None, parameter: str) -> bool:
    """Whether a penalty looks at `alpha` or at `l1_ratio`.

    Examples
    --------
    >>> uses("l1", "alpha"), uses("none", "alpha"), uses("l1", "l1_ratio")
    (True, False, False)
    """
    return name == "elasticnet" if parameter == "l1_ratio" else name not in (None, "none")


def is_matrix(graph: Any) -> bool:
    """Whether a graph is an array with one column a feature, and no list of edges."""
    return sparse.issparse(graph) or (isinstance(graph, np.ndarray) and graph.ndim == 2)


def require_storable(graph: Any) -> None:
    """Refuse a matrix that no model file could hold, before a budget is spent on a model with it."""
    if is_matrix(graph) and not (graph.dtype.kind in "biu" or graph.dtype in REAL):
        raise InvalidParameter(
            f"a graph matrix of type {graph.dtype.name}",
            "whole numbers, float32 or float64",
            "convert it: graph.astype(float)",
        )


ON_COEFFICIENTS: dict[str, Callable[[PenaltyChoice], Regularizer]] = {
    "none": lambda choice: Zero(),
    "l1": lambda choice: L1(choice.alpha),
    "l2": lambda choice: SquaredL2(choice.alpha),
    "elasticnet": lambda choice: ElasticNet(choice.alpha, choice.l1_ratio),
    "scad": lambda choice: SCAD(choice.alpha),
    "mcp": lambda choice: MCP(choice.alpha),
    "nuclear": lambda choice: Nuclear(choice.alpha),
    "group": lambda choice: GroupL2(choice.alpha, _parse_groups(choice.groups, choice.n_features)),
}


def _on_coefficients(name: str, choice: PenaltyChoice) -> Built:
    return ON_COEFFICIENTS[name](choice), Constraint.identity(choice.size, choice.free)


for _name in ON_COEFFICIENTS:
    PENALTIES.register(_name)(partial(_on_coefficients, _name))


@PENALTIES.register("fused")
def _fused(choice: PenaltyChoice) -> Built:
    """α‖Dx‖₁, D the differences of neighbouring features."""
    if choice.n_features < 2:
        return _on_coefficients("none", choice)
    return L1(choice.alpha), Constraint.chain(choice.size, choice.free)


@PENALTIES.register("graph")
def _graph(choice: PenaltyChoice) -> Built:
    """α(‖φx‖₁ + ‖x‖₁), the papers' A = [φ; I]; φ is a given array, or the incidence matrix of a list of edges."""
    if choice.graph is None:
        raise InvalidParameter(
            "penalty='graph' without a graph",
            "graph = a list of edges (i, j) or (i, j, weight), an array with one column a feature, or a PrivateGraph",
            "pass a graph that is public or was built from public data",
        )
    if sparse.issparse(choice.graph) or isinstance(choice.graph, np.ndarray):
        phi = sparse.csr_matrix(choice.graph, dtype=float)
    elif not isinstance(choice.graph, (list, tuple)) or any(np.ndim(edge) != 1 for edge in choice.graph):
        raise InvalidParameter(
            f"a graph of type {type(choice.graph).__name__} that is no list of edges",
            "a list of (i, j) or (i, j, weight), or an array with one column a feature",
            "pass the graph in one of these forms",
        )
    elif len(choice.graph) == 0:
        return _on_coefficients("l1", choice)
    else:
        phi = Constraint.graph(choice.graph, choice.n_features).A
    if phi.shape[1] != choice.n_features:
        raise InvalidParameter(
            f"a graph matrix of {phi.shape[1]} columns", f"{choice.n_features} columns", "give one column a feature"
        )
    return L1(choice.alpha), Constraint.stacked(phi, choice.free)


def _parse_groups(groups: Any, n_features: int) -> tuple[tuple[int, ...], ...]:
    """Groups as lists of feature numbers, or one label a feature."""
    if groups is None:
        raise InvalidParameter(
            "penalty='group' without groups", "groups = lists of feature numbers, or one label a feature", "pass groups"
        )
    try:
        members: Sequence[Any] = list(groups)
    except TypeError:
        raise InvalidParameter(
            f"groups={shown(groups)}", "lists of feature numbers, or one label a feature", "pass groups as a list"
        ) from None
    flat = [member for member in members if isinstance(member, str) or np.ndim(member) == 0]
    if flat and len(flat) != n_features:
        raise InvalidParameter(
            f"groups with {len(flat)} labels",
            f"lists of feature numbers, or one label for each of the {n_features} features",
            "correct the groups",
        )
    if len(members) == n_features and all(np.ndim(member) == 0 for member in members):
        labels = sorted(set(members), key=str)
        return tuple(tuple(i for i, own in enumerate(members) if own == label) for label in labels)
    return tuple(tuple(count("a feature number in groups", i) for i in group) for group in members)
