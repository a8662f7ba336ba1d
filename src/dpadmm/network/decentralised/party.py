"""One owner at work: rows, plan, ledger and noise of its own. What leaves is what its node answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm.errors import InputError, InvalidParameter
from dpadmm.estimators.declared_rows import nominal_rows, on_invalid_rows
from dpadmm.estimators.fit_table import MemoryTable, encoded_targets, in_memory
from dpadmm.network.decentralised.declared_network import DeclaredNetwork
from dpadmm.network.decentralised.minimising_rows import MinimisingRows
from dpadmm.network.decentralised.nodes import ExactNode, GradientNode, MinimumNode, Node, PerturbedNode
from dpadmm.network.decentralised.objective_price import PerturbedObjective
from dpadmm.network.decentralised.promises import EarlyLeave, HeuristicClaim, NodePromise, NoPromise, Promise
from dpadmm.privacy.assumptions import Assumption
from dpadmm.privacy.plan import Plan
from dpadmm.problem.problem import Problem
from dpadmm.randomness import make_streams
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from dpadmm.sessions.session import Session

Array = NDArray[np.float64]
NOTHING: Array = np.empty(0)
"""What a node ends with, until it is known."""


class _Left(Exception):
    """Ends the work of an owner who left: its charge stays."""


@dataclass(frozen=True, eq=False)
class NodeTable:
    """A table as its owner gave it, with the public number of its rows and what that rests on."""

    given: MemoryTable
    n_rows: int
    assumptions: tuple[str | Assumption, ...]


def table_of_node(declared: DeclaredNetwork, number: int, table: Any, n_rows: int | None) -> NodeTable:
    """Read the shape and the types of one node's table; what is wrong is said with the number of the node."""
    try:
        X, y = table
    except (TypeError, ValueError):
        raise InvalidParameter(f"a table of node {number} that is no pair", "(X, y)", "pass one pair a node") from None
    with _naming(number):
        given = in_memory(X, y, declared.invalid_rows, f"node {number}")
    public, rests_on = nominal_rows(n_rows, given.n_rows, declared.budget.relation)
    return NodeTable(given, public, rests_on)


@contextmanager
def _naming(number: int) -> Iterator[None]:
    """What is wrong with a table is said with the number of its node."""
    try:
        yield
    except InputError as error:
        raise type(error)(f"at node {number} {error.given}", error.expected, error.do) from None


class Party:
    """An owner with a certified plan.

    Parameters
    ----------
    number : int
        Of its node.
    declared, problem
        Public, the same for all.
    table : NodeTable
        Its rows.
    plan : Plan
        Its own.
    session : Session
        Who pays, and whose noise hides its rows.
    """

    def __init__(
        self, number: int, declared: DeclaredNetwork, problem: Problem, table: NodeTable, plan: Plan, session: Session
    ) -> None:
        self.number, self._declared, self._problem = number, declared, problem
        self._table, self._plan, self._session = table, plan, session
        self.has_left, self.released = False, NOTHING
        self.promise: Promise = NoPromise(number)

    def prepare(self) -> None:
        """Refuse, before anything is charged, what the ledger would not pay for and rows that were not declared."""
        self._session.afford(self._plan)
        self._rows = mapped_rows(self.number, self._declared, self._problem, self._table)

    @contextmanager
    def at_work(self) -> Iterator[Node]:
        """The node, charged with its whole plan; on the way out `released` is noted, unless the owner has left."""
        try:
            with self._session.carrying_out(self._plan) as work:
                oracle = work.oracle(self._rows)
                yield MinimumNode(oracle) if isinstance(self._rows, MinimisingRows) else GradientNode(oracle)
                if self.has_left:
                    raise _Left
                work.release(self.released)
                statement = work.statement(self._declared.method.name, self._assumptions)
                self.promise = NodePromise(self.number, statement)
        except _Left:
            budget = self._plan.budget
            self.promise = EarlyLeave(self.number, budget.epsilon, budget.delta, self._session.seeded)

    @property
    def _assumptions(self) -> tuple[str | Assumption, ...]:
        declared = self._declared
        rules = (*declared.target.assumptions, *on_invalid_rows(declared.invalid_rows))
        return (*self._table.assumptions, *rules, "rows-at-one-node")


class HeuristicParty:
    """An owner whose node has no certified plan: perturbed objectives, or no noise at all."""

    def __init__(
        self,
        number: int,
        declared: DeclaredNetwork,
        problem: Problem,
        table: NodeTable,
        priced: PerturbedObjective | None,
        seed: int | None,
    ) -> None:
        self.number, self.has_left, self.released = number, False, NOTHING
        rows = mapped_rows(number, declared, problem, table)
        assert isinstance(rows, MinimisingRows)
        self.promise: Promise = NoPromise(number)
        self._priced: PerturbedObjective | None = None
        if priced is None:
            self.node: Node = ExactNode(rows, declared.clip)
            return
        noise = declared.noise_of(priced)
        self.node = PerturbedNode(rows, noise, declared.clip, priced.answers, make_streams(seed).noise)
        self._declared, self._priced = declared, priced
        self.priced_at(priced.curvature)

    def priced_at(self, curvature: float) -> None:
        """Say what minima cost at the least curvature they were asked with: nodes that leave lower it."""
        if self._priced is not None:
            priced, noise = replace(self._priced, curvature=curvature), self.node.noise_std
            budget, answers = self._declared.budget, self._priced.answers
            true = priced.epsilon(noise, budget.delta)
            self.promise = HeuristicClaim(self.number, answers, noise, true, budget.delta, budget.epsilon)

    def prepare(self) -> None:
        """Nothing is charged."""

    @contextmanager
    def at_work(self) -> Iterator[Node]:
        """The node."""
        yield self.node


def mapped_rows(number: int, declared: DeclaredNetwork, problem: Problem, table: NodeTable) -> LocalRows:
    """Rows by the public rules; where minima are sought, in double precision."""
    rowmap = declared.rowmap(table.given.n_features)
    with _naming(number):
        encoded, valid = encoded_targets(table.given, declared.target, declared.invalid_rows)
    if declared.method.protection == "gradients":
        return LocalRows(PackedRows.of(rowmap, table.given.X, valid), encoded, problem.loss, problem.row_norm)
    return MinimisingRows(PackedRows.of(rowmap, _doubled(table.given.X), valid), encoded, problem)


def _doubled(X: Any) -> Any:
    return X.astype(np.float64) if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
