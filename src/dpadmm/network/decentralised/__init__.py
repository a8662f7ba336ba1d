"""Decentralised ADMM: nodes train one model by exchanging noisy models with their neighbours; no coordinator."""

from __future__ import annotations

from dpadmm.lazy import on_first_use

_HOMES = {
    "DecentralisedModel": "dpadmm.network.decentralised.training",
    "DeclaredNetwork": "dpadmm.network.decentralised.declared_network",
    "NetworkRounds": "dpadmm.network.decentralised.rounds",
    "NodeGraph": "dpadmm.network.decentralised.graphs",
    "deal": "dpadmm.network.decentralised.training",
    "make_graph": "dpadmm.network.decentralised.graph_kinds",
    "read_graph": "dpadmm.network.decentralised.graph_kinds",
    "train_decentralised": "dpadmm.network.decentralised.training",
}

__all__ = [*_HOMES]

__getattr__ = on_first_use(__name__, _HOMES)
