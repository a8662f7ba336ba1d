"""The algorithms of a network by name; each is loaded when it is named."""

from dpadmm.network.decentralised.algorithms.base import NETWORK_ALGORITHMS, NetworkAlgorithm

__all__ = ["NETWORK_ALGORITHMS", "NetworkAlgorithm"]
