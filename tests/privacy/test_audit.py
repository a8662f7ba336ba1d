"""T6: audits. The printed algorithms and every mutant break the claim; the library stays just below it."""

from __future__ import annotations

import ast
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dpadmm
from dpadmm.audit.leaky_algorithms import PrintedMPADMM, PrintedSADMM, PrintedVRADMM
from dpadmm.audit.lower_bound import epsilon_lower_bound
from dpadmm.errors import CannotCertify, InvalidParameter
from dpadmm.oracles.mechanisms import Granular
from dpadmm.privacy.accountants.gaussian import gaussian_shift
from dpadmm.privacy.printed_noise import legacy_paper_sigma
from dpadmm.privacy.sampling import Poisson, TruncatedPoisson, WithoutReplacement
from dpadmm.problem import L1, Constraint, Problem, Squared
from dpadmm.randomness import make_streams
from dpadmm.solvers import run
from dpadmm.solvers.mpadmm import MPADMM
from dpadmm.solvers.sadmm import SADMM
from dpadmm.solvers.vradmm import VRADMM
from tests.asking import less_noise, private, private_with

from . import toys

TRIALS = 20_000


class TestLowerBound:
    """The yardstick itself."""

    def test_never_exceeds_the_truth_of_a_gaussian(self):
        mu = 1.0
        truth = 4.377178  # ε of N(1, 1) against N(0, 1) at δ = 1e-5 (theory §2.3)
        for seed in range(5):
            rng = np.random.default_rng(seed)
            bound = epsilon_lower_bound(rng.normal(size=50_000), rng.normal(mu, size=50_000), 1e-5)
            assert 1.0 < bound.epsilon < truth

    def test_equal_laws_give_nothing(self):
        rng = np.random.default_rng(0)
        bound = epsilon_lower_bound(rng.normal(size=50_000), rng.normal(size=50_000), 1e-5)
        assert bound.epsilon < 0.05

    def test_thresholds_are_tested_on_runs_that_did_not_choose_them(self):
        """A score that memorises the choosing half separates only that half."""
        scores = np.random.default_rng(0).normal(size=20_000)
        marked = scores.copy()
        marked[:10_000] += 100
        assert epsilon_lower_bound(scores, marked, 1e-5).epsilon == 0

    @pytest.mark.parametrize("flip", [False, True])
    @pytest.mark.parametrize("sign", [1, -1])
    def test_finds_every_direction(self, flip, sign):
        rng = np.random.default_rng(1)
        a, b = rng.normal(size=20_000), rng.normal(3 * sign, size=20_000)
        bound = epsilon_lower_bound(*((b, a) if flip else (a, b)), 1e-5)
        assert bound.epsilon > 3

    def test_infinite_scores_are_a_certain_leak_up_to_the_number_of_trials(self):
        bound = epsilon_lower_bound(np.zeros(10_000), np.full(10_000, np.inf), 1e-5)
        assert bound.epsilon == pytest.approx(math.log(0.9985 / 0.0015), abs=0.05)

    @pytest.mark.parametrize("scores", [np.zeros(5), np.full(1000, np.nan), np.zeros((200, 2))])
    def test_refuses_unusable_scores(self, scores):
        with pytest.raises(InvalidParameter):
            epsilon_lower_bound(scores, np.zeros(1000), 1e-5)

    @pytest.mark.parametrize(("delta", "confidence"), [(-0.1, 0.9), (1.0, 0.9), (0.1, 1.0), (math.nan, 0.9)])
    def test_refuses_impossible_probabilities(self, delta, confidence):
        with pytest.raises(InvalidParameter):
            epsilon_lower_bound(np.zeros(1000), np.zeros(1000), delta, confidence)


class TestPrintedAlgorithmsLeak:
    """Positive controls: the audits have the power to find what the papers overlooked."""

    @staticmethod
    def _outputs(algorithm, trials, seeds):
        return [algorithm.release(flipped, trials, np.random.default_rng(seeds[flipped])) for flipped in (0, 1)]

    def test_vradmm_with_a_noiseless_snapshot(self):
        claimed, epochs, inner = 0.5, 3, 2
        sigma = math.sqrt(epochs * inner) / gaussian_shift(claimed, 1e-5) * 2 / 20
        a, b = self._outputs(PrintedVRADMM(sigma, epochs=epochs, inner_steps=inner), 200_000, (1, 2))
        assert epsilon_lower_bound(a[1], b[1], 1e-5).epsilon > 2
        assert epsilon_lower_bound(a[0], b[0], 1e-5).epsilon < claimed  # only y leaks, so accuracy never shows it

    def test_mpadmm_without_eta_in_the_sensitivity(self):
        algorithm = PrintedMPADMM(1 / gaussian_shift(1.0, 1e-5), step_size=5.0)
        a, b = self._outputs(algorithm, 200_000, (11, 12))
        assert epsilon_lower_bound(a[0] + a[1], b[0] + b[1], 1e-5).epsilon >= 2.8

    def test_mpadmm_is_fine_where_the_missing_factor_is_below_one(self):
        algorithm = PrintedMPADMM(1 / gaussian_shift(1.0, 1e-5), step_size=0.5)
        a, b = self._outputs(algorithm, 200_000, (11, 12))
        assert epsilon_lower_bound(a[0] + a[1], b[0] + b[1], 1e-5).epsilon < 1

    def test_sadmm_with_the_sigma_of_theorem_2(self):
        algorithm = PrintedSADMM(epsilon=1.0, delta=5e-4, rows=1000, batch_size=10, steps=1)
        with pytest.raises(CannotCertify):
            legacy_paper_sigma(1000, 10, 1, 1.0, 5e-4)
        a, b = self._outputs(algorithm, 400_000, (6, 7))
        assert epsilon_lower_bound(a, b, 5e-4).epsilon > 4

    def test_a_third_table_is_refused(self):
        with pytest.raises(InvalidParameter):
            PrintedSADMM().release(2, 10, np.random.default_rng(0))

    def test_no_estimator_solver_or_command_can_reach_them(self):
        """Only the command that audits, in two files, may import the audits, and no audit imports them."""
        root = Path(dpadmm.__file__).parent
        for path in root.rglob("*.py"):
            command = path in (root / "cli" / "audit_command.py", root / "cli" / "audit_results.py")
            inside = command or path.is_relative_to(root / "audit")
            forbidden = "leaky_algorithms" if inside else "audit"
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [alias.name for alias in getattr(node, "names", [])] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom):
                    names = [f"{node.module}.{alias.name}" for alias in node.names]
                names = [name for name in names if not name.startswith("dpadmm.cli.")]
                assert not any(forbidden in name.split(".") for name in names), path
        assert not any("rinted" in name for name in dir(dpadmm))


SAMPLERS = {
    "full": (toys.antipodal(8), toys.make_plan, "full"),
    "poisson": (toys.antipodal(8), toys.make_plan, "poisson"),
    "truncated-poisson": (toys.antipodal(8), toys.make_plan, TruncatedPoisson(0.5, 5, 8)),
    # The worst neighbour of a fixed-size batch differs from all the others, not from an empty record.
    "fixed": (toys.antipodal(8, others=-1.0), toys.make_plan, "fixed"),
}


class TestTheLibraryKeepsItsClaim:
    """Real oracle, worst pair, best score: below the claim, and above 0.6 of it, so that the audit means something."""

    @pytest.mark.parametrize("name", SAMPLERS)
    def test_one_release(self, name):
        tables, make, sampler = SAMPLERS[name]
        bound = toys.audit(tables, make(sampler, 8, 4), toys.ask_gradients(), TRIALS)
        assert 0.6 <= bound.epsilon <= 1.0

    @pytest.mark.parametrize("sampler", ["full", "poisson"])
    def test_one_release_under_add_remove(self, sampler):
        plan = toys.make_plan(sampler, 8, 4, relation="add-remove")
        bound = toys.audit(toys.removed(8), plan, toys.ask_gradients(), TRIALS)
        assert 0.6 <= bound.epsilon <= 1.0

    @pytest.mark.parametrize("clip_norm", [2.0, 0.25])
    def test_snapshot_with_scaled_difference(self, clip_norm):
        plan = toys.make_vr_plan("poisson", 8, 4)
        bound = toys.audit(toys.tilted(8), plan, toys.ask_vr(clip_norm), 12_000, score=_vr_score(plan, clip_norm))
        assert 0.6 <= bound.epsilon <= 1.0

    @pytest.mark.statistical
    @pytest.mark.parametrize("sampler", ["poisson", "fixed", TruncatedPoisson(0.5, 5, 8)])
    def test_three_releases(self, sampler):
        plan = toys.make_plan(sampler, 8, 4, count=3)
        q = plan.queries[0]
        tables = toys.antipodal(8, others=-1.0) if q.sampler.name == "fixed" else toys.antipodal(8)

        def score(answers):
            units = answers * q.denominator / q.noise_multiplier
            if q.sampler.name == "fixed":
                units = (units + 4 / q.noise_multiplier) - 1 / q.noise_multiplier
            return toys.log_ratio(units, 0.5, 1 / q.noise_multiplier).sum(axis=1)

        bound = toys.audit(tables, plan, toys.ask_gradients(3), TRIALS, score)
        assert 0.5 <= bound.epsilon <= 1.0

    @pytest.mark.statistical
    @pytest.mark.parametrize("name", ["mpadmm", "dp-sadmm", "dp-vradmm"])
    def test_released_coefficients_of_the_repaired_solvers(self, name):
        """The printed algorithms leak in exactly this toy; the repaired ones do not."""
        problem = Problem(Squared(), L1(0.01), Constraint.identity(1), ridge=0.1)
        solver = {
            "mpadmm": MPADMM(1, 5.0, averaging="last"),
            "dp-sadmm": SADMM(1, 1.0, averaging="last"),
            "dp-vradmm": VRADMM(2, 2, 0.1, rate=0.5, gradient_clip=1.0, beta=0.2, convexity="strong"),
        }[name]
        plan = _plan_of(solver, problem)
        run_once = _coefficient(solver, problem)
        bound = toys.audit(toys.antipodal(8), plan, run_once, 8_000)
        assert bound.epsilon <= 1.0


class TestMutantsAreCaught:
    """Each breaks one line of the oracle, the sampler, the clipping or the accounting, and the audit says so."""

    def test_half_the_noise(self):
        plan, quiet = toys.make_plan("full", 8, 8), private_with(less_noise(2))
        bound = toys.audit(toys.antipodal(8), plan, toys.ask_gradients(), TRIALS, oracle=quiet)
        assert bound.epsilon > 1.5

    def test_no_clip(self):
        def unclipped(rows, plan, streams):
            def ask(question, at, batch):
                return rows.ask(replace(question, clip=5 * question.clip), at, batch)

            return private(SimpleNamespace(n_rows=rows.n_rows, space=rows.space, ask=ask), plan, streams)

        plan = toys.make_plan("poisson", 8, 4)
        assert toys.audit(toys.antipodal(8), plan, toys.ask_gradients(), 5_000, oracle=unclipped).epsilon > 3

    def test_twice_the_sampling_rate(self):
        plan = _with_sampler(toys.make_plan("poisson", 8, 4), Poisson(1.0))
        assert toys.audit(toys.antipodal(8), plan, toys.ask_gradients(), TRIALS).epsilon > 1.5

    def test_reused_noise(self):
        """The same noise on two queries cancels in their difference."""

        class Repeating:
            def __init__(self, seed):
                self._noise, self._last = make_streams(seed).noise, None

            def standard_normal(self, shape):
                fresh, self._last = self._last, None
                if fresh is None:
                    fresh = self._last = self._noise.standard_normal(shape)
                return fresh.copy()

        streams = [SimpleNamespace(noise=Repeating(seed), sampling=make_streams(seed).sampling) for seed in (0, 1)]
        plan = toys.make_plan("full", 8, 8, count=2)
        ask = toys.ask_gradients(2, (toys.ORIGIN, toys.ORIGIN + 1e6))
        honest = toys.audit(toys.antipodal(8), plan, ask, 5_000, _gap)
        reused = toys.audit(toys.antipodal(8), plan, ask, 5_000, _gap, streams=streams)
        assert honest.epsilon <= 1.0
        assert reused.epsilon > 4

    @pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
    def test_poisson_accountant_for_fixed_size_batches(self, relation):
        plan = toys.make_plan("poisson", 20, 2, budget=(1.0, 0.01), relation=relation)
        wrong = _with_sampler(plan, WithoutReplacement(2, 20))
        assert toys.audit(toys.antipodal(20, others=-1.0), wrong, toys.ask_gradients(), 10_000).epsilon > 2

    def test_noiseless_snapshot(self):
        class Bare(Granular):
            def release(self, total, query, clip, gate):
                noisy = super().release(total, query, clip, gate)
                return total / query.denominator if query.kind == "snapshot" else noisy

        plan = toys.make_vr_plan("poisson", 8, 4)
        assert toys.audit(toys.tilted(8), plan, toys.ask_vr(), 3_000, oracle=private_with(Bare)).epsilon > 4

    def test_mean_over_the_realised_batch(self):
        def realised(rows, plan, streams):
            (query,) = plan.queries

            def ask(question, at, batch):
                total = rows.ask(question, at, batch)
                # Every batch of equal records has the same mean, whatever its size: no row hides behind the others.
                mean = total / len(batch.rows) if len(batch.rows) else total - query.clip_norm
                return mean * query.denominator

            return private(SimpleNamespace(n_rows=rows.n_rows, space=rows.space, ask=ask), plan, streams)

        plan = toys.make_plan("poisson", 20, 2, budget=(1.0, 0.01))
        tables = toys.antipodal(20, others=-1.0)
        assert toys.audit(tables, plan, toys.ask_gradients(), 10_000).epsilon <= 1.0
        assert toys.audit(tables, plan, toys.ask_gradients(), 10_000, oracle=realised).epsilon > 1.3


def _with_sampler(plan, sampler):
    return replace(plan, queries=tuple(replace(query, sampler=sampler) for query in plan.queries))


def _gap(answers):
    return answers[:, 1] - answers[:, 0]


def _vr_score(plan, clip_norm):
    snapshot, difference = plan.queries

    def score(answers):
        z_p, z_d = snapshot.noise_multiplier, difference.noise_multiplier
        first = -2 * answers[:, 0] * snapshot.denominator / z_p**2
        units = answers[:, 1] * difference.denominator / (z_d * clip_norm)
        return first + toys.log_ratio(units, difference.sampler.rate, 1 / z_d)

    return score


def _plan_of(solver, problem):
    from dpadmm.privacy.budget import Budget
    from dpadmm.privacy.calibration import calibrate
    from dpadmm.privacy.sampling import Everything

    sampler = Poisson(0.5) if solver.samples else Everything()
    return calibrate(Budget(1.0, 0.05), solver.requests(problem, 1.0), sampler, 8, cache=False)


def _coefficient(solver, problem):
    def ask(oracle):
        solution = run(solver, problem, oracle)
        oracle.require_promise_kept()
        return [float(solution.coefficients[0])]

    return ask
