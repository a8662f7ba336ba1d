"""The oracle of docs/accuracy.md spends the budget it is said to spend, and the page counts its wins and losses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from experiments import accuracy_pages, whitened

RNG = np.random.default_rng(3)
ROWS = RNG.normal(size=(400, 5)).astype(np.float32)
LABELS = (RNG.random(400) < 0.5).astype(int)
MU = 2.0


def table(rows=ROWS, labels=LABELS):
    names = np.where(labels, "yes", "no")
    return whitened.Table.of((rows, names, rows[:50], names[:50]))


def test_one_row_moves_a_clipped_sum_by_no_more_than_twice_the_clip():
    lengths, clips = np.linalg.norm(ROWS, axis=1), np.array([0.1, 0.5], dtype=np.float32)
    slope = RNG.normal(size=(400, 3, 2)).astype(np.float32)
    before = whitened.clipped_mean(ROWS, lengths, slope.copy(), clips) * len(ROWS)
    slope[0] = -slope[0] * 100
    after = whitened.clipped_mean(ROWS, lengths, slope.copy(), clips) * len(ROWS)
    assert (np.linalg.norm((after - before).reshape(-1, 2), axis=0) <= whitened.DISTANCE * clips * (1 + 1e-3)).all()


class Silent:
    """A generator whose normal numbers are zero, and which notes how wide they should have been."""

    def __init__(self):
        self.widths = []

    def normal(self, mean, deviation, shape):
        self.widths.append(deviation)
        return np.zeros(shape)


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_moment_and_gradients_spend_the_budget_together(share):
    silent, clip, rows = Silent(), 0.5, table()
    whitened.whitening(rows, MU, whitened.Coordinates(share), silent)
    n = len(ROWS)
    moment = (math.sqrt(2) / n / silent.widths[0]) ** 2
    width = whitened.noise_widths(np.array([clip]), n, MU * math.sqrt(1 - share))[0]
    gradients = whitened.STEPS * (whitened.DISTANCE * clip / n / width) ** 2
    assert moment + gradients == pytest.approx(MU**2)


def test_whitening_whitens_where_noise_is_small():
    rows = table()
    turned, _ = whitened.in_coordinates(rows, 1e5, whitened.Coordinates(0.2, 0.01), np.random.default_rng(0))
    np.testing.assert_allclose(turned.T @ turned / len(turned), np.eye(6), atol=0.02)


def test_scores_of_two_and_of_three_classes_are_those_of_their_settings():
    settings = [
        whitened.Setting(at, whitened.Descent(0.5, 30.0), share)
        for at in whitened.COORDINATES[:2]
        for share in whitened.AVERAGED
    ]
    labels = (ROWS[:, 0] > 0).astype(int)
    found = whitened.scores(table(labels=labels), 50.0, settings, seed=0)
    assert set(found) == set(settings)
    assert all(accuracy > 0.8 and auc > 0.8 for accuracy, auc in found.values())
    three = labels + (ROWS[:, 1] > 0)
    rows = whitened.Table.of((ROWS, three, ROWS, three))
    assert all(accuracy > 0.7 and auc is None for accuracy, auc in whitened.scores(rows, 50.0, settings, 0).values())


def test_wins_ties_and_losses_are_counted_by_two_standard_errors():
    def cells(own, other):
        return {"auto": own, "rival": other}

    shown = {
        ("a", "1"): cells("0.9000 ± 0.0010 (0.9)", "0.8900 ± 0.0010"),
        ("b", "1"): cells("0.9000 ± 0.0010", "0.9015 ± 0.0010"),
        ("c", "1"): cells("0.9000 ± 0.0010", "0.9100 ± 0.0010"),
        ("d", "1"): cells("0.9000 ± 0.0010", accuracy_pages.NOT_RUN),
    }
    text = accuracy_pages.standing(shown, "it", lambda each: each["rival"])
    assert text == "| it | -0.0005 | 3 | 1 | 1 | 1 |"
