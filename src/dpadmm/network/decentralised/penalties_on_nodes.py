"""Proximal maps and projections of all nodes' models at once, each node with a step of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpadmm.network.decentralised.graphs import per_node
from dpadmm.problem.problem import Problem
from dpadmm.problem.regularizers.base import checked_prox
from dpadmm.problem.regularizers.separable import entrywise, soft_threshold
from dpadmm.problem.smoothers import Identity, Smoother

Array = NDArray[np.float64]


def prox_of_share(problem: Problem, models: Array, steps: Array, nodes: int) -> Array:
    """prox of r/n with one step a node; r/n is each node's share of the penalty."""
    shares = steps / nodes
    parts = entrywise(problem.regularizer, problem.shape[0])
    if parts is None:
        pairs = zip(models, shares, strict=True)
        return np.stack([checked_prox(problem.regularizer, model, float(share)) for model, share in pairs])
    threshold, stiffness = parts
    shares = per_node(shares, models)
    shrunk = 1.0 + shares * stiffness
    if not threshold.any():
        return np.asarray(models / shrunk)
    each = threshold.reshape(-1, *[1] * (models.ndim - 2))
    return np.asarray(soft_threshold(models, shares * each) / shrunk)


def projected(models: Array, radius: float) -> Array:
    """Each node's model moved to the ball of this radius around zero, where it is outside."""
    norms = np.linalg.norm(models.reshape(len(models), -1), axis=1)
    with np.errstate(divide="ignore"):
        shrink = np.minimum(1.0, radius / norms)
    return np.asarray(models * per_node(shrink, models))


def smoothed(smoother: Smoother, gradients: Array) -> Array:
    """The smoother on each node's noisy gradient."""
    if isinstance(smoother, Identity):
        return gradients
    moved = np.moveaxis(gradients, 0, -1)
    flat = smoother(np.ascontiguousarray(moved.reshape(moved.shape[0], -1)))
    return np.ascontiguousarray(np.moveaxis(flat.reshape(moved.shape), -1, 0))
