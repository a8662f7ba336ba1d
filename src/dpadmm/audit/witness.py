"""An eavesdropper on one run: knows both tables and every line of code, sees the noisy answers, and not the noise."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpadmm.kernels.clipping import SMALLEST_CLIP
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.passage import NOISY_PASS
from dpadmm.privacy.plan import Plan, Query
from dpadmm.privacy.questions import ClippedGradient, Kind
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.hidden_pass_program import Program
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.rows.lattice_sum import as_numbers
from dpadmm.rows.protocol import Rows

A = TypeVar("A")
Array = NDArray[np.float64]

ALL = Batch(None)


class Witness:
    """Passes every question on to the oracle, and asks itself which of two tables the answer speaks for.

    Parameters
    ----------
    oracle : PrivateOracle
        Holds one of the two tables.
    plan : Plan
        Says how much noise to expect.
    tables : (Rows, Rows)
        The suspects, as the oracle would hold them.

    Attributes
    ----------
    log_ratios : dict of str to float
        log of the density of the answers under the second table over that under the first, by kind of query, and by its
        pieces where the question names some.

    Notes
    -----
    For full-data queries the sum over `log_ratios` is the exact log-likelihood ratio of the transcript: by Neyman and
    Pearson no attacker has a better score. For sampled queries it is exact, but for truncation, if all records other
    than the differing one contribute zero; otherwise, and of hidden passes, it is a score like any other.
    """

    def __init__(self, oracle: PrivateOracle, plan: Plan, tables: tuple[Rows, Rows]) -> None:
        self._oracle, self._plan = oracle, plan
        self._tables = self._seen = tables
        self.log_ratios: dict[str, float] = defaultdict(float)

    @property
    def log_ratio(self) -> float:
        """Evidence of the whole transcript for the second table."""
        return math.fsum(self.log_ratios.values())

    def ask(self, kind: Kind[A], *at: Any) -> A:
        answer, query = self._oracle.ask(kind, *at), self._query(kind)
        question = query.question
        tables = self._seen if question.frame == "seen" else self._tables
        clip = min(query.clip_norm, question.accept(at, tables[0].space))
        if clip >= SMALLEST_CLIP:
            sums = [as_numbers(rows.ask(question, at, ALL)).ravel() for rows in tables]
            seen = question.noised(answer)
            for part, places in (question.pieces(tables[0].space) or {kind: slice(None)}).items():
                self._weigh(part, query, clip, seen[places], [total[places] for total in sums])
        return answer

    def walk(self, program: Program, tick: Callable[[int], None] | None = None) -> tuple[Array, Array]:
        """All there is to see of hidden passes: how far x went the way the two tables would have pulled it apart."""
        x, dual = self._oracle.walk(program, tick)
        pull = ClippedGradient(self._query(NOISY_PASS).clip_norm)
        first, second = (as_numbers(rows.ask(pull, (np.zeros_like(x),), ALL)) for rows in self._tables)
        self.log_ratios[NOISY_PASS] += float(np.sum(x * (first - second)))
        return x, dual

    def change_coordinates(self, matrix: Array | SpikedMap) -> None:
        self._oracle.change_coordinates(matrix)
        first, second = self._tables
        self._seen = first.transformed(matrix), second.transformed(matrix)

    def noise_std(self, kind: str) -> float:
        return self._oracle.noise_std(kind)

    def _query(self, kind: str) -> Query:
        query = self._plan.query(kind)
        assert query is not None, "the oracle answered what the plan does not contain"
        return query

    def _weigh(self, part: str, query: Query, clip_norm: float, answer: Array, sums: Sequence[Array]) -> None:
        """Add log p(answer | second) − log p(answer | first); a record takes part with the sampler's probability."""
        scale = query.noise_multiplier * clip_norm
        seen = answer * (query.denominator / scale)
        rate = query.sampler.denominator(self._plan.n_rows) / self._plan.n_rows
        first, second = (log_density(seen, total / scale, rate) for total in sums)
        self.log_ratios[part] += second - first


def log_density(seen: Array, mean: Array, rate: float) -> float:
    """log of (1 − q)N(0, I) + q N(mean, I) at `seen`, up to what does not depend on `mean`."""
    here = float(np.vdot(mean, seen) - np.vdot(mean, mean) / 2)
    return here if rate >= 1 else _log_sum(math.log1p(-rate), math.log(rate) + here)


def _log_sum(a: float, b: float) -> float:
    """log(eᵃ + eᵇ)."""
    high, low = max(a, b), min(a, b)
    return high + math.log1p(math.exp(low - high))
