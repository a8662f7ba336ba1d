"""Hidden states on a public grid: how far a state can go, what rounding adds to a visit, and the noise that is drawn.

| symbol | word               | meaning                                                                        |
|--------|--------------------|--------------------------------------------------------------------------------|
| σ      | noise              | standard deviation of the noise on x after each visit                          |
| ηC     | clipped step       | how far one row's gradient can move x                                          |
| k      | `stretch`          | ηβ‖A‖², from above                                                             |
| R      | `reach`            | no state goes further, in the distance of docs/proofs/iteration.md             |
| r      | `rounding`         | distance between a visit as computed and the visit the proof speaks of         |
| γ, γ_λ | `grid`, `dual_grid` | spacing of x after every visit, of λ after every pass                         |

R and r are sums of a multiple of σ and a multiple of ηC, so that they are known before the noise is.
docs/proofs/float.md has the proofs (Lemmas 4 and 5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from dpadmm.errors import InvalidParameter
from dpadmm.privacy.arithmetic import MANTISSA_BITS, UNIT_ROUNDOFF
from dpadmm.problem.hidden_pass_program import Program

STATE_BITS = 32
"""A grid of states is this many powers of two below the noise: roundings of thousands of visits must not add up."""
DUAL_SHARE = 0.125
"""Noise on the dual after a pass, relative to σ‖A‖: what one visit puts into Ax is several times as much."""
DEVIATIONS = 40.0
"""States go further than their reach with a chance below e^(−800)."""
MARGIN = 0.01
"""Share of the reach that is left for rounding itself."""
LARGEST_EXPONENT = 400
"""Grids are within 2^±400, so that underflow is far below them and nothing overflows."""


class Amount(NamedTuple):
    """by_noise·σ + by_clip·ηC."""

    by_noise: float
    by_clip: float

    def over_noise(self, noise_multiplier: float) -> float:
        """In units of σ, where σ = z·ηC."""
        return self.by_noise + self.by_clip / noise_multiplier


@dataclass(frozen=True)
class Footing:
    """Where the states of some passes of a program can be, and what rounding adds to each visit.

    Formal guarantees
    -----------------
    Holds for every table, every order of the rows and every order of summation (docs/proofs/float.md, Lemmas 4 and 5).
    """

    program: Program
    n_rows: int
    clip_norm: float
    stretch: float
    reach: Amount
    rounding: Amount

    @classmethod
    def of(cls, program: Program, n_rows: int, passes: int, clip_norm: float) -> Footing:
        """Of so many passes over so many rows; refused where double precision does not carry them."""
        stretch = program.step * program.beta * program.problem.constraint.norm_squared
        visits, features = (n_rows + 1) * passes, program.problem.constraint.n_features
        unit = program.step * clip_norm
        reach = Amount(
            (1.0 + MARGIN) * math.sqrt((1.0 + stretch) * visits) * (1.5 * math.sqrt(features) + 2.5 * DEVIATIONS),
            (1.0 + MARGIN) * visits * (1.0 + program.public_drift / unit),
        )
        computing = UNIT_ROUNDOFF * (
            (1.0 + stretch) * program.operations + (1.0 + stretch) ** 1.5 * program.solving_operations
        )
        spacing = math.sqrt((1.0 + stretch) * features)
        finest, coarsest = math.ldexp(1.0, -STATE_BITS), math.ldexp(1.0, -MANTISSA_BITS)
        rounding = Amount(
            spacing * (finest + coarsest * reach.by_noise) + computing * reach.by_noise,
            spacing * coarsest * reach.by_clip
            + computing * (reach.by_clip + 1.0 + (program.public_drift + program.public_size) / unit),
        )
        room = MARGIN / (1.0 + MARGIN) / visits
        if not (rounding.by_noise <= room * reach.by_noise and rounding.by_clip <= room * reach.by_clip):
            raise InvalidParameter(
                f"{visits} visits of hidden passes, or constants of very different sizes",
                "so few that double precision carries the state through them",
                "use fewer passes, a smaller beta, or solver='full-admm'",
            )
        return cls(program, n_rows, clip_norm, stretch, reach, rounding)

    def noise(self, noise_multiplier: float) -> StateNoise:
        """Grids and deviations, from public numbers alone."""
        unit = self.program.step * self.clip_norm
        deviation = noise_multiplier * unit * (1.0 + 2.0**-40)
        strength = math.sqrt(self.program.problem.constraint.norm_squared)
        dual_deviation = DUAL_SHARE * strength * deviation
        furthest = self.reach.over_noise(noise_multiplier) * deviation
        furthest_dual = (1.0 + math.sqrt(self.stretch)) * furthest / math.sqrt(self.program.step * self.program.beta)
        return StateNoise(_grid(deviation, furthest), deviation, _grid(dual_deviation, furthest_dual), dual_deviation)


@dataclass(frozen=True)
class StateNoise:
    """Spacing and standard deviation of the noise on x after each visit, and on λ after each pass."""

    grid: float
    deviation: float
    dual_grid: float
    dual_deviation: float


def _grid(deviation: float, furthest: float) -> float:
    """A power of two `STATE_BITS` below the noise, or as fine as float64 holds the furthest state on."""
    size = max(math.ldexp(deviation, -STATE_BITS), math.ldexp(furthest, -MANTISSA_BITS))
    exponent = math.frexp(size)[1] - 1
    if not (0.0 < size < math.inf and abs(exponent) <= LARGEST_EXPONENT):
        raise InvalidParameter(
            f"hidden passes whose noise has a standard deviation of {deviation:g}",
            "a number that double precision holds in full",
            "use another step_size, beta or clip_norm",
        )
    return math.ldexp(1.0, exponent)
