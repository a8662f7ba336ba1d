"""The numbers that docs/pitfalls.md, docs/paper-map.md and docs/adr/ quote: `python -m experiments.claims`.

Those that need the adult table look for it as `dpadmm.datasets` does and are skipped with `--no-data`.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant
from sklearn.metrics import roc_auc_score

from dpadmm import DPLogisticRegression
from dpadmm.audit.leaky_algorithms import theorem2_sigma
from dpadmm.privacy.accountants.gaussian import gaussian_epsilon, gaussian_shift
from dpadmm.privacy.accountants.pld import PldAccountant
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.events import Event, GaussianSums
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import ClippedGradient
from dpadmm.privacy.sampling import Poisson, TruncatedPoisson, WithoutReplacement
from experiments.common import train_test

N, B, T, DELTA = 48_842, 221, 2_210, 1e-5


def outlier_through_min_max() -> None:
    """How far one row moves a mean gradient when features are scaled by the data's own minimum and maximum."""
    values = np.random.default_rng(0).uniform(0, 1, 1000)
    outlier = values.copy()
    outlier[0] = 1000.0
    moved = abs(np.mean(-0.5 * _min_max(values)) - np.mean(-0.5 * _min_max(outlier)))
    print(f"min-max scaling: one of 1000 rows moves the mean gradient by {moved:.4f}, allowed 0.001")


def _min_max(values: np.ndarray) -> np.ndarray:
    return (values - values.min()) / (values.max() - values.min())


def private_selection() -> None:
    """Total ε of choosing the best of ten runs in the mean, by the number of runs' distribution."""
    for base in (0.5, 1.0):
        release = dp_event.GaussianDpEvent(1 / gaussian_shift(base, DELTA))
        totals = []
        for shape in (1.0, 0.0, math.inf):
            accountant = RdpAccountant()
            accountant.compose(dp_event.RepeatAndSelectDpEvent(release, mean=10, shape=shape))
            totals.append(f"{accountant.get_epsilon(DELTA):.2f}")
        print(f"selection from base {base}: geometric, logarithmic, Poisson {', '.join(totals)}")


def poisson_accounting_of_fixed_batches() -> None:
    """True ε, from an attained pair to our bound, of fixed-size code with noise calibrated for Poisson add-remove."""
    judge = PldAccountant()
    for claimed in (0.2, 0.5, 1.0):
        plan = calibrate(
            Budget(claimed, DELTA, Relation.ADD_REMOVE),
            [Request("gradient", T, ClippedGradient(1.0))],
            Poisson(B / N),
            N,
        )
        low, high = _true_epsilon(judge, WithoutReplacement(B, N), plan.queries[0].noise_multiplier, T, DELTA)
        print(f"Poisson accountant, fixed batches: claimed {claimed}, true {low:.2f} to {high:.2f}")


def theorem_two() -> None:
    """The papers' closed form: true ε on covtype (b = 50, one epoch, δ = 5e-4), and its waste where it is safe."""
    n, b, delta, claimed = 290_506, 50, 5e-4, 0.8
    steps = round(n / b)
    noise = theorem2_sigma(n, b, steps, claimed, delta) * b
    low, high = _true_epsilon(PldAccountant(), WithoutReplacement(b, n), noise, steps, delta)
    print(f"Theorem 2 on covtype: claimed {claimed}, true {low:.1f} to {high:.1f}")
    for epsilon in (0.05, 1.0):
        plan = calibrate(
            Budget(epsilon, DELTA), [Request("gradient", T, ClippedGradient(1.0))], WithoutReplacement(B, N), N
        )
        waste = theorem2_sigma(N, B, T, epsilon, DELTA) / plan.queries[0].noise_std
        print(f"Theorem 2 at b = √n, 10 epochs, ε = {epsilon}: {waste:.1f} times the noise of the tight accountant")


def model_perturbation() -> None:
    """Exact ε of one release of (x, z) of the printed mpADMM at η = 5, ρ = 0.5, claimed 1."""
    eta, rho = 5.0, 0.5
    shift = gaussian_shift(1.0, DELTA) * math.sqrt(2) * eta / math.sqrt(2 + rho**2)
    print(f"printed mpADMM, η = 5: claimed 1, exact {gaussian_epsilon(shift, DELTA):.2f}")


def _true_epsilon(
    judge: PldAccountant, sampler: WithoutReplacement, noise: float, steps: int, delta: float
) -> tuple[float, float]:
    """The pair in which all other rows sit opposite the differing one is N(0) against a mixture at distance 2C."""
    attained = Event((GaussianSums(Poisson(sampler.rate), noise / 2, steps),))
    bound = Event((GaussianSums(sampler, noise, steps),))
    return judge.epsilon(attained, delta, Relation.ADD_REMOVE), judge.epsilon(bound, delta, Relation.REPLACE_ONE)


def several_fits() -> None:
    print(
        f"six full-data fits at (0.5, 1e-5): {gaussian_epsilon(math.sqrt(6) * gaussian_shift(0.5, DELTA), DELTA):.2f}"
    )


def caps() -> None:
    """Noise of truncated Poisson sampling at ε = 2 relative to Poisson, by the cap."""
    budget, asked = Budget(2.0, DELTA), [Request("gradient", T, ClippedGradient(1.0))]
    plain = calibrate(budget, asked, Poisson(B / N), N).queries[0].noise_multiplier
    for spread in (3, 6):
        cap = math.ceil(B + spread * math.sqrt(B))
        capped = calibrate(budget, asked, TruncatedPoisson(B / N, cap, N), N).queries[0].noise_multiplier
        print(f"cap at {spread} standard deviations: {capped / plain:.3f} times the noise of Poisson at ε = 2")


def clip_and_probabilities() -> None:
    """Mean predicted probability and AUC on Adult's test rows by the clip of full-admm, five seeds."""
    X, y, X_test, y_test = train_test("adult")
    print(f"adult: rate of the positive class in the test rows {np.mean(y_test > 0):.3f}")
    for epsilon in (1000.0, 1.0):
        for clip in (0.5, 1.0):
            chances, areas = [], []
            for seed in range(5):
                model = DPLogisticRegression(
                    epsilon, DELTA, solver="full-admm", clip_norm=clip, classes=[-1, 1], random_state=seed
                ).fit(X, y)
                chances.append(model.predict_proba(X_test)[:, 1].mean())
                areas.append(roc_auc_score(y_test, model.decision_function(X_test)))
            print(f"clip {clip}, ε = {epsilon:g}: mean probability {np.mean(chances):.3f}, AUC {np.mean(areas):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-data", action="store_true", help="skip what needs the adult table")
    options = parser.parse_args()
    outlier_through_min_max()
    several_fits()
    private_selection()
    poisson_accounting_of_fixed_batches()
    caps()
    theorem_two()
    model_perturbation()
    if not options.no_data:
        clip_and_probabilities()


if __name__ == "__main__":
    main()
