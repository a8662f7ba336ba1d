"""A small convolutional network, trained privately on simulated pictures: a bright bar that lies or stands.

Needs `pip install 'dpadmm[nn]'`. If it is interrupted, run it again: it goes on where it was.
"""

from functools import partial
from pathlib import Path

import torch

from dpadmm.nn import fit


def pictures(rows: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Noise of 12 × 12 pixels with a bar; the class says whether it stands."""
    generator = torch.Generator().manual_seed(seed)
    found = torch.randn(rows, 1, 12, 12, generator=generator)
    stands, place = torch.randint(2, (rows,), generator=generator), torch.randint(12, (rows,), generator=generator)
    for picture, upright, where in zip(found, stands, place, strict=True):
        bar = picture[0, :, where] if upright else picture[0, where]
        bar += 2.0
    return found, stands


def network() -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 5, stride=2),
        torch.nn.GroupNorm(2, 8),
        torch.nn.Tanh(),
        torch.nn.Flatten(),
        torch.nn.Linear(128, 2),
    )


if __name__ == "__main__":
    record = Path("private-network.db")
    trained = fit(
        network(),
        pictures(10_000, seed=0),
        torch.nn.CrossEntropyLoss(reduction="none"),
        epsilon=2.0,
        delta=1e-5,
        optimizer=partial(torch.optim.SGD, lr=1.0, momentum=0.9),
        rate=0.05,
        steps=60,
        resume=record,
        verbose=True,
    )
    record.unlink()  # the training has ended
    test, classes = pictures(1000, seed=1)  # simulated, so that a score may be printed
    print(f"accuracy on test pictures: {(trained.model(test).argmax(dim=1) == classes).double().mean():.3f}")
    print(trained.privacy)
    trained.save("private-network", force=True)
