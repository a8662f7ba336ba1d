"""Noise drawn on a device: the cipher's own test vector, the law, and the same grid and deviation as in memory."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from dpadmm.errors import QueryRefused
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import GRADIENT, ClippedGradient
from dpadmm.privacy.sampling import Everything
from dpadmm.randomness import make_streams
from tests.asking import answering
from tests.privacy.alarms import two_sided

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from dpadmm.oracles.mechanisms.device_normals import DeviceNormals, chacha_blocks  # noqa: E402
from dpadmm.oracles.mechanisms.torch_noise import TorchNoise  # noqa: E402

CPU = torch.device("cpu")
FALSE_ALARM = 1e-9
N, D = 50, 4000


@pytest.fixture(scope="module")
def plan():
    return calibrate(Budget(1.0, 1e-3), [Request(GRADIENT, 3, ClippedGradient(1.0))], Everything(), N, cache=False)


def oracle(plan, total, seed=0, mechanism=TorchNoise, streams=None):
    streams = make_streams(seed) if streams is None else streams
    return PrivateOracle(answering(total, N, (D,)), Gate(plan), streams, mechanism(plan, D, streams.noise, CPU))


def test_blocks_are_those_of_the_standard():
    """RFC 8439, 2.3.2: key 00 01 … 1f, counter 1, nonce 00 00 00 09 00 00 00 4a 00 00 00 00."""
    key = np.arange(32, dtype=np.uint8).view("<u4")
    first = 1 | 0x09000000 << 32
    (words,) = torch.stack(chacha_blocks([int(word) for word in key], first, 1, CPU, (0x4A000000, 0))).T.tolist()
    printed = (
        "e4e7f110 15593bd1 1fdd0f50 c47120a3 c7f4d1c7 0368c033 9aaa2204 4e6cd4c3 "
        "466482d2 09aa9f07 05d7c214 a2028bd9 d19c12b5 b94e16de e883d0cb 4e3c50a2"
    )
    assert " ".join(f"{word:08x}" for word in words) == printed


def test_normals_are_normal_and_never_the_same():
    normals = DeviceNormals(make_streams(0).noise.key(), CPU)
    drawn = torch.cat([normals.draw(count) for count in (1, 7, 8, 9, 100_000)]).numpy()
    assert len(drawn) == 100_025
    assert stats.kstest(drawn, "norm").pvalue > FALSE_ALARM
    assert two_sided((drawn**2).sum(), stats.chi2(len(drawn))) > FALSE_ALARM
    for lag in (1, 12_500, 50_000):
        z = (drawn[lag:] * drawn[:-lag]).sum() / np.sqrt(len(drawn) - lag)
        assert abs(z) < 6.5
    assert len(np.unique(drawn)) == len(drawn)


def test_two_keys_and_two_streams_differ():
    one, two = (DeviceNormals(make_streams(seed).noise.key(), CPU).draw(64) for seed in (0, 1))
    assert not torch.equal(one, two)
    assert not np.array_equal(make_streams().noise.key(), make_streams().noise.key())


@pytest.mark.parametrize("factor", [1.0, 0.95])
def test_answers_carry_the_planned_noise_on_the_public_grid(plan, factor):
    total = torch.linspace(-3, 3, D, dtype=torch.float64)
    asked, query = oracle(plan, total), plan.queries[0]
    answers = torch.stack([asked.ask(GRADIENT, np.zeros(D)) for _ in range(3)])
    assert answers.dtype == torch.float64
    residual = (answers * query.denominator - total).numpy() / (factor * query.noise_multiplier)
    right = two_sided((residual**2).sum(), stats.chi2(residual.size)) > FALSE_ALARM
    assert right == (factor == 1.0) or factor == 0.95
    if factor == 0.95:
        assert not right
    asked.require_promise_kept()


def test_grid_and_deviation_are_those_of_granular_noise_in_memory(plan):
    """With the same normals both mechanisms give the same answer, to the last bit but that of a product."""
    total, normals = np.linspace(-3, 3, D), np.random.default_rng(0).standard_normal(D)
    streams = SimpleNamespace(
        noise=SimpleNamespace(standard_normal=lambda shape: normals, key=make_streams(0).noise.key),
        sampling=make_streams(0).sampling,
    )
    here = PrivateOracle(answering(total, N), Gate(plan), streams).ask(GRADIENT, np.zeros(D))
    there = oracle(plan, total, streams=streams)
    there._mechanism._normals = SimpleNamespace(draw=lambda count: torch.tensor(normals))
    answer = there.ask(GRADIENT, np.zeros(D))
    assert isinstance(answer, np.ndarray)
    np.testing.assert_allclose(answer, here, rtol=1e-15)
    there._mechanism.turn(1e3)
    assert there._mechanism._rounding > 500 * oracle(plan, total)._mechanism._rounding


def test_a_begun_question_takes_its_sum_from_the_device(plan):
    total = torch.ones(D, dtype=torch.float64)
    usual = oracle(plan, total).ask(GRADIENT, np.zeros(D))
    asked = oracle(plan, total)
    assert torch.equal(asked.end(asked.begin(GRADIENT, np.zeros(D)), total), usual)


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.int64])
def test_sums_in_another_precision_are_refused(plan, kind):
    with pytest.raises(QueryRefused, match="float64"):
        oracle(plan, torch.ones(D, dtype=kind)).ask(GRADIENT, np.zeros(D))


def test_a_zero_leaves_without_a_sign(plan):
    asked = oracle(plan, torch.tensor([-0.0, -1e-300, 0.0, 1e-300] * (D // 4), dtype=torch.float64))
    asked._mechanism._normals = SimpleNamespace(draw=lambda count: -torch.zeros(count, dtype=torch.float64))
    assert not torch.signbit(asked.ask(GRADIENT, np.zeros(D))).any()
