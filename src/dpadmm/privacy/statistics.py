"""Sums that are not clipped gradients, each with how far one record can move it, and where that is proved.

A *reach* is the sensitivity divided by `Relation.record_distance`: a query of reach C released with noise z·C costs as
much as a clipped sum with clip C and multiplier z. Calibration takes the reach from here, under the relation of the
budget, and the oracle takes what it sums from here too, so that a solver cannot declare one thing and be given another.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol

from dpadmm.errors import InvalidParameter
from dpadmm.privacy.budget import Relation
from dpadmm.registry import Registry
from dpadmm.stored import reading, record

STATISTICS: Registry[type[Statistic]] = Registry("statistic")


class Statistic(Protocol):
    """Fields are public and fix what is summed."""

    name: ClassVar[str]
    proof: ClassVar[str]
    words: ClassVar[str]
    """What is summed, for people."""

    def reach(self, relation: Relation) -> float:
        """Sensitivity of the sum divided by the distance of the relation."""
        ...


@STATISTICS.register("joint-moments")
@dataclass(frozen=True)
class JointMoments:
    """Σ (s ⊗ a, √balance · a aᵀ), ‖a‖ ≤ 1, with |s| ≤ 1 (outputs 1) or s = e_y − 1/K (outputs K).

    For one output s is the descent slope at zero divided by `slope_unit` and cut to ±1. With `non_negative`, negative
    entries of a count as zero.

    Formal guarantees
    -----------------
    Replace-one: the squared distance is at most J, with J = 4 for one output: the second moment is free, because the
    pair that moves the correlation most (same row, other label) leaves it where it is. Add-remove: the largest squared
    norm of one contribution. A balance for which this is not proved is refused (docs/proofs/auto.md, Claim 1).
    """

    balance: float
    outputs: int
    slope_unit: float = 1.0
    non_negative: bool = False
    name: ClassVar[str] = "joint-moments"
    proof: ClassVar[str] = "docs/proofs/auto.md"
    words: ClassVar[str] = "sums of label times row and of row times row, rows scaled to length one"

    def __post_init__(self) -> None:
        if not 0 < self.balance <= self._size / 2:
            raise InvalidParameter(
                f"balance={self.balance}", f"0 < balance <= {self._size / 2:g}", "choose a smaller balance"
            )

    @property
    def _size(self) -> float:
        """‖s‖²."""
        return 1.0 if self.outputs == 1 else 1.0 - 1.0 / self.outputs

    def reach(self, relation: Relation) -> float:
        size, balance, outputs = self._size, self.balance, self.outputs
        if relation is Relation.ADD_REMOVE:
            return math.sqrt(size + balance)
        if outputs == 1:
            return 1.0
        other_label = 2 * size + 2 / outputs
        if 2 * outputs * balance > 1:
            other_label = 2 * size + 2 * balance + 1 / (2 * outputs**2 * balance)
        same_label = 2 * (size + balance) if self.non_negative else 4 * size
        return math.sqrt(max(same_label, other_label)) / 2


@STATISTICS.register("second-moment")
@dataclass(frozen=True)
class SecondMoment:
    """Σ a aᵀ, ‖a‖ ≤ 1: moved by √2 when a row is replaced, by 1 when one is added (docs/proofs/auto.md, Claim 3)."""

    name: ClassVar[str] = "second-moment"
    proof: ClassVar[str] = "docs/proofs/auto.md"
    words: ClassVar[str] = "sum of row times row in coordinates made from earlier releases, rows scaled to length one"

    def reach(self, relation: Relation) -> float:
        return 1.0 if relation is Relation.ADD_REMOVE else math.sqrt(2.0) / 2


@STATISTICS.register("feature-curvature")
@dataclass(frozen=True)
class FeatureCurvature:
    """Σ c, c = l''(⟨a, x⟩) · weights∘a∘a scaled down to ‖c‖ ≤ 1, at a public x and with public weights ≥ 0.

    Formal guarantees
    -----------------
    No entry of c is negative, so that two of them are at most √2 apart: moved by √2 when a row is replaced, by 1 when
    one is added (docs/proofs/auto.md, Claim 6).
    """

    name: ClassVar[str] = "feature-curvature"
    proof: ClassVar[str] = "docs/proofs/auto.md"
    words: ClassVar[str] = (
        "sum of row squared entrywise times the curvature of its loss, at a point and with weights made from earlier "
        "releases, scaled down to length one"
    )

    def reach(self, relation: Relation) -> float:
        return 1.0 if relation is Relation.ADD_REMOVE else math.sqrt(2.0) / 2


@STATISTICS.register("row-moments")
@dataclass(frozen=True)
class RowMoments:
    """Σ (s ⊗ a, √mean · a, √diagonal · a∘a, √length · ‖a‖²), ‖a‖ ≤ 1, with s as in `JointMoments`.

    What can be had of a second moment without asking for d² numbers. A part of weight zero is not asked for.

    Formal guarantees
    -----------------
    With σ the largest ‖s‖² and diagonal + length ≤ σ/2 the squared distance under replace-one is at most 4(σ + mean):
    the diagonal and the length are free. Add-remove: the largest squared norm of one contribution, the sum of σ and
    all weights. Weights for which this is not proved are refused (docs/proofs/auto.md, Claim 4).
    """

    mean: float
    diagonal: float
    length: float
    outputs: int
    slope_unit: float = 1.0
    name: ClassVar[str] = "row-moments"
    proof: ClassVar[str] = "docs/proofs/auto.md"
    words: ClassVar[str] = (
        "sums of label times row, of the rows, of their squares and of their squared lengths, each with its public "
        "weight, rows scaled to length one"
    )

    def __post_init__(self) -> None:
        weights = (self.mean, self.diagonal, self.length)
        if not (all(0 <= weight <= 1 for weight in weights) and self.diagonal + self.length <= self._size / 2):
            raise InvalidParameter(
                f"weights {weights}",
                f"weights from 0 to 1, diagonal + length <= {self._size / 2:g}",
                "choose smaller weights",
            )

    @property
    def _size(self) -> float:
        """‖s‖²."""
        return 1.0 if self.outputs == 1 else 1.0 - 1.0 / self.outputs

    def reach(self, relation: Relation) -> float:
        if relation is Relation.ADD_REMOVE:
            return math.sqrt(self._size + self.mean + self.diagonal + self.length)
        return math.sqrt(self._size + self.mean)


@STATISTICS.register("feature-moment")
@dataclass(frozen=True)
class FeatureMoment:
    """Σ a aᵀ for the rows as they are mapped, divided by the declared norm: ‖a‖ ≤ 1.

    Formal guarantees
    -----------------
    Moved by √2 when a row is replaced, by 1 when one is added (docs/proofs/preparation.md, Claim 1).
    """

    name: ClassVar[str] = "feature-moment"
    proof: ClassVar[str] = "docs/proofs/preparation.md"
    words: ClassVar[str] = "sum of row times row, rows divided by their declared norm"

    def reach(self, relation: Relation) -> float:
        return 1.0 if relation is Relation.ADD_REMOVE else math.sqrt(2.0) / 2


@STATISTICS.register("counts-below")
@dataclass(frozen=True)
class CountsBelow:
    """Σ (1[x_j ≤ t_kj] − ½) for each feature j and threshold k: counts, less half of the rows.

    Formal guarantees
    -----------------
    Every entry of a contribution is ±½, so that replacing a row moves the sum by at most √(features · levels) and
    adding one by at most half of that (docs/proofs/preparation.md, Claim 2).
    """

    features: int
    levels: int
    name: ClassVar[str] = "counts-below"
    proof: ClassVar[str] = "docs/proofs/preparation.md"
    words: ClassVar[str] = "for each feature, how many values are at most a threshold made from earlier releases"

    def __post_init__(self) -> None:
        if not (self.features >= 1 and self.levels >= 1):
            raise InvalidParameter("counts of nothing", "at least one feature and one threshold", "ask for one")

    def reach(self, relation: Relation) -> float:
        return math.sqrt(self.features * self.levels) / 2


def statistic_to_dict(statistic: Statistic | None) -> dict[str, Any] | None:
    return None if statistic is None else {"name": statistic.name, **asdict(statistic)}  # type: ignore[call-overload]


def statistic_from_dict(fields: dict[str, Any] | None) -> Statistic | None:
    if fields is None:
        return None
    with reading("a statistic"):
        made: Statistic = record(STATISTICS[fields["name"]], fields, "a statistic")
        return made
