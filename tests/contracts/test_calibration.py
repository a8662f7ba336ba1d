"""Calibration: ends on the private side, near the budget, quickly, from a cache that cannot weaken the promise."""

from __future__ import annotations

import json
import math
import os
import time

import numpy as np
import pytest

from dpadmm.errors import CannotCertify, InvalidParameter, PromiseBroken, SchemeMismatch
from dpadmm.privacy import calibration, plan_cache
from dpadmm.privacy.accountants import make_accountant
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.calibration import calibrate, verify_plan
from dpadmm.privacy.plan import Plan, Request
from dpadmm.privacy.questions import ClippedGradient, GradientDifference
from dpadmm.privacy.sampling import Everything, Poisson, TruncatedPoisson, WithoutReplacement, make_sampler

N, B, T = 48842, 221, 2210
GRADIENT = [Request("gradient", T, ClippedGradient(1.0))]
VARIANCE_REDUCED = [
    Request("snapshot", 5, ClippedGradient(1.0), full_data=True, relative_noise=10.0),
    Request("difference", 2210, GradientDifference(0.5)),
]
COMBINATIONS = [
    ("full", "replace-one", None),
    ("full", "add-remove", None),
    ("full", "replace-one", "rdp"),
    ("fixed", "replace-one", None),
    ("fixed", "replace-one", "rdp"),
    ("poisson", "replace-one", None),
    ("poisson", "add-remove", None),
    ("poisson", "add-remove", "rdp"),
    ("truncated-poisson", "replace-one", None),
]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DPADMM_CACHE", str(tmp_path))
    return tmp_path / "plans"


def entries(folder):
    return sorted(folder.glob("*.json")) if folder.exists() else []


def test_a_search_for_noise_that_finds_none_is_refused(monkeypatch):
    monkeypatch.setattr(calibration, "bracketed_secant", lambda *arguments: None)
    with pytest.raises(CannotCertify, match="finds a noise level"):
        calibrate(Budget(1.0, 1e-5), GRADIENT, make_sampler("full", N, B), N)


# --- the round trip ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sampler", "relation", "accountant"), COMBINATIONS)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_round_trip(sampler, relation, accountant, epsilon):
    plan = calibrate(Budget(epsilon, 1e-5, relation), GRADIENT, make_sampler(sampler, N, B), N, accountant)
    recomputed = make_accountant(plan.accountant).certify(plan.event, 1e-5, plan.budget.relation)
    assert 0.99 * epsilon <= plan.epsilon_achieved <= epsilon
    assert recomputed == pytest.approx(plan.epsilon_achieved, rel=1e-9)
    assert verify_plan(plan) <= epsilon
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan


@pytest.mark.parametrize("seed", range(12))
def test_round_trip_of_random_plans(seed):
    rng = np.random.default_rng(seed)
    n = int(10 ** rng.uniform(2, 5.5))
    batch = int(max(1, n * 10 ** rng.uniform(-3, 0)))
    name = ["full", "fixed", "poisson", "truncated-poisson"][seed % 4]
    relation = "add-remove" if name in ("full", "poisson") and seed % 8 > 3 else "replace-one"
    epsilon, delta = float(10 ** rng.uniform(-1.3, 0.7)), float(10 ** rng.uniform(-9, -6))
    requests = [Request("gradient", int(10 ** rng.uniform(0, 3.3)), ClippedGradient(1.0))]
    if seed % 3 == 0:
        requests.append(
            Request("snapshot", 3, ClippedGradient(2.0), full_data=True, relative_noise=float(rng.uniform(1, 20)))
        )
    plan = calibrate(Budget(epsilon, delta, relation), requests, make_sampler(name, n, batch), n, cache=False)
    assert 0.99 * epsilon <= plan.epsilon_achieved <= epsilon
    assert verify_plan(plan) <= epsilon


def test_requests_become_queries():
    plan = calibrate(Budget(1.0, 1e-5), VARIANCE_REDUCED, WithoutReplacement(B, N), N)
    snapshot, difference = plan.queries
    assert (snapshot.sampler, snapshot.denominator) == (Everything(), float(N))
    assert (difference.sampler, difference.denominator) == (WithoutReplacement(B, N), float(B))
    assert snapshot.noise_multiplier == pytest.approx(10 * difference.noise_multiplier)
    assert isinstance(difference.question, GradientDifference)
    assert isinstance(snapshot.question, ClippedGradient)
    assert plan.accountant == "pld"
    assert "without-replacement.md" in plan.proof_status
    assert "gaussian.md" in plan.proof_status


def test_snapshots_are_charged():
    """T13: leaving the snapshots out of the account understates ε."""
    plan = calibrate(Budget(1.0, 1e-5), VARIANCE_REDUCED, WithoutReplacement(B, N), N)
    inner = type(plan.event)(plan.event.parts[1:])
    assert make_accountant("pld").epsilon(inner, 1e-5, plan.budget.relation) < 0.95 * plan.epsilon_achieved


# --- refusals ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sampler", "relation", "accountant"),
    [
        (TruncatedPoisson(B / N, 300, N), "replace-one", "rdp"),
        (TruncatedPoisson(B / N, 300, N), "add-remove", None),
        (Poisson(B / N), "replace-one", "rdp"),
        (WithoutReplacement(B, N), "add-remove", None),
        (WithoutReplacement(B, N), "add-remove", "rdp"),
        (WithoutReplacement(B, N), "replace-one", "gaussian"),
    ],
)
def test_t3_mismatches_are_refused_before_any_search(sampler, relation, accountant, monkeypatch, own_cache):
    monkeypatch.setattr(calibration, "_search", lambda *_: pytest.fail("searched"))
    with pytest.raises(SchemeMismatch, match=r"Got .*\. Expected .*\. Use "):
        calibrate(Budget(1.0, 1e-5, relation), GRADIENT, sampler, N, accountant)
    assert not entries(own_cache)


@pytest.mark.parametrize("name", ["shuffle", "with-replacement", "stratified"])
def test_t3_samplers_without_an_accountant(name):
    with pytest.raises(SchemeMismatch):
        make_sampler(name, N, B)


def test_t18_becomes_a_refusal_with_a_suggestion():
    start = time.perf_counter()
    with pytest.raises(CannotCertify, match=r"Got .*\. Expected .*\. Use .*(fewer|larger)"):
        calibrate(
            Budget(60.0, 1e-6), [Request("gradient", 5000, ClippedGradient(1.0))], Poisson(0.001), 1000, cache=False
        )
    assert time.perf_counter() - start < 60


def test_bad_requests():
    for bad in (
        [],
        [Request("gradient", 0, ClippedGradient(1.0))],
        [Request("gradient", 1, ClippedGradient(math.nan))],
        [Request("gradient", 1, ClippedGradient(1.0), relative_noise=0.0)],
    ):
        with pytest.raises(InvalidParameter):
            calibrate(Budget(1.0, 1e-5), bad, Everything(), 100)
    with pytest.raises(InvalidParameter, match="delta < 1/n"):
        calibrate(Budget(1.0, 1e-2), GRADIENT, Everything(), 100)
    with pytest.raises(SchemeMismatch):
        calibrate(Budget(1.0, 1e-5), GRADIENT, WithoutReplacement(10, 100), 200)
    with pytest.raises(InvalidParameter):
        calibrate(Budget(1.0, 1e-5), GRADIENT, Everything(), 100, "moments")


# --- verification ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [0.5, 0.95])
def test_a_weakened_plan_is_found(factor):
    from dataclasses import replace

    plan = calibrate(Budget(1.0, 1e-5), GRADIENT, Poisson(B / N), N)
    weak = tuple(replace(q, noise_multiplier=factor * q.noise_multiplier) for q in plan.queries)
    with pytest.raises(PromiseBroken):
        verify_plan(replace(plan, queries=weak))
    with pytest.raises(PromiseBroken):
        verify_plan(replace(plan, epsilon_achieved=0.5 * plan.epsilon_achieved))


# --- the cache ---------------------------------------------------------------------------------------------------


def test_a_hit_is_the_same_plan_in_milliseconds(own_cache, monkeypatch):
    budget, sampler = Budget(1.0, 1e-5), WithoutReplacement(B, N)
    first = calibrate(budget, GRADIENT, sampler, N)
    assert len(entries(own_cache)) == 1
    assert not list(own_cache.glob("*.tmp"))
    monkeypatch.setattr(calibration, "_search", lambda *_: pytest.fail("searched"))
    times = []
    for _ in range(20):
        start = time.perf_counter()
        again = calibrate(budget, GRADIENT, sampler, N)
        times.append(time.perf_counter() - start)
    assert again == first
    assert min(times) < 0.01


def test_exact_accounting_needs_no_file(own_cache):
    calibrate(Budget(1.0, 1e-5), GRADIENT, Everything(), N)
    assert not entries(own_cache)


def test_cold_calibration_is_cheap_relative_to_the_library():
    """A ratio within one run: a whole calibration costs less than a few compositions by dp_accounting."""
    from dp_accounting.pld import privacy_loss_distribution as library

    budget = Budget(1.0, 1e-5)
    calibrate(budget, GRADIENT, Poisson(B / N), N, cache=False)
    start = time.perf_counter()
    found = library.from_gaussian_mechanism(1.6, sampling_prob=B / N, value_discretization_interval=3e-5)
    found.self_compose(T).get_epsilon_for_delta(1e-5)
    one = time.perf_counter() - start
    start = time.perf_counter()
    calibrate(budget, GRADIENT, WithoutReplacement(B, N), N, cache=False)
    assert time.perf_counter() - start < 8 * one


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 1.1},
        {"delta": 1.1e-5},
        {"count": T + 1},
        {"n_rows": N + 1},
        {"batch": B + 1},
        {"clip": 2.0},
        {"accountant": "rdp"},
    ],
)
def test_every_public_input_is_part_of_the_key(change):
    base = {"epsilon": 1.0, "delta": 1e-5, "count": T, "n_rows": N, "batch": B, "clip": 1.0, "accountant": "pld"}

    def key(f):
        requests = [Request("gradient", f["count"], ClippedGradient(f["clip"]))]
        sampler = WithoutReplacement(f["batch"], f["n_rows"])
        return plan_cache.key(Budget(f["epsilon"], f["delta"]), requests, sampler, f["n_rows"], f["accountant"])

    assert key(base) == key(dict(base))
    assert key(base) != key(base | change)


def test_the_number_of_rows_is_part_of_the_key_for_every_sampler():
    keys = {plan_cache.key(Budget(1.0, 1e-5), GRADIENT, Poisson(0.01), n, "pld") for n in (N, N + 1)}
    assert len(keys) == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: "{not json",
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: "null",
        lambda text: json.dumps({**json.loads(text), "scale": json.loads(text)["scale"] / 2}),
        lambda text: json.dumps({**json.loads(text), "epsilon_achieved": 0.999}),
        lambda text: json.dumps({**json.loads(text), "key": "0" * 64}),
        lambda text: json.dumps({**json.loads(text), "scale": "nan"}),
        lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k != "checksum"}),
    ],
)
def test_a_damaged_entry_is_a_miss(own_cache, damage):
    budget, sampler = Budget(1.0, 1e-5), Poisson(B / N)
    first = calibrate(budget, GRADIENT, sampler, N)
    (path,) = entries(own_cache)
    path.write_text(damage(path.read_text()))
    assert calibrate(budget, GRADIENT, sampler, N) == first
    assert plan_cache.read(path.stem, 1.0) is not None


def test_an_entry_of_another_promise_is_not_used(own_cache):
    """A file renamed to another key names the key it was written for."""
    calibrate(Budget(2.0, 1e-5), GRADIENT, Poisson(B / N), N)
    (path,) = entries(own_cache)
    wanted = plan_cache.key(Budget(1.0, 1e-5), GRADIENT, Poisson(B / N), N, "pld")
    os.replace(path, path.with_name(f"{wanted}.json"))
    plan = calibrate(Budget(1.0, 1e-5), GRADIENT, Poisson(B / N), N)
    assert verify_plan(plan) <= 1.0


def test_an_unwritable_cache_is_no_error(tmp_path, monkeypatch):
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("DPADMM_CACHE", str(blocker / "below"))
    assert calibrate(Budget(1.0, 1e-5), GRADIENT, Poisson(B / N), N).epsilon_achieved <= 1.0


def test_the_platform_directory_is_respected(tmp_path, monkeypatch):
    monkeypatch.delenv("DPADMM_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert plan_cache.directory() == tmp_path / "dpadmm" / "plans"
