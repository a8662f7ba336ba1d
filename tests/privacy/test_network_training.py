"""Private training of networks, attacked: rows that matter, thousands of releases, and mutants that must be caught."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("opacus", reason="Opacus is not installed")

from dpadmm.audit.lower_bound import epsilon_lower_bound  # noqa: E402
from dpadmm.nn import Ring, fit, row_gradients, training_plan  # noqa: E402
from dpadmm.oracles.mechanisms import Granular  # noqa: E402
from dpadmm.privacy.accountants import make_accountant  # noqa: E402
from dpadmm.privacy.events import Event, GaussianSums  # noqa: E402
from dpadmm.privacy.sampling import Batch, TruncatedPoisson  # noqa: E402

ROWS, RATE, STEPS = 200, 0.1, 300
DELTA = 0.01
SETTINGS: dict[str, Any] = {"epsilon": 30.0, "delta": 1e-3, "rate": RATE, "steps": STEPS}


def releases(label: float, **changes: Any) -> Any:
    """Noisy gradients of a network in which each row has a weight to itself, and far too long a gradient.

    So every entry of every release is one release of a network of one weight, whose one row has this label or its
    opposite.
    """
    seen: list[Any] = []

    class Listening(torch.optim.SGD):  # type: ignore[misc]
        def step(self, closure: Any = None) -> None:
            seen.append(self.param_groups[0]["params"][0].grad.numpy().ravel().copy())

    network = torch.nn.Linear(ROWS, 1, bias=False)
    torch.nn.init.zeros_(network.weight)
    fit(
        network,
        (1000.0 * torch.eye(ROWS), torch.full((ROWS,), label)),
        lambda outputs, labels: outputs[:, 0] * labels,
        **{**SETTINGS, **changes},
        optimizer=lambda weights: Listening(weights, lr=1.0),
        average=None,
    )
    return np.concatenate(seen[1:])  # the first is that of the rehearsal


def claimed(steps: int = 1) -> float:
    """ε of so many releases at DELTA, by the accountant of the plan."""
    query = training_plan(ROWS, **SETTINGS).queries[0]
    event = Event((GaussianSums(query.sampler, query.noise_multiplier, steps),))
    return make_accountant("pld").epsilon(event, DELTA, training_plan(ROWS, **SETTINGS).budget.relation)


def found() -> float:
    """What an attacker proves about one release."""
    return epsilon_lower_bound(releases(-1.0), releases(1.0), DELTA, confidence=1 - 1e-9).epsilon


def unclipped(parts: Any, clip: float, total: Any) -> None:
    total += torch.cat(list(parts), dim=1).double().sum(dim=0)


def clipped_as_a_mean(parts: Any, clip: float, total: Any) -> None:
    rows = torch.cat(list(parts), dim=1).double()
    mean = rows.mean(dim=0)
    total += len(rows) * mean * min(1.0, clip / float(mean.norm().clamp(min=1e-30)))


def without_clip(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(row_gradients, "add_clipped", unclipped)


def with_a_clipped_mean(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(row_gradients, "add_clipped", clipped_as_a_mean)


def with_half_the_noise(patch: pytest.MonkeyPatch) -> None:
    release = Granular.release

    def quietly(self: Granular, total: Any, query: Any, clip: float, gate: Any) -> Any:
        mean = release(self, total, query, clip, gate)
        return (mean + total / query.denominator) / 2

    patch.setattr(Granular, "release", quietly)


def at_twice_the_rate(patch: pytest.MonkeyPatch) -> None:
    draw = TruncatedPoisson.draw

    def doubly(self: TruncatedPoisson, n_rows: int, stream: Any) -> Batch:
        return draw(TruncatedPoisson(2 * self.rate, n_rows, n_rows), n_rows, stream)

    patch.setattr(TruncatedPoisson, "draw", doubly)


MUTANTS = [without_clip, with_a_clipped_mean, with_half_the_noise, at_twice_the_rate]


@pytest.mark.statistical
@pytest.mark.slow
def test_an_attack_finds_no_more_than_is_claimed() -> None:
    """The mutants below show that it would find more: it certifies 1.2 to 6 times the claim of each of them."""
    assert found() <= claimed()


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_caught(mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    assert found() > claimed()


@pytest.mark.statistical
def test_the_noise_is_that_of_the_plan() -> None:
    """Without any gradient a release is its noise; the band is eight standard errors wide on either side."""
    noise = releases(0.0)
    planned = training_plan(ROWS, **SETTINGS).queries[0].noise_std
    assert noise.size == ROWS * STEPS
    assert abs(noise.mean()) < 8 * planned / noise.size**0.5
    assert noise.std() == pytest.approx(planned, rel=8 / (2 * noise.size) ** 0.5)


@pytest.mark.statistical
def test_smoothed_noise_has_the_spectrum_of_the_paper() -> None:
    """Of white noise, the power at frequency ω becomes 1/(1 + 2ν − 2ν cos ω)²; entries of single precision."""
    smoothed = releases(0.0, smoothing=Ring(1.5)).reshape(STEPS, ROWS)
    power = (np.abs(np.fft.rfft(smoothed, axis=1)) ** 2).mean(axis=0) / ROWS
    angles = 2 * np.pi * np.arange(ROWS // 2 + 1) / ROWS
    planned = training_plan(ROWS, **SETTINGS).queries[0].noise_std ** 2
    expected = planned / (1 + 3.0 - 3.0 * np.cos(angles)) ** 2
    # A mean of 300 exponential variables (of 300 squared normals at both ends) leaves this band once in 10⁹ tests.
    np.testing.assert_allclose(power, expected, rtol=0.65)
    assert power.mean() == pytest.approx(expected.mean(), rel=0.1)


def test_a_training_is_accounted_for_as_its_plan_says() -> None:
    """The plan's own accountant finds the ε of the statement, and one release more would cost more."""
    plan = training_plan(ROWS, **SETTINGS)
    judge, relation = make_accountant(plan.accountant), plan.budget.relation
    assert judge.certify(plan.event, plan.budget.delta, relation) == pytest.approx(plan.epsilon_achieved, rel=1e-9)
    query = plan.queries[0]
    longer = Event((GaussianSums(query.sampler, query.noise_multiplier, STEPS + 1),))
    assert judge.epsilon(longer, plan.budget.delta, relation) > plan.epsilon_achieved


def test_nothing_depends_on_rows_but_by_way_of_the_mechanism(monkeypatch: pytest.MonkeyPatch) -> None:
    """With answers that are made up, two tables give the same network, to the bit."""

    def made_up(self: Granular, total: Any, query: Any, clip: float, gate: Any) -> Any:
        return np.random.default_rng(gate.line(query.kind).asked).standard_normal(total.shape)

    monkeypatch.setattr(Granular, "release", made_up)
    first, second = releases(-1.0, steps=20), releases(1.0, steps=20)
    assert np.array_equal(first, second)
