"""DP-ADMM of two parties by gradient perturbation (Huang et al. 2019), as Chen & Lee 2020 compare with it.

Each party holds half of the rows. In each round it takes one step of linearised ADMM with a noisy gradient of all of
them, and sends its block; the centre averages and applies the prox. Replacing a row changes one party's gradients, so
that the noise of a party is that of its own rows for all rounds (parallel composition). The noise is an ordinary
Gaussian in floating point, calibrated by the library: fit for experiments on public tables, and for nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpadmm.privacy.accountants.gaussian import gaussian_shift
from dpadmm.problem import Problem
from dpadmm.reproduce.contenders.linear_panel import LinearPanel
from dpadmm.reproduce.contenders.printed_gradients import Array, PrintedGradients
from dpadmm.reproduce.contenders.public_splits import mapped_rows, signs
from dpadmm.reproduce.contenders.valid_solver import coverage
from dpadmm.reproduce.exhibit import Case, Numbers


@dataclass(frozen=True)
class TwoPartyADMM:
    """Valid at (ε, min(δ, 1/n²)), replace-one.

    Parameters
    ----------
    parties, rounds : int
        Two as in Chen & Lee 2020; rounds are not given there.
    beta : float
        β of the consensus constraint.
    """

    parties: int = 2
    rounds: int = 60
    beta: float = 0.1

    def __call__(self, case: Case) -> Numbers:
        panel: LinearPanel = case.panel
        rows = panel.rows(case)
        problem, X, target = panel.problem(rows), mapped_rows(rows)[0], signs(rows.y)
        rng = np.random.default_rng([case.seed, 3])
        shares = np.array_split(rng.permutation(rows.n_rows), self.parties)
        parties = [PrintedGradients(problem, X[share], target[share], rng) for share in shares]
        delta = min(panel.delta, 1 / rows.n_rows**2)
        weights = self.run(parties, gaussian_shift(case.x, delta))
        found = panel.judged(weights, case)
        return found if panel.split != "simulated" else {**found, **coverage(np.argsort(-np.abs(weights[:-1])))}

    def run(self, parties: list[PrintedGradients], shift: float) -> Array:
        """The centre's block, averaged over the second half of the rounds; `shift` is μ of the whole budget."""
        problem = parties[0].problem
        deviations = [2 * math.sqrt(self.rounds) / (party.n_rows * shift) for party in parties]
        step = 1 / (2 * problem.smoothness + self.beta)
        centre = problem.zeros()[0]
        blocks, duals, kept = [centre for _ in parties], [centre for _ in parties], []
        for _ in range(self.rounds):
            for number, (party, deviation) in enumerate(zip(parties, deviations, strict=True)):
                gradient = party.mean(blocks[number]) + party.noise(deviation)
                pull = self.beta * (blocks[number] - centre + duals[number])
                blocks[number] = blocks[number] - step * (gradient + pull)
            mean = np.mean([x + u for x, u in zip(blocks, duals, strict=True)], axis=0)
            # The losses of all parties add up to several times their mean, and so does the penalty.
            centre = _prox(problem, mean, 1 / self.beta)
            duals = [u + x - centre for x, u in zip(blocks, duals, strict=True)]
            kept.append(centre)
        averaged: Array = np.mean(kept[self.rounds // 2 :], axis=0)
        return averaged


def _prox(problem: Problem, x: Array, step: float) -> Array:
    """The prox of the penalty on all but the intercept."""
    penalised = problem.constraint.n_rows
    return np.concatenate([problem.regularizer.prox(x[:penalised], step), x[penalised:]])
