"""Smoothing of noisy gradients: its law, what it leaves alone, and what it refuses."""

from __future__ import annotations

import copy
import io
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from dpadmm.errors import DpadmmError, InvalidParameter, PrivacyError, UnsupportedProblem
from dpadmm.nn import GradientSmoother, Grid, Ring, smooth
from dpadmm.problem.smoothers import GridLaplacian, RingLaplacian

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
optimizers = pytest.importorskip("opacus.optimizers", reason="Opacus is not installed")

KINDS = {
    "sgd": lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=0.9),
    "adam": lambda weights: torch.optim.Adam(weights, lr=0.01),
    "adamw": lambda weights: torch.optim.AdamW(weights, lr=0.01),
}


def smoothed(values: Any, smoothing: Any) -> Any:
    weight = torch.nn.Parameter(torch.zeros(values.shape, dtype=values.dtype))
    weight.grad = values.clone()
    GradientSmoother(smoothing).apply([weight], step=0)
    return weight.grad


@pytest.mark.parametrize("shape", [(7,), (2,), (3, 5), (4, 1, 3, 3)])
def test_a_ring_solves_the_system_of_the_paper(shape: tuple[int, ...]) -> None:
    gradient = torch.randn(shape, dtype=torch.float64)
    expected = RingLaplacian(1.7)(gradient.numpy().ravel()).reshape(shape)
    np.testing.assert_allclose(smoothed(gradient, Ring(1.7)).numpy(), expected, atol=1e-12)


def test_rows_and_images_are_smoothed_each_by_itself() -> None:
    gradient = torch.randn(3, 2 * 4 * 5, dtype=torch.float64)
    by_row = RingLaplacian(0.5)(gradient.numpy().T).T
    np.testing.assert_allclose(smoothed(gradient, Ring(0.5, over="row")).numpy(), by_row, atol=1e-12)
    images = GridLaplacian(0.5, 4, 5)(gradient.numpy().reshape(6, 20).T).T.reshape(3, 40)
    np.testing.assert_allclose(smoothed(gradient, Grid(0.5, 4, 5)).numpy(), images, atol=1e-12)
    kernels = smoothed(gradient.reshape(3, 2, 4, 5), Grid(0.5)).numpy().reshape(3, 40)
    np.testing.assert_allclose(kernels, images, atol=1e-12)


def test_all_tensors_together_are_one_ring() -> None:
    weights = [torch.nn.Parameter(torch.zeros(shape, dtype=torch.float64)) for shape in ((2, 3), (4,))]
    for weight in weights:
        weight.grad = torch.randn_like(weight)
    flat = torch.cat([weight.grad.reshape(-1) for weight in weights]).numpy()
    GradientSmoother(Ring(2.0, over="all")).apply(weights, step=0)
    found = torch.cat([weight.grad.reshape(-1) for weight in weights]).numpy()
    np.testing.assert_allclose(found, RingLaplacian(2.0)(flat), atol=1e-12)


@pytest.mark.statistical
def test_smoothed_noise_has_the_spectrum_of_the_paper() -> None:
    """Of white noise, the power at frequency ω becomes 1/(1 + 2ν − 2ν cos ω)²."""
    length, repeats, strength = 64, 4000, 1.5
    noise = torch.randn(repeats, length, dtype=torch.float64)
    power = (torch.fft.rfft(smoothed(noise, Ring(strength, over="row"))).abs() ** 2).mean(dim=0) / length
    angles = 2 * np.pi * np.arange(length // 2 + 1) / length
    expected = 1 / (1 + 2 * strength - 2 * strength * np.cos(angles)) ** 2
    # A mean of 4000 exponential variables (of 4000 squared normals at both ends) leaves this band once in 10⁹ tests.
    np.testing.assert_allclose(power.numpy(), expected, rtol=0.17)


ALONE = """
import sys
for absent in ("opacus", "numba", "dp_accounting", "randomgen", "scipy", "sklearn"):
    sys.modules[absent] = None
import torch
from dpadmm.nn import GradientSmoother, Grid
weight = torch.nn.Parameter(torch.zeros(1, 4))
weight.grad = torch.ones(1, 4)
GradientSmoother(Grid(1.0, 2, 2)).apply([weight], step=0)
assert torch.allclose(weight.grad, torch.ones(1, 4))
"""


def test_the_smoothing_itself_needs_pytorch_alone() -> None:
    subprocess.run([sys.executable, "-c", ALONE], check=True)


def private_step(make: Any, smoothing: Any = None, seed: int = 0, clipping: str = "hooks", steps: int = 3) -> Any:
    """Weights after some steps of a private optimiser with repeatable noise."""
    from opacus import GradSampleModule
    from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import GradSampleModuleFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    torch.manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(144, 3))
    inputs, targets = torch.randn(16, 1, 8, 8), torch.randint(3, (16,))
    loss: Any = torch.nn.CrossEntropyLoss()
    settings = {
        "noise_multiplier": 1.0,
        "max_grad_norm": 1.0,
        "expected_batch_size": 16,
        "generator": torch.Generator().manual_seed(seed),
    }
    model: Any
    if clipping == "ghost":
        model = GradSampleModuleFastGradientClipping(net, max_grad_norm=1.0, use_ghost_clipping=True)
        private = optimizers.DPOptimizerFastGradientClipping(make(net.parameters()), **settings)
        loss = DPLossFastGradientClipping(model, private, loss, "mean")
    else:
        model = GradSampleModule(net)
        private = optimizers.DPOptimizer(make(net.parameters()), **settings)
    if smoothing is not None:
        smooth(private, smoothing)
    for _ in range(steps):
        private.zero_grad()
        loss(model(inputs), targets).backward()
        private.step()
    return [weight.detach().clone() for weight in net.parameters()]


@pytest.mark.parametrize("clipping", ["hooks", "ghost"])
@pytest.mark.parametrize("kind", KINDS)
def test_strength_zero_changes_no_bit(kind: str, clipping: str) -> None:
    plain = private_step(KINDS[kind], clipping=clipping)
    for smoothing in (Ring(0.0), Ring(lambda step: 0.0), Grid(0.0)):
        found = private_step(KINDS[kind], smoothing, clipping=clipping)
        assert all(torch.equal(a, b) for a, b in zip(plain, found, strict=True))


@pytest.mark.parametrize("clipping", ["hooks", "ghost"])
@pytest.mark.parametrize("kind", KINDS)
def test_any_strength_changes_the_step(kind: str, clipping: str) -> None:
    plain, found = private_step(KINDS[kind], clipping=clipping), private_step(KINDS[kind], Ring(1.0), clipping=clipping)
    assert not any(torch.allclose(a, b) for a, b in zip(plain, found, strict=True))


def private_sgd(shape: tuple[int, ...] = (8,), kind: str = "sgd") -> tuple[Any, Any]:
    weight = torch.nn.Parameter(torch.zeros(shape))
    settings = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "expected_batch_size": 4}
    return weight, optimizers.DPOptimizer(KINDS[kind]([weight]), **settings)


def one_step(weight: Any, private: Any) -> Any:
    weight.grad_sample = torch.ones(4, *weight.shape)
    private.step()
    private.zero_grad()
    return weight.detach().clone()


def test_the_noise_itself_is_smoothed() -> None:
    """A proxy before the noise would leave white noise on the step."""
    weight, private = private_sgd((1, 4096))
    private.noise_multiplier = 1e6
    smooth(private, Ring(50.0))
    one_step(weight, private)
    moved = weight.detach().flatten()
    assert float((moved * moved.roll(1)).mean() / (moved**2).mean()) > 0.8


def test_accumulated_batches_are_smoothed_once() -> None:
    weight, private = private_sgd()
    smooth(private, Ring(1.0))
    private.signal_skip_step(do_skip=True)
    private.signal_skip_step(do_skip=False)
    one_step(weight, private)
    assert private.original_optimizer.finished == 0
    one_step(weight, private)
    assert private.original_optimizer.finished == 1


def test_where_chooses_by_a_function_or_by_a_list() -> None:
    net = torch.nn.Linear(6, 2)
    settings = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "expected_batch_size": 4}
    for where in (lambda each: each.ndim == 2, [net.weight], iter([net.weight])):
        private = optimizers.DPOptimizer(torch.optim.SGD(net.parameters(), lr=1.0), **settings)
        smooth(private, Ring(1.0), where=where)
        for each in net.parameters():
            each.grad = torch.eye(1, each.numel()).reshape(each.shape)
        private.original_optimizer.step()
        assert float(net.weight.grad[0, 0]) < 0.5
        assert torch.equal(net.bias.grad, torch.tensor([1.0, 0.0]))


def test_learning_rate_schedulers_work_whatever_they_hold() -> None:
    for attach_first in (True, False):
        weight, private = private_sgd()
        inner = private.original_optimizer
        early = torch.optim.lr_scheduler.StepLR(inner, 1, gamma=0.5) if attach_first else None
        smooth(private, Ring(1.0))
        scheduler = early or torch.optim.lr_scheduler.StepLR(private, 1, gamma=0.5)
        one_step(weight, private)
        scheduler.step()
        assert inner.param_groups[0]["lr"] == private.param_groups[0]["lr"] == 0.05


def test_states_are_stored_and_read_with_the_place_in_the_schedule() -> None:
    def schedule(step: int) -> float:
        return 1.0 / (1 + step)

    weight, private = private_sgd(kind="adam")
    smooth(private, Ring(schedule))
    for _ in range(3):
        one_step(weight, private)
    file = io.BytesIO()
    torch.save(private.state_dict(), file)
    file.seek(0)
    other, again = private_sgd(kind="adam")
    smooth(again, Ring(schedule))
    again.load_state_dict(torch.load(file))
    assert again.original_optimizer.finished == 3
    assert torch.equal(again.state[other]["exp_avg"], private.state[weight]["exp_avg"])
    # The state of a smoothed optimiser is one of its wrapped kind too.
    plain = private_sgd(kind="adam")[1]
    plain.load_state_dict(private.state_dict())
    with pytest.raises(InvalidParameter, match=r"a schedule\. Expected a state that says how many steps were smoothed"):
        again.load_state_dict(private_sgd(kind="adam")[1].state_dict())


def test_a_copy_is_a_copy() -> None:
    _, private = private_sgd()
    smooth(private, Ring(1.0))
    assert copy.deepcopy(private.original_optimizer).finished == 0
    assert "SGD" in repr(private)
    assert "Ring(strength=1.0" in repr(private)


BAD = {
    "negative": (lambda: Ring(-1.0), InvalidParameter, "Got strength=-1.0. Expected a finite number >= 0"),
    "nan": (lambda: Grid(float("nan")), InvalidParameter, "Got strength=nan"),
    "text": (lambda: Ring("strong"), InvalidParameter, "Got strength='strong'"),  # type: ignore[arg-type]
    "one side": (lambda: Grid(1.0, 28), InvalidParameter, "Got height=28 and width=None. Expected two integers"),
    "over": (lambda: Ring(1.0, over="layers"), InvalidParameter, "Got over='layers'"),  # type: ignore[arg-type]
    "schedule": (lambda: smoothed(torch.ones(3), Ring(lambda step: -1.0)), InvalidParameter, "Got strength=-1.0"),
    "smoothing": (lambda: smooth(private_sgd()[1], 1.0), InvalidParameter, "Got smoothing 1.0. Expected Ring"),  # type: ignore[arg-type]
    "not private": (
        lambda: smooth(torch.optim.SGD([torch.nn.Parameter(torch.ones(3))], lr=1.0), Ring(1.0)),
        UnsupportedProblem,
        "Got an optimiser of type SGD, which adds no noise. Expected one that Opacus made private",
    ),
    "twice": (
        lambda: smooth(smooth(private_sgd()[1], Ring(1.0)), Ring(1.0)),
        InvalidParameter,
        "Got an optimiser that is smoothed already",
    ),
    "fits nothing": (lambda: smooth(private_sgd()[1], Grid(1.0)), InvalidParameter, "Got a smoothing that fits none"),
    "chooses nothing": (lambda: smooth(private_sgd()[1], Ring(1.0), where=[]), InvalidParameter, "fits none"),
    "closure": (
        lambda: smooth(private_sgd()[1], Ring(1.0)).original_optimizer.step(lambda: 1.0),
        PrivacyError,
        "Got a closure in the step of a smoothed optimiser",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_smoothed_is_refused_in_words(case: str) -> None:
    act, kind, words = BAD[case]
    with pytest.raises(DpadmmError) as caught:
        act()
    assert isinstance(caught.value, kind)
    assert words in str(caught.value)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_is_refused(kind: Any) -> None:
    weight, private = private_sgd()
    weight.data = weight.data.to(kind)
    with pytest.raises(UnsupportedProblem, match=r"Got parameters of type torch\.b?float16. Expected torch.float32"):
        smooth(private, Ring(1.0))
