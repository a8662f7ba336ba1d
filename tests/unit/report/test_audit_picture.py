"""The picture of audits: two formats, the same bytes every time, and refutation in another colour."""

from __future__ import annotations

import itertools

import pytest

from dpadmm.report.audits import FORMATS, Audited, audit_figure, audit_picture
from dpadmm.report.picture import LOWERS

STANDS = Audited("auto", 1.0, 0.99, 0.7, 0.8)
REFUTED = Audited("cost $5", 0.2, 0.2, 0.9, 0.1)


@pytest.mark.parametrize("kind", FORMATS)
def test_both_formats_are_repeatable(kind):
    drawn = audit_picture([STANDS, REFUTED], kind)
    assert drawn.startswith({"png": b"\x89PNG", "svg": b"<?xml"}[kind])
    assert drawn == audit_picture([STANDS, REFUTED], kind)


def test_words_stay_words_and_refutation_shows():
    drawn = audit_picture([STANDS, REFUTED], "svg").decode()
    for word in ("auto", "cost $5", "claimed ε = 0.2", "claimed ε = 1", "refuted"):
        assert word in drawn
    assert LOWERS in drawn
    calm = audit_picture([STANDS], "svg").decode()
    assert "refuted" not in calm
    assert LOWERS not in calm


@pytest.mark.parametrize("bars", [1, 2, 3, 12])
def test_words_do_not_meet(bars):
    figure = audit_figure([Audited(f"solver {i}", 1.0, 0.99, 0.7, 0.8) for i in range(bars)])
    figure.canvas.draw()
    (axes,), (legend,) = figure.axes, figure.legends
    # The panel title is the left one; `axes.title` is the middle one, which is empty.
    stacked = [figure._suptitle, axes._left_title, *axes.get_yticklabels(), axes.xaxis.label, legend]
    boxes = [part.get_window_extent() for part in stacked]
    assert all(above.y0 > below.y1 for above, below in itertools.pairwise(boxes))
