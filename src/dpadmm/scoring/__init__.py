"""A released model in other people's words: a Python file and a SQL query that score rows without this library."""

from dpadmm.scoring.files_beside_model import SCORE_FILES, score_files
from dpadmm.scoring.linear_score import LinearScore, Promise
from dpadmm.scoring.raw_inputs import Category, Input, Number, Ranged, YesNo

__all__ = [
    "SCORE_FILES",
    "Category",
    "Input",
    "LinearScore",
    "Number",
    "Promise",
    "Ranged",
    "YesNo",
    "score_files",
]
