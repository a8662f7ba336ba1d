"""docs/add-an-algorithm.md: its file is executed, on simulated rows."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from dpadmm.reproduce import find_exhibit
from dpadmm.reproduce.contenders.linear_panel import LinearPanel
from dpadmm.reproduce.exhibit import Cell, PlottedExhibit

PAGE = Path(__file__).parents[2] / "docs" / "add-an-algorithm.md"
SIMULATED = LinearPanel("simulated", "demo", split="simulated", penalty="graph", delta=1e-8)


@pytest.fixture(scope="module")
def figure(tmp_path_factory):
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    file = tmp_path_factory.mktemp("tutorial") / "my_figure.py"
    file.write_text(program)
    found = find_exhibit(str(file))
    assert isinstance(found, PlottedExhibit)
    return found


def test_it_is_fig_2_with_two_more_curves(figure):
    printed = find_exhibit("liu2022-fig2")
    assert [curve.label for curve in figure.curves[len(printed.curves) :]] == ["full-admm", "noisy gradients"]
    assert figure.panels == printed.panels


@pytest.mark.parametrize("label", ["full-admm", "noisy gradients"])
def test_its_curves_are_measured(figure, label):
    number = [curve.label for curve in figure.curves].index(label)
    algorithm, case = replace(figure, panels=(SIMULATED,)).case(Cell(0, number, 1.0, 0), True)
    numbers = algorithm(case)
    assert numbers["accuracy"] > 0.7
