"""Every test begins as a fresh process would: with no fit behind it, short fits run on NumPy."""

from __future__ import annotations

import pytest

from dpadmm.kernels import kernel_choice


@pytest.fixture(autouse=True)
def no_fit_behind(monkeypatch):
    monkeypatch.setattr(kernel_choice, "_read_so_far", 0.0)
