"""From public numbers to the certified plan of each node: the same for nodes with as many rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from dpadmm.errors import InvalidParameter, SchemeMismatch, UnsupportedProblem
from dpadmm.network.decentralised.algorithms.base import NetworkAlgorithm
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.plan import Plan, Request
from dpadmm.privacy.questions import GRADIENT, LOCAL_MINIMUM, ClippedGradient, LocalMinimum
from dpadmm.privacy.sampling import make_sampler


def plans_of_nodes(
    algorithm: NetworkAlgorithm,
    budget: Budget,
    sizes: Sequence[int],
    clip_norm: float,
    sampler: str = "full",
    batch_size: int | None = None,
) -> tuple[Plan, ...]:
    """One plan a node: its noisy answers, certified for its own rows alone.

    Raises
    ------
    UnsupportedProblem
        For an algorithm that no accountant certifies, or not with mini-batches or not under the relation.
    """
    if algorithm.protection not in ("gradients", "minima"):
        raise UnsupportedProblem(
            f"a plan for algorithm {algorithm.name!r}",
            "an algorithm whose noise is certified: 'ipadmm', 'dp-admm' or 'pvp'",
            "choose one of these; the others are for comparison",
        )
    if algorithm.protection == "minima":
        require_whole_tables(algorithm.name, budget.relation, sampler)

    @cache
    def plan(rows: int) -> Plan:
        drawn = make_sampler(sampler, rows, _batch(batch_size, sampler, rows))
        return calibrate(budget, [_request(algorithm, clip_norm)], drawn, rows)

    return tuple(plan(rows) for rows in sizes)


def _request(algorithm: NetworkAlgorithm, clip_norm: float) -> Request:
    if algorithm.protection == "minima":
        return Request(LOCAL_MINIMUM, algorithm.asked, LocalMinimum(clip_norm))
    return Request(GRADIENT, algorithm.asked, ClippedGradient(clip_norm))


def require_whole_tables(name: str, relation: Relation, sampler: str) -> None:
    """Refuse what is proved of no algorithm that seeks minima: mini-batches, and rows that come and go."""
    if sampler != "full":
        raise SchemeMismatch(
            f"Got algorithm {name!r} with mini-batches. Expected all rows of a node, in which it seeks a minimum. "
            "Use algorithm 'ipadmm' for mini-batches."
        )
    if relation is not Relation.REPLACE_ONE:
        raise SchemeMismatch(
            f"Got algorithm {name!r} under add-remove. Expected replace-one, the only relation for which something is "
            "proved of minima. Use relation='replace-one', or algorithm 'ipadmm'."
        )


def _batch(batch_size: int | None, sampler: str, rows: int) -> int:
    if sampler == "full":
        return rows
    if batch_size is None:
        raise InvalidParameter(f"sampler={sampler!r} without batch_size", "batch_size too", "say how many rows")
    return batch_size
