"""The true ε of published noise, by identities that do not use the code under test."""

from __future__ import annotations

import math

import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from dpadmm.errors import CannotCertify
from dpadmm.privacy.printed_noise import legacy_paper_sigma
from dpadmm.reproduce import published_settings as published
from dpadmm.reproduce.liu2022_settings import TABLE_II
from dpadmm.reproduce.true_epsilon import INFINITE, exact_snapshots, full_data, model_perturbation, sampled


def gaussian(shift, delta):
    """ε of N(0, 1) against N(shift, 1), from its definition."""

    def excess(epsilon):
        return (
            norm.cdf(shift / 2 - epsilon / shift) - math.exp(epsilon) * norm.cdf(-shift / 2 - epsilon / shift) - delta
        )

    return brentq(excess, 1e-9, 500)


def test_full_data_noise_is_one_gaussian():
    assert full_data(1000, 25, 0.01, 1e-5) == pytest.approx(gaussian(math.sqrt(25) * 2 / (1000 * 0.01), 1e-5), rel=1e-6)


def test_nearly_all_rows_in_a_batch_are_nearly_a_gaussian():
    low, high = sampled(1000, 999, 10, 0.01, 1e-5)
    exact = gaussian(math.sqrt(10) * 2 / (999 * 0.01), 1e-5)
    assert low <= exact * 1.01
    assert high >= exact * 0.99
    assert low == pytest.approx(high, rel=0.05)


def test_more_noise_is_a_smaller_epsilon_and_bounds_are_in_order():
    bounds = [sampled(5000, 50, 200, noise / 50, 1e-5) for noise in (1.0, 2.0, 4.0)]
    assert all(low <= high for low, high in bounds)
    assert bounds[0][0] > bounds[1][0] > bounds[2][0]


def test_exact_snapshots_are_no_better_than_full_gradients():
    assert exact_snapshots(4062, 10, 4060, 0.03, 5e-4) >= full_data(4062, 4060, 0.03, 5e-4)


def test_the_missing_factor_of_model_perturbation():
    """Chen & Lee 2020 at η = 5, δ = 1e-5: three blocks with noise for Δ = 2C/(n(1 + ηρ)); the truth is η times that."""
    shift = brentq(lambda mu: gaussian(mu, 1e-5) - 1.0, 0.01, 2)
    assert model_perturbation(1.0, 1e-5, 5.0) == pytest.approx(
        gaussian(shift * 5 * math.sqrt(2 / 2.25), 1e-5), rel=1e-4
    )


@pytest.mark.parametrize("table", TABLE_II)
def test_the_theorem_holds_at_none_of_the_published_settings(table):
    rows, _, batch, _, _ = TABLE_II[table]
    for epsilon in published.LIU_EPSILONS:
        for passes in (0.1, 1, 10, 100):
            with pytest.raises(CannotCertify):
                legacy_paper_sigma(rows, batch, max(1, round(passes * rows / batch)), epsilon, published.LIU_DELTA)


def test_one_pass_on_covtype_breaks_the_promise():
    low, _ = published.liu2022_sadmm("covtype", 1)[4]
    assert low > 30


def test_the_first_step_of_a_round_of_ipadmm_has_nearly_no_noise():
    (at_half, _), (at_one, _) = published.huang2020_printed(10)
    assert at_half > 10
    assert at_one > 10


def test_bounds_are_rounded_outwards():
    low, high = 0.12345, 0.12355
    text = published.texts([(low, high)])[0]
    first, _, last = text.partition("–")
    assert float(first) <= low
    assert float(last) >= high
    assert published.texts([(INFINITE, INFINITE), (31.9, INFINITE)]) == ["∞", "≥ 31"]


def test_a_row_names_the_setting_that_gives_it():
    row = published.setting_row(("x",), "chen2020_mpadmm(2)")
    assert row[-1] == "`chen2020_mpadmm(2)`"
    assert len(row) == 2 + len(published.CHEN_EPSILONS)
