"""`score.py` and `score.sql`: the files beside a model that score rows without this library."""

from __future__ import annotations

import math

import numpy as np

from dpadmm.scoring.linear_score import LinearScore
from dpadmm.scoring.python_file import python_file
from dpadmm.scoring.sql_query import fits_databases, sql_file

SCORE_FILES = ("score.py", "score.sql")

MOST_NUMBERS = 100_000
"""Larger models are scored by the library only: as text they are no use to a reader."""


def score_files(model: LinearScore) -> dict[str, str]:
    """The text of each file, by its name; without one that cannot hold the model."""
    plain = all(isinstance(label, str) or _finite(label) for label in model.labels or ())
    if model.weights.size > MOST_NUMBERS or not np.all(np.isfinite(model.weights)) or not plain:
        return {}
    texts = {"score.py": python_file(model)}
    return {**texts, "score.sql": sql_file(model)} if fits_databases(model) else texts


def _finite(label: object) -> bool:
    """Whether a label is a truth or a number that can be written; dates, bytes and infinities are none."""
    return isinstance(label, int) or (isinstance(label, float) and math.isfinite(label))
