"""A released model in other people's words: a Python file and a SQL query that score rows without this library."""

from dpadmm.scoring.files import SCORE_FILES, score_files
from dpadmm.scoring.inputs import Category, Input, Number, Ranged, YesNo
from dpadmm.scoring.linear import LinearScore, Promise

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
