"""The figures and tables of the papers, measured anew: `dpadmm reproduce` on the command line.

An exhibit is a figure or a table, declared in one file (`exhibits/`). The engine measures its cells on all cores, keeps
each measurement, and writes numbers (CSV, JSON), pictures (SVG, PNG) and pages with verdicts.
"""

from dpadmm.reproduce.bookshelf import exhibit_names, find_exhibit
from dpadmm.reproduce.campaign import Campaign
from dpadmm.reproduce.exhibit import Axis, Better, Case, Curve, Metric, PaperClaim, PlottedExhibit, PrintedTable
from dpadmm.reproduce.measurement_store import MeasurementStore

__all__ = [
    "Axis",
    "Better",
    "Campaign",
    "Case",
    "Curve",
    "MeasurementStore",
    "Metric",
    "PaperClaim",
    "PlottedExhibit",
    "PrintedTable",
    "exhibit_names",
    "find_exhibit",
]
