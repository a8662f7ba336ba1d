"""The trials of the decentralised experiment: kept by what they are, and shown with the number of simulations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments import decentralised


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (240, 3)).astype(np.float32)
    y = np.where(X[:, 0] > 0, 1, -1)
    monkeypatch.setattr(decentralised, "adult", lambda: (X[:200], y[:200], X[200:], y[200:]))
    monkeypatch.setattr(decentralised, "CACHE", tmp_path)
    monkeypatch.setattr(decentralised, "DELTA", 1e-3)


TRIAL = decentralised.ipadmm(2.0, 2, 20.0, seed=0, rounds=10, nodes=4)


def test_a_trial_is_run_once_and_kept() -> None:
    first = decentralised.outcome(TRIAL)
    assert first["rounds"] == [1, 2, 3, 5, 10]
    assert first["average"][-1] < 0.75
    assert decentralised.outcome(TRIAL) == first
    assert replace(TRIAL, seed=1).path != TRIAL.path


def test_only_stored_trials_are_shown_if_wanted() -> None:
    trials = [replace(TRIAL, seed=seed) for seed in range(3)]
    assert len(decentralised.many(trials[:2])) == 2
    found = decentralised.many(trials, stored_only=True)
    assert str(decentralised.risks(found, "last")).endswith("(2)")
    rounds, mean, error = decentralised.curve(found, "average")
    assert len(rounds) == len(mean) == len(error)


@pytest.mark.parametrize("algorithm", ["pvp", "dvp", "radmm", "admm"])
def test_every_rival_runs(algorithm) -> None:
    trial = decentralised.NetworkTrial(algorithm, 2.0, 0, (("rounds", 4), ("rho", 0.05)), nodes=4, held_out=True)
    found = decentralised.outcome(trial)
    assert 0 <= found["accuracy"]["average"] <= 1
    assert (found["heuristic_epsilon"] == 0) == (algorithm == "admm")
