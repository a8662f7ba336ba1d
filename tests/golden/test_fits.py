"""Seeded fits are those of earlier versions; `python -m tests.golden.test_fits` records them on one more machine."""

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


# Their noise is added in coordinates made of eigenvectors, whose signs another processor may choose otherwise.
TURNED = ("auto", "private", "search")


@pytest.mark.parametrize(("name", "engine"), CASES)
def test_a_seeded_fit_is_that_of_earlier_versions(name, engine):
    expected, found = load()[f"{name} ({engine})"], record(name, engine)
    assert found["plan"] == expected["plan"]
    assert found["statement"] == expected["statement"]
    if machine() in expected["released"]:
        assert found["released"] == expected["released"][machine()]
    elif not name.startswith(TURNED):
        # Another processor adds in another order, which may move an answer by one step of its public grid.
        earlier = next(iter(expected["released"].values()))
        numbers, earlier = ([float.fromhex(value) for value in fit] for fit in (found["released"], earlier))
        np.testing.assert_allclose(numbers, earlier, rtol=1e-6, atol=1e-8)


def test_every_fit_is_recorded():
    assert set(load()) == {f"{name} ({engine})" for name, engine in CASES}


def recorded_here(name, engine, earlier):
    """The record of a fit, with what it released on this machine beside what it released on others."""
    found = record(name, engine)
    return {**found, "released": {**earlier.get("released", {}), machine(): found["released"]}}


if __name__ == "__main__":
    known = load()
    fits = {
        f"{name} ({engine})": recorded_here(name, engine, known.get(f"{name} ({engine})", {})) for name, engine in CASES
    }
    RECORDED.write_text(json.dumps(fits, indent=1, ensure_ascii=False) + "\n")
