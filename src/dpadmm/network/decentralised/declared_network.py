"""All public choices of one decentralised training, and what follows from them before a row is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from dpadmm.declare.penalties import PenaltyChoice, build_penalty
from dpadmm.declare.recipe import make_smoother
from dpadmm.declare.target import (
    REGRESSIONS,
    Target,
    declared_classes,
    hinge_loss,
    logistic_loss,
    regression_loss,
    target_of_classes,
    target_of_range,
)
from dpadmm.errors import InvalidParameter, UnsupportedProblem, shown
from dpadmm.kernels.clipping import SMALLEST_CLIP
from dpadmm.network.decentralised.algorithms import NETWORK_ALGORITHMS, NetworkAlgorithm
from dpadmm.network.decentralised.graph_kinds import make_graph
from dpadmm.network.decentralised.graphs import NodeGraph
from dpadmm.network.decentralised.node_plans import plans_of_nodes
from dpadmm.network.decentralised.objective_price import PerturbedObjective
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.plan import Plan
from dpadmm.problem.checks import number
from dpadmm.problem.losses.base import Loss
from dpadmm.problem.problem import Problem
from dpadmm.problem.rowmap import RowMap

CLASSIFIERS: dict[str, Callable[[int], Loss]] = {"logistic": logistic_loss, "huberised-hinge": hinge_loss}
PRICES = ("proved-if-exact", "as-published")


@dataclass(frozen=True, eq=False, kw_only=True)
class DeclaredNetwork:
    """What a network is told, and nothing of its rows.

    Parameters
    ----------
    budget : Budget
        What each node promises about its own rows.
    algorithm : NetworkAlgorithm or str
        By its name with defaults and `options`, or as it is.
    graph : NodeGraph or str
        By its name (`make_graph`) with `graph_options`, or as it is.
    options, graph_options : dict
        For names alone.
    loss : {"logistic", "huberised-hinge", "squared", "huber"}
        Of the model.
    classes : sequence or None
        Of a classification: all labels, the same at every node, declared without looking.
    target_bounds : (float, float) or None
        Of a regression: the public range of the target.
    penalty, alpha, l1_ratio
        r: "none", "l1", "l2", "elasticnet", "group", … on all coefficients, each node's share being r/n.
    smoothing : None, number or Smoother
        What is done to noisy gradients ("ipadmm", "dp-admm").
    row_norm, fit_intercept, bounds
        The public map of each row. An intercept is penalised like every coefficient.
    clip_norm : float or None
        Of one row's gradient; the largest there can be if left out, or the loss's usual clip.
    sampler, batch_size
        Mini-batches of each node ("ipadmm", "dp-admm").
    invalid_rows : {"error", "zero"}
        As for estimators.
    price : {"proved-if-exact", "as-published"}
        Noise of "dvp" and "radmm": by a bound that assumes exact minima, or what the papers take, which is less.
    """

    budget: Budget
    algorithm: Any = "ipadmm"
    graph: Any = "complete"
    options: dict[str, Any] = field(default_factory=dict)
    graph_options: dict[str, Any] = field(default_factory=dict)
    loss: str = "logistic"
    classes: Sequence[Any] | None = None
    target_bounds: tuple[float, float] | None = None
    penalty: str = "l2"
    alpha: float = 1e-4
    l1_ratio: float = 0.5
    groups: Any = None
    smoothing: Any = None
    row_norm: float = 1.0
    fit_intercept: bool = False
    bounds: Any = None
    clip_norm: float | None = None
    sampler: str = "full"
    batch_size: int | None = None
    invalid_rows: str = "error"
    price: str = "proved-if-exact"

    def __post_init__(self) -> None:
        if self.price not in PRICES:
            raise InvalidParameter(f"price={shown(self.price)}", " or ".join(map(repr, PRICES)), "choose one of these")
        given = {"options": self.options, "smoothing": self.smoothing}
        _require_name("algorithm", self.algorithm, [name for name, value in given.items() if value])
        _require_name("graph", self.graph, ["graph_options"] if self.graph_options else [])

    @cached_property
    def target(self) -> Target:
        """What is public about labels or targets."""
        if self.loss in CLASSIFIERS:
            if self.classes is None:
                raise InvalidParameter(
                    f"loss={self.loss!r} without classes",
                    "classes=[…], the same list at every node",
                    "declare all labels that can occur: nodes cannot look at each other's",
                )
            return target_of_classes(CLASSIFIERS[self.loss], declared_classes(self.classes), None, "classes-declared")
        if self.loss in REGRESSIONS:
            return target_of_range(regression_loss(self.loss), self.target_bounds)
        known = ", ".join(map(repr, (*CLASSIFIERS, *REGRESSIONS)))
        raise InvalidParameter(f"loss={shown(self.loss)}", f"one of {known}", "choose a known loss")

    @cached_property
    def method(self) -> NetworkAlgorithm:
        """The algorithm itself."""
        if not isinstance(self.algorithm, str):
            return _require_algorithm(self.algorithm)
        chosen = dict(self.options)
        if self.smoothing is not None:
            chosen["smoother"] = make_smoother(self.smoothing, int(self.fit_intercept))
        kind: Any = NETWORK_ALGORITHMS[self.algorithm]
        try:
            return kind(**chosen)  # type: ignore[no-any-return]
        except TypeError:
            raise InvalidParameter(
                f"options {', '.join(sorted(chosen))} for algorithm {self.algorithm!r}",
                f"options among {', '.join(kind.__dataclass_fields__)}",
                "remove or rename the unknown option",
            ) from None

    def connected(self, n_nodes: int) -> NodeGraph:
        """The graph of so many nodes."""
        graph = make_graph(self.graph, n_nodes, **self.graph_options) if isinstance(self.graph, str) else self.graph
        if not isinstance(graph, NodeGraph) or graph.n_nodes != n_nodes:
            raise InvalidParameter(
                f"a graph of another number of nodes than the {n_nodes} tables", "one node a table", "correct the graph"
            )
        return graph

    def rowmap(self, n_features: int) -> RowMap:
        """How each row is mapped."""
        return RowMap.declare(self.row_norm, self.fit_intercept, self.bounds, n_features)

    def problem(self, n_features: int) -> Problem:
        """What the network minimises together, (1/n)·Σᵢ (mean loss at node i) + r/n; refused where it does not fit."""
        size = n_features + int(self.fit_intercept)
        choice = PenaltyChoice(self.alpha, self.l1_ratio, None, self.groups, size, 0)
        regularizer, constraint = build_penalty(self.penalty, choice)
        if not constraint.is_identity:
            raise UnsupportedProblem(
                f"penalty {self.penalty!r} in a decentralised network",
                "a penalty on the coefficients themselves: 'none', 'l1', 'l2', 'elasticnet', 'group', …",
                "choose one of these",
            )
        made = Problem(self.target.loss, regularizer, constraint, row_norm=self.row_norm)
        self.method.require_fits(made)
        return made

    @cached_property
    def clip(self) -> float:
        """C, the largest norm of one row's gradient."""
        if self.clip_norm is not None:
            return number("clip_norm", self.clip_norm, minimum=SMALLEST_CLIP, strict=True)
        loss = self.target.loss
        bound = loss.slope_bound if math.isfinite(loss.slope_bound) else (loss.usual_clip or 1.0)
        return bound * self.row_norm

    def plans(self, sizes: Sequence[int]) -> tuple[Plan, ...]:
        """The certified plan of each node, by its public number of rows."""
        return plans_of_nodes(self.method, self.budget, sizes, self.clip, self.sampler, self.batch_size)

    def perturbed(self, rows: int, problem: Problem, graph: NodeGraph) -> PerturbedObjective:
        """What a node of so many rows answers under "dvp" and "radmm"; the least degree counts, being the dearest."""
        curvature = 2.0 * self.method.rho * float(graph.degrees.min())
        return PerturbedObjective(self.method.asked, self.clip, rows, problem.smoothness, curvature)

    @cached_property
    def noise_of(self) -> Callable[[PerturbedObjective], float]:
        """The noise of a perturbed objective, by the price that was chosen."""
        prices = (PerturbedObjective.noise, PerturbedObjective.optimistic_noise)
        return partial(prices[PRICES.index(self.price)], budget=self.budget)


def _require_name(what: str, given: Any, further: list[str]) -> None:
    """Options make something of a name; beside a made object they would do nothing."""
    if further and not isinstance(given, str):
        raise InvalidParameter(
            f"{' and '.join(further)} beside {what} of type {type(given).__name__}",
            f"them with the name of a known {what} only",
            f"set them when you make the {what}",
        )


def _require_algorithm(given: Any) -> NetworkAlgorithm:
    if not any(type(given) is NETWORK_ALGORITHMS[name] for name in NETWORK_ALGORITHMS):
        raise InvalidParameter(
            f"algorithm of type {type(given).__name__}",
            "one of " + ", ".join(map(repr, NETWORK_ALGORITHMS)) + ", or one made of their classes",
            "choose a known algorithm",
        )
    made: NetworkAlgorithm = given
    return made
