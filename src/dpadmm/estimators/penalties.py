"""From the names users write ("l1", "fused", "graph", …) to a regulariser and a constraint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dpadmm.errors import InvalidParameter
from dpadmm.problem.checks import count, number
from dpadmm.problem.constraints import Constraint
from dpadmm.problem.regularizers import L1, MCP, SCAD, ElasticNet, GroupL2, Nuclear, SquaredL2, Zero
from dpadmm.problem.regularizers.base import Regularizer
from dpadmm.registry import Registry


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


def _on_coefficients(regularizer: Regularizer, choice: PenaltyChoice) -> Built:
    return regularizer, Constraint.identity(choice.size, choice.free)


@PENALTIES.register("none")
def _none(choice: PenaltyChoice) -> Built:
    return _on_coefficients(Zero(), choice)


@PENALTIES.register("l1")
def _l1(choice: PenaltyChoice) -> Built:
    return _on_coefficients(L1(choice.alpha), choice)


@PENALTIES.register("l2")
def _l2(choice: PenaltyChoice) -> Built:
    return _on_coefficients(SquaredL2(choice.alpha), choice)


@PENALTIES.register("elasticnet")
def _elasticnet(choice: PenaltyChoice) -> Built:
    return _on_coefficients(ElasticNet(choice.alpha, choice.l1_ratio), choice)


@PENALTIES.register("scad")
def _scad(choice: PenaltyChoice) -> Built:
    return _on_coefficients(SCAD(choice.alpha), choice)


@PENALTIES.register("mcp")
def _mcp(choice: PenaltyChoice) -> Built:
    return _on_coefficients(MCP(choice.alpha), choice)


@PENALTIES.register("nuclear")
def _nuclear(choice: PenaltyChoice) -> Built:
    return _on_coefficients(Nuclear(choice.alpha), choice)


@PENALTIES.register("group")
def _group(choice: PenaltyChoice) -> Built:
    return _on_coefficients(GroupL2(choice.alpha, _parse_groups(choice.groups, choice.n_features)), choice)


@PENALTIES.register("fused")
def _fused(choice: PenaltyChoice) -> Built:
    """α‖Dx‖₁, D the differences of neighbouring features."""
    if choice.n_features < 2:
        return _none(choice)
    return L1(choice.alpha), Constraint.chain(choice.size, choice.free)


@PENALTIES.register("graph")
def _graph(choice: PenaltyChoice) -> Built:
    """α(‖φx‖₁ + ‖x‖₁), the papers' A = [φ; I]; φ is a given array, or the incidence matrix of a list of edges."""
    if choice.graph is None:
        raise InvalidParameter(
            "penalty='graph' without a graph",
            "graph = a list of edges (i, j) or (i, j, weight), or an array with one column a feature",
            "pass a graph that is public or was built from public data",
        )
    if sparse.issparse(choice.graph) or isinstance(choice.graph, np.ndarray):
        phi = sparse.csr_matrix(choice.graph, dtype=float)
    elif len(choice.graph) == 0:
        return _l1(choice)
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
    members: Sequence[Any] = list(groups)
    if len(members) == n_features and all(np.ndim(member) == 0 for member in members):
        labels = sorted(set(members), key=str)
        return tuple(tuple(i for i, own in enumerate(members) if own == label) for label in labels)
    return tuple(tuple(count("a feature number in groups", i) for i in group) for group in members)
