"""The public size of what a plan asks of a table, by which kernels are chosen."""

from __future__ import annotations

import math
from typing import Any

from scipy.sparse import issparse

from dpadmm.kernels import FitSize, Loop
from dpadmm.privacy.plan import Query
from dpadmm.privacy.questions import HiddenWalk
from dpadmm.privacy.unit import Unit


def work_of(query: Query, n_features: int, table: Any, times: float = 1.0, unit: Unit = Unit.ROW) -> FitSize:
    """What a query reads if its plan is carried out, or expected to be, so many times."""
    rows: Loop = "sparse" if issparse(table) else "dense" if unit is Unit.ROW else "persons"
    loop = "row_visits" if isinstance(query.question, HiddenWalk) else rows
    return FitSize(math.ceil(times * query.readings), query.denominator, n_features, loop)
