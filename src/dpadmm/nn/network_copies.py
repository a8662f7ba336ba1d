"""Copies of a network: one that is trained, one for the rows, one that is returned."""

from __future__ import annotations

import copy
from importlib.util import find_spec
from typing import Any

import numpy as np

from dpadmm.errors import InvalidParameter, UnsupportedProblem
from dpadmm.nn.smoothed_optimizer import require_whole

MOST_WEIGHTS = 1 << 30
"""Up to here the length of a gradient is computed well enough for its clip (docs/proofs/neural.md, Claim 1)."""


def require_installed() -> None:
    """Refuse to begin without PyTorch and Opacus."""
    missing = [name for name in ("torch", "opacus") if find_spec(name) is None]
    if missing:
        raise UnsupportedProblem(
            f"a training without {' and '.join(missing)}",
            "both PyTorch and Opacus",
            "install the extra nn: pip install 'dpadmm[nn]'",
        )


def trainable_copy(model: Any) -> Any:
    """A copy of a network whose weights can be trained; others are refused."""
    import torch

    if not isinstance(model, torch.nn.Module) or hasattr(model, "grad_sample_hooks") or _is_wrapped(model):
        raise InvalidParameter(
            "a model that is no torch.nn.Module, or is wrapped by Opacus already",
            "the module itself",
            "pass the module from before make_private",
        )
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    for weight in weights:
        require_whole(weight)
    if not 0 < sum(weight.numel() for weight in weights) <= MOST_WEIGHTS or len({one.device for one in weights}) > 1:
        raise UnsupportedProblem(
            "a model without weights to train, with more than 2**30, or with weights on several devices",
            "weights on one device, some of which require gradients",
            "move the model to one device: model.to(...)",
        )
    return copy.deepcopy(model)


def public_weights(network: Any) -> list[Any]:
    """Copies of the weights that are trained: they never meet a row."""
    import torch

    return [torch.nn.Parameter(weight.detach().clone()) for weight in network.parameters() if weight.requires_grad]


def with_weights(network: Any, released: list[Any]) -> Any:
    """A copy of the network with these weights in place of those that are trained."""
    import torch

    made = copy.deepcopy(network)
    trained = [weight for weight in made.parameters() if weight.requires_grad]
    with torch.no_grad():
        for weight, value in zip(trained, released, strict=True):
            weight.copy_(value)
    return made


def precision_of(network: Any) -> type[np.floating[Any]]:
    """In which a noisy gradient reaches the weights."""
    import torch

    single = all(weight.dtype == torch.float32 for weight in network.parameters() if weight.requires_grad)
    return np.float32 if single else np.float64


def _is_wrapped(model: Any) -> bool:
    from opacus.grad_sample import AbstractGradSampleModule

    return isinstance(model, AbstractGradSampleModule)
