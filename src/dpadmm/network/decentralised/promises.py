"""What one node promises, and towards whom."""

from __future__ import annotations

from dataclasses import dataclass

from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.privacy.wording import rounded_up

AUDIENCE = "its neighbours and everybody who sees the exchange or any node's model"


@dataclass(frozen=True)
class NodePromise:
    """A proved promise.

    Parameters
    ----------
    node : int
        Number of the node in the graph.
    statement : PrivacyStatement
        About this node's rows alone; it holds for everything the node sent, and so for every model of the network.
    """

    node: int
    statement: PrivacyStatement

    @property
    def holds(self) -> bool:
        """Whether it is a promise: of a seeded run it is none."""
        return not self.statement.seeded

    @property
    def epsilon(self) -> float:
        return self.statement.epsilon

    @property
    def text(self) -> str:
        """One paragraph."""
        return f"Node {self.node}, towards {AUDIENCE}: {self.statement.text}"


@dataclass(frozen=True)
class HeuristicClaim:
    """What would hold if minima were exact real numbers. It is no statement of privacy, and no ledger accepts it.

    Parameters
    ----------
    node : int
        Number of the node in the graph.
    answers : int
        How many perturbed minima it sent.
    noise_std : float
        Of the linear term of each.
    epsilon : float
        Of the Rényi bound for exact minima, at `delta`.
    delta : float
        As asked.
    claimed : float
        What was asked for. It is less than `epsilon` where the noise is that of the papers.
    """

    node: int
    answers: int
    noise_std: float
    epsilon: float
    delta: float
    claimed: float

    @property
    def holds(self) -> bool:
        """Never."""
        return False

    @property
    def text(self) -> str:
        """One paragraph."""
        shown, delta = rounded_up(self.epsilon), rounded_up(self.delta)
        short = (
            f"The noise is that of the papers for epsilon = {rounded_up(self.claimed)}, which no proof supports. "
            if self.claimed < self.epsilon
            else ""
        )
        return (
            f"Node {self.node}, towards {AUDIENCE}: HEURISTIC, no promise. {short}If each of its {self.answers} "
            f"perturbed minima were exact and computed in real numbers, the exchange would be ({shown}, {delta})-"
            "differentially private under replace-one neighbours by a Rényi bound (docs/proofs/decentralised.md, "
            "Claim 4). Computed minima are not exact, so nothing is promised."
        )


@dataclass(frozen=True)
class NoPromise:
    """Of a node that answers without noise."""

    node: int

    @property
    def holds(self) -> bool:
        """Never."""
        return False

    @property
    def text(self) -> str:
        """One sentence."""
        return f"Node {self.node}: NOT private. It sent what it computed from its rows, without noise."


@dataclass(frozen=True)
class EarlyLeave:
    """Of a node that left before the end: its whole plan stays charged, and covers what it sent.

    Parameters
    ----------
    node : int
        Number of the node in the graph.
    epsilon, delta : float
        Of its plan.
    seeded : bool
        Whether its noise can be repeated.
    """

    node: int
    epsilon: float
    delta: float
    seeded: bool

    @property
    def holds(self) -> bool:
        """Whether it is a promise: of a seeded run it is none."""
        return not self.seeded

    @property
    def text(self) -> str:
        """One paragraph."""
        epsilon, delta = rounded_up(self.epsilon), rounded_up(self.delta)
        seeded = "Seeded: NOT private. Trained without a seed, what" if self.seeded else "What"
        return (
            f"Node {self.node}, towards {AUDIENCE}, left before the end. {seeded} it sent until then is ({epsilon}, "
            f"{delta})-differentially private, as its whole plan would have been, and the whole plan stays charged."
        )


Promise = NodePromise | HeuristicClaim | NoPromise | EarlyLeave
