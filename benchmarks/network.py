"""Private training of networks: a whole `dpadmm.nn.fit` beside Opacus' own loop, and what smoothing adds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

from benchmarks.measure import turns
from benchmarks.report import Row

PIXELS, CLASSES, STEPS = 28, 10, 60
BATCHES = {"convolutional, 26,010 weights": 256, "linear, 7,850 weights": 1024}
"""Rows expected in a batch."""
ROWS = 10_000


def run(quick: bool) -> Iterator[Row]:
    for name, batch in BATCHES.items():
        yield from case(name, batch, rounds=3 if quick else 7)


def case(name: str, batch: int, rounds: int) -> Iterator[Row]:
    """Whole trainings of some steps, set-up included; the plan is certified before, and found in the cache."""
    from dpadmm.nn import Ring

    data = pictures(flat=name.startswith("linear"))
    make = linear if name.startswith("linear") else convolutional
    contestants = {
        "opacus": partial(by_opacus, make, data, batch),
        "fit": partial(by_fit, make, data, batch, None),
        "smoothed": partial(by_fit, make, data, batch, Ring(1.0)),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        times = turns(contestants, rounds)
    raw = {f"{kind}_ms_a_step": 1e3 * median(spent) / STEPS for kind, spent in times.items()}
    beside = median(ours / theirs for ours, theirs in zip(times["fit"], times["opacus"], strict=True))
    added = median(smooth / plain for smooth, plain in zip(times["smoothed"], times["fit"], strict=True))
    case = f"{name}, batches of {batch}"
    yield Row("network", case, "time of fit over Opacus' loop", beside, "×", 1.05, "at most", raw=raw)
    yield Row("network", case, "what smoothing adds to a step", 100 * (added - 1), "%", 3.0, "at most", raw=raw)


def by_fit(make: Callable[[], Any], data: Any, batch: int, smoothing: Any) -> None:
    import torch

    from dpadmm.nn import fit

    fit(
        make(),
        data,
        torch.nn.CrossEntropyLoss(reduction="none"),
        epsilon=1.0,
        delta=1e-5,
        optimizer=partial(torch.optim.SGD, lr=0.1),
        rate=batch / ROWS,
        steps=STEPS,
        smoothing=smoothing,
        average=None,
    )


def by_opacus(make: Callable[[], Any], data: Any, batch: int) -> None:
    """The loop of Opacus' tutorials, with Poisson batches; how much noise is added takes no time."""
    import torch
    from opacus import PrivacyEngine

    model = make()
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data), batch_size=batch),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    criterion, done = torch.nn.CrossEntropyLoss(), 0
    while done < STEPS:
        for inputs, targets in loader:
            optimizer.zero_grad()
            criterion(model(inputs), targets).backward()
            optimizer.step()
            done += 1
            if done == STEPS:
                break


def pictures(flat: bool) -> tuple[Any, Any]:
    import torch

    generator = torch.Generator().manual_seed(0)
    found = torch.randn(ROWS, 1, PIXELS, PIXELS, generator=generator)
    return found.flatten(1) if flat else found, torch.randint(CLASSES, (ROWS,), generator=generator)


def linear() -> Any:
    import torch

    return torch.nn.Linear(PIXELS * PIXELS, CLASSES)


def convolutional() -> Any:
    """The network of many tutorials."""
    from torch import nn

    return nn.Sequential(
        *(nn.Conv2d(1, 16, 8, 2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1)),
        *(nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.MaxPool2d(2, 1)),
        *(nn.Flatten(), nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, CLASSES)),
    )
