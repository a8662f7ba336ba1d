"""Divergences of noisy gradient ADMM where all is linear: exact, and by the two bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpadmm.errors import UnsupportedProblem
from dpadmm.privacy.accountants import make_accountant
from dpadmm.privacy.passage import Passage
from dpadmm.problem import Constraint, Problem, Squared, SquaredL2
from dpadmm.problem.hidden_pass_program import Program
from dpadmm.reproduce.contenders.linear_gaussian import Linear
from dpadmm.reproduce.exhibit import Case, Numbers
from dpadmm.reproduce.true_epsilon import INFINITE


@dataclass(frozen=True)
class GaussianPanel:
    """One of three settings with η = β = 1."""

    title: str

    @property
    def tables(self) -> tuple[str, ...]:
        return ()

    @property
    def setting(self) -> tuple[Linear, float]:
        return gaussian_settings()[self.title]


@dataclass(frozen=True)
class ExactDivergence:
    """The zero-concentrated divergence of the last state, by its Gaussian law, in units of (ηΔ)²/σ²."""

    own_noise: bool = True

    def __call__(self, case: Case) -> Numbers:
        linear, _ = case.panel.setting
        found = linear.divergence(int(case.x), own_noise=self.own_noise)
        return {"divergence": min(found, INFINITE) if np.isfinite(found) else None}


@dataclass(frozen=True)
class BoundOnDivergence:
    """What an accountant of the library says; nothing where it refuses A."""

    accountant: Literal["iteration", "iteration-paper"]

    def __call__(self, case: Case) -> Numbers:
        linear, convexity = case.panel.setting
        return {"divergence": None if is_refused(linear) else bound(self.accountant, linear, convexity, int(case.x))}


def gaussian_settings() -> dict[str, tuple[Linear, float]]:
    """η = β = 1: a convex and a strongly convex setting with A = [I D], and the A = [φ; I] of graph penalties."""
    rng = np.random.default_rng(0)
    wide = np.hstack([np.eye(2), rng.normal(size=(2, 1))])
    stiffness = np.diag([0.1, 10.0])
    tall = np.vstack([[[1.0, -1.0]], np.eye(2)])
    return {
        "convex": (Linear(wide, np.zeros((3, 3)), stiffness, 1.0, 1.0), 0.0),
        "strongly convex": (Linear(wide, np.diag([0.2, 0.5, 1.0]), stiffness, 1.0, 1.0), 0.2),
        "tall A": (Linear(tall, np.zeros((2, 2)), np.diag([0.05, 3.0, 20.0]), 1.0, 1.0), 0.0),
    }


def bound(accountant: str, linear: Linear, convexity: float, later: int) -> float:
    """ρ in units of (ηΔ)²/σ², the local bound 1/2 included."""
    values = np.linalg.svd(linear.A, compute_uv=False)
    passage = Passage(1, linear.step * linear.beta, values[-1] ** 2, values[0] ** 2, linear.step * convexity)
    judge = make_accountant(accountant)
    weights = judge.contraction(passage) ** (-2.0 * np.arange(later // 2))  # type: ignore[attr-defined]
    share = min(1.0, judge.blow_up(passage) / weights.sum()) if later > 1 else 1.0  # type: ignore[attr-defined]
    return float(share / 2)


def is_refused(linear: Linear) -> bool:
    """Whether the library refuses this A."""
    try:
        Program(Problem(Squared(), SquaredL2(1.0), Constraint.general(linear.A)), linear.step, linear.beta)
    except UnsupportedProblem:
        return True
    return False
