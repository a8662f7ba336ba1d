"""How far one record moves each named query, where the bound is not simply twice a clip (docs/proofs/auto.md).

A *reach* is the sensitivity divided by `Relation.record_distance`, so that a query of reach C released with noise z·C
costs as much as a clipped sum with clip C and multiplier z.
"""

from __future__ import annotations

import math

from dpadmm.errors import InvalidParameter


def joint_moments_reach(balance: float, outputs: int, record_distance: float) -> float:
    """Reach of the sum of (s ⊗ a, √balance · a aᵀ), ‖a‖ ≤ 1, with s = ±1 (outputs 1) or s = e_y − 1/K (outputs K).

    Formal guarantees
    -----------------
    Replace-one: the squared distance is at most J with J = 4 for two classes and balance ≤ 1/2: the second moment is
    free, because the pair that moves the correlation most (same row, other label) leaves it where it is. Add-remove:
    the largest squared norm of one contribution.
    """
    size = 1.0 if outputs == 1 else 1.0 - 1.0 / outputs
    if not 0 < balance <= size / 2:
        raise InvalidParameter(f"balance={balance}", f"0 < balance <= {size / 2:g}", "choose a smaller balance")
    if record_distance == 1.0:
        return math.sqrt(size + balance)
    if outputs == 1:
        return math.sqrt(4.0) / 2
    opposite = 4 * size
    turning = 1 / (2 * outputs * balance)
    other_label = 2 * size + 2 / outputs
    if turning < 1:
        other_label = 2 * size + 2 * balance + 1 / (2 * outputs**2 * balance)
    return math.sqrt(max(opposite, other_label)) / 2


def second_moment_reach(record_distance: float) -> float:
    """Reach of the sum of a aᵀ, ‖a‖ ≤ 1: √2/2 under replace-one, 1 under add-remove."""
    return 1.0 if record_distance == 1.0 else math.sqrt(2.0) / 2
