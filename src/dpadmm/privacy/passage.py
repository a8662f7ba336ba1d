"""One pass over all rows in a secret order, of which only the last state is seen, in the numbers its accounting needs.

| symbol | word            | meaning                                                                 |
|--------|-----------------|-------------------------------------------------------------------------|
| ηβ     | `coupling`      | step size times penalty parameter                                       |
| s²     | `weakest`       | smallest squared singular value of A, from below                        |
| ‖A‖²   | `strongest`     | largest squared singular value of A, from above                         |
| ημ     | `convexity`     | step size times the strong convexity of every row's loss; 0 if convex   |
| Λ      | `blow_up`       | what two iterations cost per squared distance of their starts           |
| c²     | `contraction`   | factor on squared distances of one iteration                            |
| r      | `rounding`, …   | distance between a visit as computed and as proved, over σ               |

docs/proofs/iteration.md has the proofs.
"""

from __future__ import annotations

import math
import sys
from dataclasses import asdict, dataclass
from typing import Any

from dpadmm.errors import InvalidParameter
from dpadmm.privacy.state_grid import DUAL_SHARE, Footing

NOISY_PASS = "noisy pass"
"""Kind of a query for hidden passes."""


@dataclass(frozen=True)
class Passage:
    """Noisy gradient ADMM over `n_rows` rows, each visited once, in a uniformly random secret order.

    Without `rounding` its visits are those of real numbers: what papers speak of, and plans of earlier versions. Only
    passages that charge their rounding are carried out.

    Formal guarantees
    -----------------
    Distances are those of docs/proofs/iteration.md: ‖(x, λ)‖² = ‖x‖² + (η/β)‖λ − βAx‖². The properties below are
    Claims 1 to 4 there, and hold for every convex loss with η ≤ 1/L and every convex penalty.

    Examples
    --------
    >>> plain = Passage(48842, coupling=1.0, weakest=1.0, strongest=1.0)
    >>> round(plain.blow_up, 3), plain.contraction, plain.printed_blow_up
    (2.618, 1.0, 6.0)
    """

    n_rows: int
    coupling: float
    weakest: float
    strongest: float
    convexity: float = 0.0
    rounding: float = 0.0
    clip_rounding: float = 0.0

    def __post_init__(self) -> None:
        usable = (
            self.n_rows >= 1
            and 0 < self.coupling < math.inf
            and 0 < self.weakest <= self.strongest < math.inf
            # Their inverses and squares are then numbers, too.
            and sys.float_info.min <= self.coupling * self.weakest
            and self.coupling * self.strongest < math.inf
            and 0 <= self.convexity <= 1
            and 0 <= self.rounding < math.inf
            and 0 <= self.clip_rounding < math.inf
        )
        if not usable:
            raise InvalidParameter(
                f"a pass with coupling {self.coupling:g}, singular values squared from {self.weakest:g} to "
                f"{self.strongest:g} and convexity {self.convexity:g}",
                "a coupling that is a positive number, also times the singular values, A of full row rank and "
                "0 <= convexity <= 1",
                "use a positive beta, a step of at most 1/L, and a constraint of full row rank",
            )

    @classmethod
    def of(cls, footing: Footing) -> Passage:
        """The numbers of a certified program that is carried out on a grid."""
        program = footing.program
        constraint = program.problem.constraint
        return cls(
            footing.n_rows,
            program.step * program.beta,
            constraint.smallest_squared,
            max(constraint.norm_squared, constraint.smallest_squared),
            min(program.step * program.convexity, 1.0),
            *footing.rounding,
        )

    @property
    def blow_up(self) -> float:
        """Λ = ((1 + 2κ²) + √(1 + 4κ⁴))/2 with κ² = 1/(ηβs²)."""
        kappa = 1.0 / (self.coupling * self.weakest)
        return ((1.0 + 2.0 * kappa) + math.sqrt(1.0 + 4.0 * kappa * kappa)) / 2.0

    @property
    def contraction(self) -> float:
        """c² = 1 − min((1 − (1 − ημ)²)/(1 + ηβ‖A‖²), ηβs²/(1 + ηβs²)); 1 without strong convexity."""
        primal = self.convexity * (2.0 - self.convexity) / (1.0 + self.coupling * self.strongest)
        dual = self.coupling * self.weakest / (1.0 + self.coupling * self.weakest)
        return 1.0 - min(primal, dual)

    @property
    def printed_blow_up(self) -> float:
        """max(2, 3/(ηβ))·(1 + ηβ‖A‖²) of Chan, Xie & Zhao 2024, Theorem 5.1, whose A = [I D] has s ≥ 1."""
        kappa = 1.0 / (self.coupling * min(self.weakest, 1.0))
        return max(2.0, 3.0 * kappa) * (1.0 + self.coupling * self.strongest)

    def rounding_of(self, noise_multiplier: float) -> float:
        """r/σ at z = σ/(ηC)."""
        return self.rounding + self.clip_rounding / noise_multiplier

    def leftover_of(self, noise_multiplier: float) -> float:
        """What rounding leaves of a difference in λ after the last visit, over the noise on λ after the pass."""
        stretch = self.coupling * self.strongest
        return self.rounding_of(noise_multiplier) * (4.0 / (DUAL_SHARE * math.sqrt(stretch)) + 1.0)

    def to_dict(self) -> dict[str, Any]:
        fields = asdict(self)
        if not self.rounding and not self.clip_rounding:
            # Absent where there is none, so that the digests of older plans stay what they were.
            del fields["rounding"], fields["clip_rounding"]
        return fields
