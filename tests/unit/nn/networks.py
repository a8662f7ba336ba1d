"""Small networks and rows for tests of private training."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from dpadmm.nn import fit

CROSS_ENTROPY = torch.nn.CrossEntropyLoss(reduction="none")
SGD = partial(torch.optim.SGD, lr=0.5)
SETTINGS: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-3, "optimizer": SGD, "rate": 0.2, "steps": 5}


def rows(n: int = 200, features: int = 6, classes: int = 3) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(n, features, generator=generator)
    return inputs, inputs[:, :classes].argmax(dim=1)


def linear(features: int = 6, classes: int = 3) -> Any:
    torch.manual_seed(0)
    return torch.nn.Linear(features, classes)


def images(n: int = 40) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(n, 1, 8, 8, generator=generator), torch.randint(3, (n,), generator=generator)


def convolutional() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.GroupNorm(2, 4), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(144, 3)
    )


def trained(**changes: Any) -> Any:
    given = {"model": linear(), "examples": rows(), "loss": CROSS_ENTROPY, **SETTINGS, **changes}
    return fit(**given)
