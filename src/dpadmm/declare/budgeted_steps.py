"""Budgeted steps: private answers in the places of a model where public declarations stand.

`bounds` and `graph` of a model take what is public. A step (`dpadmm.preparation`) may stand there instead: it says
beforehand what it will ask, is paid by a share of the model's own budget, and is asked before training through the
model's own oracle, so that there is one plan, one statement and one charge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpadmm.declare.penalties import require_storable
from dpadmm.errors import InvalidParameter
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.plan import Request
from dpadmm.problem.incidence import EdgeList

Array = NDArray[np.float64]


@runtime_checkable
class Step(Protocol):
    """What a model must know of a step before anything is asked."""

    share: float

    def request(self, n_features: int) -> Request:
        """What it will ask; its noise is fixed by the share."""
        ...

    def require_usable(self, n_features: int, sparse_rows: bool) -> None:
        """Refuse what cannot work, and a budget or ledger of its own: the model pays."""
        ...


@runtime_checkable
class BoundsStep(Step, Protocol):
    """Stands for `bounds`."""

    def public_bounds(self, n_features: int) -> tuple[Array, Array]:
        """Declared bounds within which it looks."""
        ...

    def ask_bounds(self, oracle: PrivateOracle, n_features: int) -> tuple[Array, Array]:
        """Lower and upper bounds made from released answers."""
        ...


@runtime_checkable
class GraphStep(Step, Protocol):
    """Stands for `graph`."""

    def ask_graph(self, oracle: PrivateOracle, intercept: bool) -> EdgeList:
        """Edges made from released answers; a negative weight is a negative relation."""
        ...


@dataclass(frozen=True)
class BudgetedSteps:
    """The steps of one fit, and what stands in for their answers until they are asked."""

    bounds: BoundsStep | None
    graph: GraphStep | None
    public_bounds: Any
    public_graph: Any
    n_features: int

    @classmethod
    def of(cls, bounds: Any, graph: Any, penalty: str, n_features: int) -> BudgetedSteps:
        """Sort what the user gave; a graph to come is stood for by its smallest relative."""
        _require_place("bounds", bounds, BoundsStep, "PrivateQuantileClipper")
        _require_place("graph", graph, GraphStep, "PrivateGraph")
        require_storable(graph)
        asked = graph if isinstance(graph, GraphStep) else None
        if asked is not None and penalty != "graph":
            raise InvalidParameter(
                f"a private graph with penalty={penalty!r}",
                "penalty='graph'",
                "choose that penalty, or drop the graph: it would be paid for and change nothing",
            )
        if not isinstance(bounds, BoundsStep):
            step, declared = None, bounds
        else:
            step, declared = bounds, bounds.public_bounds(n_features)
        stand_in = [(0, 1)] if n_features > 1 else []
        return cls(step, asked, declared, graph if asked is None else stand_in, n_features)

    @property
    def all(self) -> tuple[Step, ...]:
        return tuple(step for step in (self.bounds, self.graph) if step is not None)

    @property
    def requests(self) -> tuple[tuple[Request, float], ...]:
        """What will be asked before training, with the share of the budget it may cost."""
        return tuple((step.request(self.n_features), step.share) for step in self.all)

    def require_usable(self, sparse_rows: bool) -> None:
        for step in self.all:
            step.require_usable(self.n_features, sparse_rows)


def _require_place(parameter: str, given: Any, kind: type, name: str) -> None:
    """Refuse a transformer that does not answer the question of the parameter it was given for."""
    if hasattr(given, "get_params") and not isinstance(given, kind):
        raise InvalidParameter(
            f"{parameter}={type(given).__name__}(...)", f"{name}(...) as a step there", "exchange it"
        )
