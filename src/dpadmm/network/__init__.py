"""Many owners, one model: silos answer together what one curator would be asked, and no row leaves its owner.

| file | idea |
|---|---|
| `encoding.py`, `signing.py` | values as bytes, and who said them |
| `roster.py`, `proposal.py` | who takes part, and what they approve |
| `messages.py`, `handshake.py` | all that is said, and how an epoch begins |
| `pads.py`, `noise_shares.py` | masks that cancel, and a silo's share of the noise |
| `silo.py`, `epoch_work.py`, `silo_state.py` | one owner: what it does, and what it remembers |
| `owner_table.py`, `owner_budget.py` | its rows and its ledger |
| `coordinator.py`, `journal.py` | the party that asks, and what it writes down |
| `federation.py`, `federated_oracle.py` | what `fit` and solvers see of it all |
| `exchanged_counts.py` | what both ends put in the place of noise |
| `transports/` | how bytes get there |
| `decentralised/` | another way: nodes that send each other noised iterates |

docs/network.md says how to use it, docs/proofs/federated.md why it is private.
"""

from dpadmm.lazy import on_first_use

_HOMES = {
    "Federation": "dpadmm.network.federation",
    "Proposal": "dpadmm.network.proposal",
    "Roster": "dpadmm.network.roster",
    "Weather": "dpadmm.network.transports.embedded",
}

__all__ = list(_HOMES)

__getattr__ = on_first_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
