"""How far the released coefficients move with the privacy noise: answers kept, a model of the rows, replays.

Everything here is post-processing: its only input is a `Transcript`, which holds noisy answers and public numbers.
"""

from dpadmm.solvers.auto.spread.replay import Spread, noise_spread
from dpadmm.solvers.auto.spread.transcript import Listener, Transcript, why_no_transcript

__all__ = ["Listener", "Spread", "Transcript", "noise_spread", "why_no_transcript"]
