"""Two processes that share a batch take the same smoothed step as one that has all of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpadmm.nn import Ring, smooth

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("opacus", reason="Opacus is not installed")

ROWS, STEPS = 16, 3


def network() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))


def table() -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(ROWS, 6, generator=generator), torch.randint(3, (ROWS,), generator=generator)


def trained(kind: Any, model: Any, rows: slice, expected: int) -> Any:
    inputs, targets = (part[rows] for part in table())
    private = kind(
        torch.optim.Adam(model.parameters(), lr=0.05),
        noise_multiplier=0.5,
        max_grad_norm=1.0,
        expected_batch_size=expected,
        generator=torch.Generator().manual_seed(2),
    )
    smooth(private, Ring(lambda step: 1.0 + step))
    for _ in range(STEPS):
        private.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), targets).backward()
        private.step()
    return [weight.detach().clone() for weight in model.parameters()]


def one_of_two(rank: int, folder: str) -> None:
    from opacus import GradSampleModule
    from opacus.distributed import DifferentiallyPrivateDistributedDataParallel
    from opacus.optimizers import DistributedDPOptimizer

    meeting = f"file://{folder}/meeting"
    torch.distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    model = GradSampleModule(DifferentiallyPrivateDistributedDataParallel(network()))
    half = ROWS // 2
    weights = trained(DistributedDPOptimizer, model, slice(rank * half, (rank + 1) * half), half)
    torch.save(weights, f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


def test_two_processes_equal_one(tmp_path: Path) -> None:
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    torch.multiprocessing.spawn(one_of_two, (str(tmp_path),), nprocs=2)
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    alone = trained(DPOptimizer, GradSampleModule(network()), slice(None), ROWS)
    for a, b, c in zip(first, second, alone, strict=True):
        assert torch.equal(a, b)
        torch.testing.assert_close(a, c, rtol=1e-4, atol=1e-6)
