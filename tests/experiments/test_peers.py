"""Peers are optional: a missing one says so, and all are scored alike."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.peers import PEERS, run_peer, score
from experiments.peers import run as peers

X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.5, 0.0], [-0.5, 0.0]])
Y = np.array([1, 0, 1, 0])


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_that_is_not_installed_is_skipped(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(peers, "ROOT", tmp_path)
    assert "not installed" in run_peer(name, X, Y, X, Y, 1.0, 1e-5, 0)["skipped"]


def test_a_table_too_large_to_be_dense_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "available", lambda name: True)
    monkeypatch.setattr(peers, "LARGEST_DENSE_BYTES", 10)
    assert "dense rows only" in run_peer("opacus", X, Y, X, Y, 1.0, 1e-5, 0)["skipped"]


def test_score_of_binary_weights() -> None:
    found = score(np.array([1.0, 0.0]), X, Y, X, Y)
    assert found["accuracy"] == 1.0
    assert found["auc"] == 1.0
    assert found["objective"] == pytest.approx(np.mean(np.log1p(np.exp([-1.0, -1.0, -0.5, -0.5]))))


def test_softmax_weights_score_like_the_binary_ones_they_equal() -> None:
    binary = score(np.array([1.0, 0.0]), X, Y, X, Y)
    both = score(np.array([[0.0, 1.0], [0.0, 0.0]]), X, Y, X, Y)
    assert both["accuracy"] == binary["accuracy"]
    assert both["objective"] == pytest.approx(binary["objective"])
    assert both["auc"] is None
