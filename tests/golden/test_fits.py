"""Seeded fits are those of earlier versions; `python -m tests.golden.test_fits` records them anew, on purpose only."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from .fits import COMPILED, FITS, machine, record

RECORDED = Path(__file__).parent / "fits.json"
CASES = [(name, "numpy") for name in FITS] + [(name, "compiled") for name in COMPILED]


def load():
    return json.loads(RECORDED.read_text())


@pytest.mark.parametrize(("name", "engine"), CASES)
def test_a_seeded_fit_is_that_of_earlier_versions(name, engine):
    recorded = load()
    expected, found = recorded["fits"][f"{name} ({engine})"], record(name, engine)
    assert found["plan"] == expected["plan"]
    assert found["statement"] == expected["statement"]
    if recorded["machine"] == machine():
        assert found["released"] == expected["released"]
    # Another processor adds in another order, which may move an answer by one step of its public grid.
    numbers, earlier = ([float.fromhex(value) for value in fit["released"]] for fit in (found, expected))
    np.testing.assert_allclose(numbers, earlier, rtol=1e-6, atol=1e-8)


def test_every_fit_is_recorded():
    assert set(load()["fits"]) == {f"{name} ({engine})" for name, engine in CASES}


if __name__ == "__main__":
    fits = {f"{name} ({engine})": record(name, engine) for name, engine in CASES}
    RECORDED.write_text(json.dumps({"machine": machine(), "fits": fits}, indent=1, ensure_ascii=False) + "\n")
