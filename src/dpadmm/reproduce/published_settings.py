"""The true ε of every published setting, one function for each kind: lists of (from below, from above) by claimed ε.

None of it reads data: sizes, batches, steps and the printed noise formulas decide. Gradients have norm at most one.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Sequence

from dp_accounting import dp_event
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant

from dpadmm.privacy.accountants.gaussian import gaussian_epsilon
from dpadmm.privacy.printed_noise import theorem2_sigma
from dpadmm.reproduce.contenders.printed_vradmm import theorem1_sigma
from dpadmm.reproduce.liu2022_settings import TABLE_II
from dpadmm.reproduce.true_epsilon import INFINITE, exact_snapshots, model_perturbation, sampled

Range = tuple[float, float]
LIU_EPSILONS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.0)
LIU_DELTA = 5e-4
WANG_EPSILONS = (0.1, 0.15, 0.2, 0.25, 0.3)
WANG_DELTA = 1e-5
CHEN_EPSILONS, CHEN_DELTA = (0.05, 0.1, 0.2, 0.4, 0.8, 1.0), 1e-8
CHEN_ROWS = {"adult": 48_842, "ipums_br": 38_000, "simulated": 40_000}
HUANG_EPSILONS, HUANG_DELTA = (0.5, 1.0), 1e-5


def liu2022_sadmm(table: str, passes: int) -> list[Range]:
    """DP-SADMM with the σ of Theorem 2, after so many passes over the rows.

    Examples
    --------
    >>> low, high = liu2022_sadmm("w8a", 1)[-1]
    >>> 5.8 < low < high < 6.0
    True
    """
    rows, _, batch, _, _ = TABLE_II[table]
    steps = round(passes * rows / batch)
    sigmas = [theorem2_sigma(rows, batch, steps, epsilon, LIU_DELTA) for epsilon in LIU_EPSILONS]
    return _rising([sampled(rows, batch, steps, sigma, LIU_DELTA) for sigma in sigmas])


def liu2022_vradmm(table: str, constant: float, epochs: int = 5) -> list[Range]:
    """DP-VRADMM for general convex problems with the σ of Theorem 1 and c₂ = `constant`, m = 2n/b, from below."""
    rows, _, batch, _, _ = TABLE_II[table]
    steps = epochs * (2 * rows // batch)
    sigmas = [theorem1_sigma(rows, steps, epsilon, LIU_DELTA, constant) for epsilon in LIU_EPSILONS]
    return _rising([(exact_snapshots(rows, batch, steps, sigma, LIU_DELTA), INFINITE) for sigma in sigmas])


def liu2022_vradmm_strong() -> list[Range]:
    """DP-VRADMM for strongly convex problems: the dual is reset by an exact gradient, so that no ε is true."""
    return [(INFINITE, INFINITE)] * len(LIU_EPSILONS)


def wang2020_logistic(rows: int = 50_000, batch: int = 128, epochs: int = 50) -> list[Range]:
    """DP-LSSGD of multi-class logistic regression on MNIST with the noise of Theorem 2; smoothing changes nothing."""
    steps = round(epochs * rows / batch)
    sigmas = [theorem2_sigma(rows, batch, steps, epsilon, WANG_DELTA) for epsilon in WANG_EPSILONS]
    return [sampled(rows, batch, steps, sigma, WANG_DELTA) for sigma in sigmas]


def wang2020_cnn(multiplier: float, epochs: int = 60, rows: int = 60_000, batch: int = 256) -> list[Range]:
    """The CNN with a noise multiplier: what TensorFlow Privacy says, then ε of batches of fixed size, replace-one.

    The first is for Poisson batches under add-remove, by Rényi accounting; the code shuffles and cuts.
    """
    steps = round(epochs * rows / batch)
    accountant = RdpAccountant()
    step = dp_event.PoissonSampledDpEvent(batch / rows, dp_event.GaussianDpEvent(multiplier))
    accountant.compose(step, steps)
    claimed = float(accountant.get_epsilon(WANG_DELTA))
    return [(claimed, claimed), sampled(rows, batch, steps, multiplier / batch, WANG_DELTA)]


def chen2020_ssadmm(table: str, epochs: int = 10) -> list[Range]:
    """ssADMM with the noise that Rényi accounting of batches without replacement finds for each claim."""
    rows = CHEN_ROWS[table]
    batch = round(math.sqrt(rows))
    steps = round(epochs * rows / batch)
    noises = [renyi_noise(rows, batch, steps, epsilon, CHEN_DELTA) for epsilon in CHEN_EPSILONS]
    return [sampled(rows, batch, steps, 2 * noise / batch, CHEN_DELTA) for noise in noises]


def chen2020_mpadmm(step_size: float) -> list[Range]:
    """mpADMM with its printed sensitivities, exactly; its number of steps does not matter."""
    exact = [model_perturbation(epsilon, CHEN_DELTA, step_size) for epsilon in CHEN_EPSILONS]
    return [(epsilon, epsilon) for epsilon in exact]


def huang2020_printed(diameter: float, rounds: int = 100, inner: int = 10) -> list[Range]:
    """IPADMM with the step as printed in (18), for noise that would be exact for the sensitivity of (16).

    (18) divides by 2ρ|N| + η^{k,r}, the noise is found for 2ρ|N| + η^{k,r+1}, and η^{k,0} = 0. So the sensitivity is
    too small by the ratio of the two at every step.
    """
    neighbours, rho, features, records = 99, 0.001, 104, 452
    found = []
    for epsilon in HUANG_EPSILONS:
        growth = features * rounds * inner * 8 * math.log(1.25 / HUANG_DELTA) / (epsilon * records) ** 2
        unit, weight = math.sqrt(2 * growth) / diameter, 2 * rho * neighbours
        ratios = [
            ((weight + unit * math.sqrt(k * (r + 1))) / (weight + unit * math.sqrt(k * r))) ** 2
            for k in range(1, rounds + 1)
            for r in range(inner)
        ]
        # The paper's noise: each of rounds·inner releases has σ with μ² = ε²/(2 log(1.25/δ)) in all.
        shift = epsilon / math.sqrt(2 * math.log(1.25 / HUANG_DELTA))
        exact = gaussian_epsilon(shift * math.sqrt(sum(ratios) / len(ratios)), HUANG_DELTA)
        found.append((exact, exact))
    return found


def _rising(found: Sequence[Range]) -> list[Range]:
    """Bounds from below by less and less noise: each is at least the one before."""
    lows = itertools.accumulate((low for low, _ in found), max)
    return [(low, max(low, high)) for low, (_, high) in zip(lows, found, strict=True)]


def renyi_noise(rows: int, batch: int, steps: int, epsilon: float, delta: float) -> float:
    """Noise over sensitivity for a claim, by the Rényi accountant for batches without replacement."""

    def claimed(noise: float) -> float:
        accountant = RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
        step = dp_event.SampledWithoutReplacementDpEvent(rows, batch, dp_event.GaussianDpEvent(noise))
        accountant.compose(step, steps)
        return float(accountant.get_epsilon(delta))

    low, high = 0.3, 0.6
    while claimed(high) > epsilon:
        low, high = high, 2 * high
    for _ in range(10):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if claimed(middle) > epsilon else (low, middle)
    return high


def texts(found: Sequence[Range]) -> list[str]:
    """Ranges in words, rounded outwards.

    Examples
    --------
    >>> texts([(0.1234, 0.1299), (25.3, INFINITE), (INFINITE, INFINITE), (2.0, 2.0)])
    ['0.12–0.13', '≥ 25', '∞', '2.0']
    """
    return [_text(low, high) for low, high in found]


def _text(low: float, high: float) -> str:
    if low >= INFINITE:
        return "∞"
    if high >= INFINITE:
        return f"≥ {_rounded(low, math.floor)}"
    if low == high:
        return _rounded(high, math.ceil)
    lower, upper = _rounded(low, math.floor), _rounded(high, math.ceil)
    return lower if lower == upper else f"{lower}–{upper}"


def _rounded(value: float, towards: Callable[[float], int]) -> str:
    digits = max(0, 1 - math.floor(math.log10(value))) if value < 10 else 0
    return f"{towards(round(value * 10**digits, 6)) / 10**digits:.{digits}f}"


COMMAND = (
    'Each row is printed by `python -c "from dpadmm.reproduce.published_settings import *; print(texts(SETTING))"`, '
    "with its SETTING."
)


def setting_row(names: Sequence[str], setting: str) -> list[str]:
    """A row of a table: names, ranges, and the setting that gives them.

    Examples
    --------
    >>> setting_row(("DP-VRADMM",), "liu2022_vradmm_strong()")[:2]
    ['DP-VRADMM', '∞']
    """
    function, _, arguments = setting.partition("(")
    found = globals()[function](*ast.literal_eval(f"({arguments[:-1]},)" if arguments != ")" else "()"))
    return [*names, *texts(found), f"`{setting}`"]
