"""What a private selection does to the data, in the words an accountant needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpadmm.privacy.events import Event
from dpadmm.privacy.selection.repetitions import Repetitions


@dataclass(frozen=True)
class Selection:
    """The best output, by its own noisy score, of a secret random number of runs; the others are never seen.

    Parameters
    ----------
    alternatives : tuple of Event
        What one run can do to one record: the fit of any candidate if the record is in the training part, the score
        if it is in the validation part. A run costs no more than the worst of them (docs/proofs/tuning.md, Claim 1).
    repetitions : Repetitions
        Law of the number of runs.
    """

    alternatives: tuple[Event, ...]
    repetitions: Repetitions
    full_batch: ClassVar[bool] = False
    """Never one Gaussian, whatever its runs are."""
