"""The papers' noise formula: refused wherever its theorem does not apply, which is everywhere it was published."""

from __future__ import annotations

import math

import pytest

from dpadmm.errors import CannotCertify, InvalidParameter
from dpadmm.privacy.printed_noise import legacy_paper_sigma

# Rows and batch size of the four data sets of Liu et al. 2022; δ = 5e-4.
PUBLISHED = {"covtype": (290506, 50), "w8a": (24875, 20), "bio": (72876, 20), "mushrooms": (4062, 10)}
# log(1/δ)/(log(n/(2.5b)) − 1): below it the conditions contradict each other for every θ and T.
SMALLEST = {"covtype": 1.126, "w8a": 1.459, "bio": 1.210, "mushrooms": 1.858}
EPSILONS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.0)


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_t16_all_published_settings_raise(name, epsilon):
    n, b = PUBLISHED[name]
    for epochs in (0.1, 1, 10, 100, 10_000, 10**8):
        with pytest.raises(CannotCertify, match="hold for none"):
            legacy_paper_sigma(n, b, max(1, round(epochs * n / b)), epsilon, 5e-4)


@pytest.mark.parametrize("name", PUBLISHED)
def test_smallest_epsilon_for_which_any_number_of_steps_works(name):
    n, b = PUBLISHED[name]

    def possible(epsilon):
        for steps in (10**k * m for k in range(2, 12) for m in (1, 1.2, 1.5, 1.9, 2.4, 3, 3.8, 4.7, 6, 7.7)):
            try:
                return legacy_paper_sigma(n, b, int(steps), epsilon, 5e-4)
            except CannotCertify:
                continue
        return None

    assert math.log(1 / 5e-4) / (math.log(n / (2.5 * b)) - 1) == pytest.approx(SMALLEST[name], abs=1e-3)
    assert possible(0.995 * SMALLEST[name]) is None
    assert possible(1.03 * SMALLEST[name]) is not None


def test_formula_where_the_theorem_applies():
    n, b, steps, epsilon, delta = 1_000_000, 10, 3_000_000_000, 5.0, 5e-4
    sigma = legacy_paper_sigma(n, b, steps, epsilon, delta)
    theta = [k / 10_000 for k in range(1, 10_000)]
    printed = []
    for t in theta:
        alpha = math.log(1 / delta) / ((1 - t) * epsilon) + 1
        first = alpha <= math.log(t * epsilon * n**3 / (5 * alpha * b**3 * steps + t * epsilon * b * n**2))
        if first and 5 * alpha * b**2 * steps / (t * epsilon * n**2) >= 1.5:
            printed.append(20 * alpha * steps / (t * epsilon * n**2))
    assert sigma == pytest.approx(math.sqrt(min(printed)), rel=1e-6)
    assert legacy_paper_sigma(n, b, steps, epsilon, delta, lipschitz=3.0) == pytest.approx(3 * sigma)


def test_bad_parameters():
    with pytest.raises(InvalidParameter):
        legacy_paper_sigma(100, 200, 10, 1.0, 1e-5)
    with pytest.raises(InvalidParameter):
        legacy_paper_sigma(100, 10, 10, 0.0, 1e-5)


def test_no_calibrator_uses_it():
    import dpadmm.privacy.calibration as calibration

    assert "legacy" not in vars(calibration)
