"""Train one model on the tables of many owners, none of whom shows a row: the whole of it in one call."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm import kernels
from dpadmm.errors import InvalidParameter, UnsupportedProblem
from dpadmm.estimators.sklearn_input import feature_table
from dpadmm.files import replacing
from dpadmm.kernels import FitSize
from dpadmm.network.decentralised.declared_network import DeclaredNetwork
from dpadmm.network.decentralised.graphs import NodeGraph
from dpadmm.network.decentralised.node_plans import require_whole_tables
from dpadmm.network.decentralised.party import HeuristicParty, NodeTable, Party, table_of_node
from dpadmm.network.decentralised.promises import Promise
from dpadmm.network.decentralised.rounds import NetworkRounds, RoundObserver
from dpadmm.privacy.budget import Budget
from dpadmm.problem.problem import Problem
from dpadmm.problem.rowmap import RowMap
from dpadmm.randomness import public_generator
from dpadmm.sessions.session import Session

Array = NDArray[np.float64]
Table = tuple[Any, Any]


@dataclass(frozen=True, eq=False)
class DecentralisedModel:
    """What a network ends with. All of it is released, and covered by the promises.

    Attributes
    ----------
    last, average : (nodes, …)
        The last broadcast of each node, and the mean of all of them, in mapped features.
    output : {"average", "last"}
        Which of the two the algorithm is meant to end with.
    members : tuple of int
        The nodes that stayed until the end, by their numbers; models stand in their order.
    promises : tuple
        One a node, of those that left too: proved, heuristic or none, with its text.
    declared, graph, problem, rowmap
        Public.
    """

    last: Array
    average: Array
    output: str
    members: tuple[int, ...]
    promises: tuple[Promise, ...]
    declared: DeclaredNetwork
    graph: NodeGraph
    problem: Problem
    rowmap: RowMap

    @property
    def weights(self) -> Array:
        """One model a node."""
        return self.average if self.output == "average" else self.last

    @property
    def consensus(self) -> Array:
        """The mean of all nodes' models: what the network would agree on."""
        return np.asarray(self.weights.mean(axis=0))

    @property
    def private(self) -> bool:
        """Whether every node has a promise that is proved, and noise that nobody can repeat."""
        return all(promise.holds for promise in self.promises)

    def summary(self) -> dict[str, Any]:
        """What may be told of the run, for JSON."""
        declared = self.declared
        return {
            "algorithm": declared.method.name,
            "nodes": self.graph.n_nodes,
            "edges": len(self.graph.edges),
            "rounds": declared.method.rounds,
            "output": self.output,
            "epsilon": declared.budget.epsilon if self.private else None,
            "delta": declared.budget.delta if self.private else None,
            "private": self.private,
            "promises": [promise.text for promise in self.promises],
        }

    def save(self, folder: str | Path) -> None:
        """`models.npz` (last, average: one model a node, in mapped features) and `network.json` (the summary)."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        with replacing(target / "models.npz") as stream:
            np.savez_compressed(stream, last=self.last, average=self.average)
        with replacing(target / "network.json") as stream:
            stream.write(json.dumps(self.summary(), indent=2, ensure_ascii=False).encode())

    def decision(self, X: Any, node: int | None = None) -> Array:
        """Margins of rows under the consensus, or under the model of one node."""
        model = self.consensus if node is None else self.weights[self.members.index(node)]
        table = feature_table(X, True, "a decentralised model")
        if table.shape[1] != self.problem.shape[0] - int(self.rowmap.intercept):
            raise InvalidParameter("rows of another width than in training", "the same features", "correct the table")
        return np.asarray(self.rowmap.apply(table) @ model)

    def predict(self, X: Any, node: int | None = None) -> NDArray[Any]:
        """Labels, or numbers in the range of the target."""
        margins, target = self.decision(X, node), self.declared.target
        if target.classes is None:
            assert target.range is not None
            low, high = target.range
            return low + (np.clip(margins, -1.0, 1.0) + 1.0) * (high - low) / 2.0
        places = (margins > 0).astype(int) if margins.ndim == 1 else margins.argmax(axis=1)
        return np.asarray(target.classes[places])


def train_decentralised(
    tables: Sequence[Table],
    epsilon: float = 1.0,
    delta: float = 1e-5,
    *,
    relation: str = "replace-one",
    n_rows: Sequence[int] | None = None,
    ledgers: Sequence[Any] | None = None,
    datasets: Sequence[str | None] | None = None,
    random_state: int | None = None,
    observers: Iterable[RoundObserver] = (),
    **choices: Any,
) -> DecentralisedModel:
    """One model for many owners by decentralised ADMM; each node promises (ε, δ) about its own rows.

    Parameters
    ----------
    tables : sequence of (X, y)
        One a node, in the order of the graph's nodes.
    epsilon, delta, relation
        What each node promises.
    n_rows : sequence of int, optional
        Under relation "add-remove": the declared number of rows of each node.
    ledgers, datasets : sequences, optional
        One a node: who keeps the record of what its rows spent, and under which name.
    random_state : int, optional
        Makes the noise repeatable, and the result NOT private.
    observers : iterable
        Called after each round with the `NetworkRounds`: what was sent so far is released. One may decide that the
        others go on without a node (`go_on_without`).
    **choices
        Fields of `DeclaredNetwork`: algorithm, graph, options, loss, classes, penalty, alpha, sampler, …

    Returns
    -------
    DecentralisedModel
        `promises` says what each node promises, or that its ε is heuristic.

    Formal guarantees
    -----------------
    docs/proofs/decentralised.md. Each node is charged with its whole plan before the first round, and whatever ends
    the rounds early leaves it charged.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (400, 3))
    >>> y = np.where(X[:, 0] > 0, 1, -1)
    >>> model = train_decentralised(
    ...     deal(X, y, 4), 1.0, 1e-3, classes=[-1, 1], graph="ring", options={"rounds": 5, "local_steps": 2}
    ... )
    >>> model.weights.shape, model.private, model.promises[2].epsilon
    ((4, 3), True, 1.0)
    """
    declared = _declared(Budget(epsilon, delta, relation), choices)  # type: ignore[arg-type]
    held = _read(declared, tables, n_rows)
    graph = declared.connected(len(held))
    problem = declared.problem(held[0].given.n_features)
    seeds = _seeds(random_state, len(held))
    parties = _parties(declared, problem, graph, held, _accounts(ledgers, datasets, len(held)), seeds)
    for party in parties:
        party.prepare()
    with ExitStack() as stack:
        stack.enter_context(kernels.use(_engine(declared, held)))
        nodes = [stack.enter_context(party.at_work()) for party in parties]
        run = NetworkRounds(declared.method, problem, graph, nodes)
        run.finish(observers)
        _end(run, parties)
    return DecentralisedModel(
        run.exchange.sent,
        run.exchange.average,
        declared.method.output,
        run.members,
        tuple(party.promise for party in parties),
        declared,
        run.exchange.graph,
        problem,
        declared.rowmap(held[0].given.n_features),
    )


def deal(X: Any, y: Any, n_nodes: int, seed: int = 0) -> list[Table]:
    """Rows dealt to nodes at random, equally many to each; what is left over is dropped. For experiments.

    Examples
    --------
    >>> [len(labels) for _, labels in deal(np.zeros((7, 2)), np.zeros(7), 3)]
    [2, 2, 2]
    """
    order = public_generator(seed).permutation(len(y))
    each = len(y) // n_nodes
    return [(X[part], y[part]) for part in order[: each * n_nodes].reshape(n_nodes, each)]


def _declared(budget: Budget, choices: dict[str, Any]) -> DeclaredNetwork:
    try:
        return DeclaredNetwork(budget=budget, **choices)
    except TypeError:
        known = ", ".join(name for name in DeclaredNetwork.__dataclass_fields__ if name != "budget")
        unknown = ", ".join(sorted(set(choices) - set(DeclaredNetwork.__dataclass_fields__)))
        raise InvalidParameter(f"arguments {unknown}", f"arguments among {known}", "remove or rename them") from None


def _read(declared: DeclaredNetwork, tables: Sequence[Table], n_rows: Sequence[int] | None) -> list[NodeTable]:
    tables = list(tables)
    if len(tables) < 2:
        raise InvalidParameter(f"{len(tables)} tables", "at least two nodes", "pass one table a node")
    public = [None] * len(tables) if n_rows is None else _one_a_node("n_rows", n_rows, len(tables))
    held = [table_of_node(declared, i, table, rows) for i, (table, rows) in enumerate(zip(tables, public, strict=True))]
    width = held[0].given.n_features
    for number, each in enumerate(held):
        if each.given.n_features != width:
            raise InvalidParameter(
                f"{each.given.n_features} features at node {number}, and {width} at node 0",
                "the same features in the same order at every node",
                "correct the table of the node",
            )
    return held


def _accounts(ledgers: Any, datasets: Any, n_nodes: int) -> list[tuple[Any, str | None]]:
    paying = [None] * n_nodes if ledgers is None else _one_a_node("ledgers", ledgers, n_nodes)
    named = [None] * n_nodes if datasets is None else _one_a_node("datasets", datasets, n_nodes)
    return list(zip(paying, named, strict=True))


def _one_a_node(name: str, values: Any, n_nodes: int) -> list[Any]:
    listed = [values] if isinstance(values, str) or not hasattr(values, "__iter__") else list(values)
    if len(listed) != n_nodes:
        raise InvalidParameter(
            f"{len(listed)} {name} for {n_nodes} nodes", "one a node", "pass a list, one entry a node"
        )
    return listed


def _seeds(random_state: int | None, n_nodes: int) -> list[int | None]:
    """A seed a node, all different, from one; without one, noise of the operating system at every node."""
    if random_state is None:
        return [None] * n_nodes
    Session(seed=random_state)  # refuses what is no seed
    return [int(word) for word in np.random.SeedSequence(random_state).generate_state(n_nodes, np.uint64)]


def _parties(
    declared: DeclaredNetwork,
    problem: Problem,
    graph: NodeGraph,
    held: Sequence[NodeTable],
    accounts: Sequence[tuple[Any, str | None]],
    seeds: Sequence[int | None],
) -> list[Party | HeuristicParty]:
    if declared.method.protection in ("gradients", "minima"):
        plans = declared.plans([table.n_rows for table in held])
        sessions = [Session(ledger, name, seed) for (ledger, name), seed in zip(accounts, seeds, strict=True)]
        owners = zip(held, plans, sessions, strict=True)
        return [Party(i, declared, problem, *each) for i, each in enumerate(owners)]
    require_whole_tables(declared.method.name, declared.budget.relation, declared.sampler)
    if any(ledger is not None for ledger, _ in accounts):
        raise UnsupportedProblem(
            f"a ledger with algorithm {declared.method.name!r}",
            "an algorithm whose privacy is proved: 'ipadmm', 'dp-admm' or 'pvp'",
            "drop the ledger only if the rows need no protection",
        )
    noisy = declared.method.protection == "objectives"
    priced = [declared.perturbed(table.n_rows, problem, graph) if noisy else None for table in held]
    owners_without_plan = zip(held, priced, seeds, strict=True)
    return [HeuristicParty(i, declared, problem, *each) for i, each in enumerate(owners_without_plan)]


def _end(run: NetworkRounds, parties: Sequence[Party | HeuristicParty]) -> None:
    """Tell each owner what its node ends with, or that it has left."""
    places = {member: place for place, member in enumerate(run.members)}
    for party in parties:
        if isinstance(party, HeuristicParty):
            party.priced_at(2.0 * run.algorithm.rho * run.least_degree)
        party.has_left = party.number not in places
        if not party.has_left:
            place = places[party.number]
            party.released = np.stack([run.exchange.sent[place], run.exchange.average[place]])


def _engine(declared: DeclaredNetwork, held: Sequence[NodeTable]) -> kernels.Name:
    """NumPy or compiled kernels, by public sizes."""
    given = held[0].given
    rows = sum(table.n_rows for table in held)
    return kernels.choose(
        FitSize(declared.method.asked, rows, given.n_features, "sparse" if given.is_sparse else "dense")
    )
