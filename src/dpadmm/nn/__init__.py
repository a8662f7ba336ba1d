"""Private neural networks on PyTorch: training under a plan, and Laplacian smoothing of noisy gradients.

Examples
--------
>>> from dpadmm.nn import Ring
>>> Ring(1.0).strength
1.0
"""

from __future__ import annotations

from dpadmm.lazy import on_first_use

_HOMES = {
    "fit": "dpadmm.nn.private_training",
    "training_plan": "dpadmm.nn.private_training",
    "load_network": "dpadmm.nn.trained_network",
    "TrainedNetwork": "dpadmm.nn.trained_network",
    "Ring": "dpadmm.nn.smoothings",
    "Grid": "dpadmm.nn.smoothings",
    "GradientSmoother": "dpadmm.nn.gradient_smoother",
    "smooth": "dpadmm.nn.smoothed_optimizer",
}

__all__ = [*_HOMES]


__getattr__ = on_first_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
