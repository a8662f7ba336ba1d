"""What a silo does in one session: masked and noised sums, by the library's own rules, from one secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import QueryRefused
from dpadmm.network.encoding import digest
from dpadmm.network.exchanged_counts import ExchangedCounts
from dpadmm.network.messages import Ask, places_of
from dpadmm.network.noise_shares import share_of_noise
from dpadmm.network.pads import SECRET_BYTES, Label, Words, masked, pair_secret
from dpadmm.network.proposal import Proposal
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.questions import Kind
from dpadmm.randomness import make_streams
from dpadmm.rows.lattice_sum import LatticeSum
from dpadmm.rows.protocol import Rows


class EpochWork:
    """The open session of a silo: its oracle, the secrets it shares with its peers, and its own.

    Parameters
    ----------
    name : str
        Of the silo.
    proposal : Proposal
        What was approved.
    session : bytes
        Of this epoch.
    secret : bytes
        The ephemeral key, then the key of the noise.
    peers : mapping
        Ephemeral public keys of the others.
    rows : Rows
        On the lattice of the plan.
    counts : mapping
        What earlier epochs of the run have asked.
    """

    def __init__(
        self,
        name: str,
        proposal: Proposal,
        session: bytes,
        secret: bytes,
        peers: Mapping[str, bytes],
        rows: Rows,
        counts: Mapping[str, Any],
    ) -> None:
        self._name, self._roster, self._session = name, proposal.roster, session
        own, self._noise_key = secret[:SECRET_BYTES], secret[SECRET_BYTES:]
        # Where each answer is private by itself there is nothing to mask.
        masked_with = peers if self._roster.masked else {}
        self._pairs = {peer: pair_secret(own, key, session, (name, peer)) for peer, key in masked_with.items()}
        self.gate = Gate.restored(proposal.plan, dict(counts)) if counts else Gate(proposal.plan)
        self._oracle = PrivateOracle(rows, self.gate, make_streams(), ExchangedCounts(proposal, self._shared))
        self._coordinates: bytes | None = None
        self._asked: Ask | None = None
        self._sent: list[Words] = []

    def answer(self, ask: Ask) -> Words:
        """The masked sum. Whatever is wrong with the question raises, and the epoch is then over."""
        at, matrix = places_of(ask)
        self._see(matrix)
        self._asked, self._sent = ask, []
        self._oracle.ask(Kind[Any](ask.kind), *at)
        if len(self._sent) != 1:
            raise QueryRefused("a question that reads no row is not asked of a silo")
        return self._sent.pop()

    def _see(self, matrix: NDArray[np.float64] | None) -> None:
        wanted = None if matrix is None else digest(matrix)
        if wanted == self._coordinates:
            return
        if matrix is None:
            raise QueryRefused("coordinates that were changed are not changed back within an epoch")
        self._oracle.change_coordinates(matrix)
        self._coordinates = wanted

    def _shared(self, total: LatticeSum, deviations: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add the share of the noise and the masks; what goes back to the oracle tells nothing."""
        ask = self._asked
        assert ask is not None
        label = Label(self._session, ask.number, ask.question, total.units, deviations).encoded
        # Other counts have other noise: a silo that was set back, with a table that changed, shows no difference.
        drawn_for = label + digest(total.counts.astype("<i8").tobytes())
        counts = total.counts + share_of_noise(self._noise_key, drawn_for, deviations)
        self._sent.append(masked(counts, self._name, self._pairs, label))
        return np.zeros_like(total.counts)
