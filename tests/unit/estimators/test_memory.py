"""Many fits of one process take no more memory than a few: what grows once is the library of compiled kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FITS = """
import sys
import numpy as np
from dpadmm import DPLogisticRegression

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2**20

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (1000, 10)); y = (X[:, 0] > 0).astype(int)
few, many = int(sys.argv[1]), int(sys.argv[2])
for number in range(many):
    if number == few:
        before = resident()
    DPLogisticRegression(1.0 + number / 1000, 1e-5, classes=[0, 1], random_state=number).fit(X, y)
print(resident() - before)
"""
MOST = 6.0
"""MiB; each of two hundred fits that kept its table would add fifteen."""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    ("few", "many", "engine"),
    [
        (20, 80, "numpy"),
        pytest.param(50, 400, "numpy", marks=pytest.mark.slow),
        pytest.param(50, 400, "compiled", marks=pytest.mark.slow),
    ],
)
def test_fits_leave_nothing_behind(few: int, many: int, engine: str) -> None:
    environment = {**os.environ, "DPADMM_KERNELS": engine}
    command = [sys.executable, "-c", FITS, str(few), str(many)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, timeout=600)
    assert float(done.stdout) < MOST
