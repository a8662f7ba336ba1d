"""Worst-case neighbouring tables in one and two dimensions, and the loop that runs a real oracle on them many times."""

from __future__ import annotations

import math

import numpy as np

from dpadmm.audit.lower_bound import epsilon_lower_bound
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import DIFFERENCE, GRADIENT, SNAPSHOT, ClippedGradient, GradientDifference
from dpadmm.privacy.sampling import make_sampler
from dpadmm.problem import Squared
from dpadmm.randomness import make_streams
from dpadmm.rows.local import LocalRows
from tests.asking import private

ORIGIN = np.zeros(1)
FAR = 1e3
"""Targets so far from every margin that squared-loss slopes are clipped: a row 1 with target ∓FAR contributes ±clip."""


def contributions(*signs: float) -> LocalRows:
    """d = 1: a record with sign +1, −1 or 0 contributes +clip, −clip or nothing at the origin."""
    signs = np.asarray(signs, dtype=float)
    return LocalRows(np.abs(signs)[:, None], -FAR * signs, Squared())


def antipodal(n: int, others: float = 0.0) -> tuple[LocalRows, LocalRows]:
    """The pair that attains the replace-one sensitivity: the first record contributes +clip or −clip."""
    return contributions(1.0, *[others] * (n - 1)), contributions(-1.0, *[others] * (n - 1))


def removed(n: int) -> tuple[LocalRows, LocalRows]:
    """The pair that attains the add-remove sensitivity: one record of full size is there or not."""
    return contributions(1.0, *[0.0] * (n - 1)), contributions(*[0.0] * (n - 1))


TILT = 0.01
ANCHOR, POINT = np.array([-1e5, 0.0]), np.array([1e5, 0.0])


def tilted(n: int) -> tuple[LocalRows, LocalRows]:
    """d = 2: a convex loss never moves a gradient against x − anchor, so the pair is antipodal across that line.

    At ANCHOR the first record contributes ∓clip in the second coordinate; from ANCHOR to POINT its gradient moves by
    ±2 clip there, whatever smaller clip the difference query applies.
    """

    def table(sign: float) -> LocalRows:
        X = np.zeros((n, 2))
        X[0] = TILT, sign * math.sqrt(1 - TILT**2)
        return LocalRows(X, np.zeros(n), Squared())

    return table(1.0), table(-1.0)


def make_plan(sampler, n, batch_size, budget=(1.0, 0.05), relation="replace-one", count=1):
    """A certified plan of `count` gradient queries of clip 1; `sampler` is a name or a sampler."""
    chosen = make_sampler(sampler, n, batch_size) if isinstance(sampler, str) else sampler
    return calibrate(
        Budget(*budget, relation), [Request("gradient", count, ClippedGradient(1.0))], chosen, n, cache=False
    )


def make_vr_plan(sampler, n, batch_size, budget=(1.0, 0.05)):
    """One snapshot and one difference, as DP-VRADMM asks for them."""
    requests = [
        Request("snapshot", 1, ClippedGradient(1.0), full_data=True),
        Request("difference", 1, GradientDifference(2.0), relative_noise=0.8),
    ]
    return calibrate(Budget(*budget), requests, make_sampler(sampler, n, batch_size), n, cache=False)


def ask_gradients(count=1, points=(ORIGIN,) * 8):
    """All answers of a plan of gradient queries, at d = 1."""

    def ask(oracle):
        return [float(oracle.ask(GRADIENT, points[i])[0]) for i in range(count)]

    return ask


def ask_vr(clip_norm=2.0):
    """(snapshot, difference) in the coordinate that matters."""

    def ask(oracle):
        return [oracle.ask(SNAPSHOT, ANCHOR)[1], oracle.ask(DIFFERENCE, POINT, ANCHOR, clip_norm)[1]]

    return ask


def transcripts(rows, plan, ask, trials, seed, oracle=private, streams=None):
    """`trials` independent transcripts of a real oracle, one row each."""
    streams = make_streams(seed) if streams is None else streams
    return np.array([ask(oracle(rows, plan, streams)) for _ in range(trials)])


def audit(tables, plan, ask, trials, score=lambda t: t[:, 0], oracle=private, streams=(None, None), seed=0):
    """Certified lower bound on ε of the transcript, at the plan's own δ."""
    a, b = (score(transcripts(rows, plan, ask, trials, seed + i, oracle, streams[i])) for i, rows in enumerate(tables))
    return epsilon_lower_bound(a, b, plan.budget.delta)


def log_ratio(value, rate, shift):
    """log of the density ratio of (1−q)N(0)+qN(+shift) to (1−q)N(0)+qN(−shift): the attacker's best score."""
    up, down = (np.logaddexp(math.log1p(-rate), math.log(rate) + s * value * shift - shift**2 / 2) for s in (1, -1))
    return up - down
