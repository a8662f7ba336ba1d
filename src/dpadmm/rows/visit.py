"""Visits to rows, one after another, as a hidden pass makes them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpadmm import kernels
from dpadmm.kernels import numpy_kernels
from dpadmm.problem.hidden_pass_program import Program

Array = NDArray[np.float64]


def visit(
    program: Program,
    state: tuple[Array, Array],
    rows: Array,
    norms: Array,
    target: Array,
    weights: Array,
    noise: Array,
    clip: float,
    grid: float,
    code: int,
    parameter: float,
) -> tuple[Array, Array]:
    """The state after visiting `rows` one after another; `kernels.numpy_kernels.visits` says how."""
    engine = kernels.active() if program.is_entrywise else numpy_kernels
    rest = (*state, *program.constants, clip, grid, code, parameter)
    x, dual = engine.visits(rows, norms, target, weights, noise, *rest)
    return x, dual
