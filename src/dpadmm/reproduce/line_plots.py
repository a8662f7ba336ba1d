"""A reproduced figure as SVG and PNG: one column for each panel, one row for each metric, one line for each curve."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

from dpadmm.report.picture import INK, QUIET
from dpadmm.reproduce.exhibit import Curve, Metric, PlottedExhibit
from dpadmm.reproduce.true_epsilon import INFINITE
from dpadmm.reproduce.verdicts import Line, Measurements

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0b6e8a", "#c4572a", "#2f7d32", "#8e4aa8", "#b8860b", "#c2185b", "#4a5fc1", "#5d4037", "#00897b", "#7a1a14")
"""Of private curves and of those without privacy, in their order; no two next to each other look alike in grey."""
MARKERS = "osD^vPX<>*"
GREYS = ("#8a949d", "#aeb6bd", "#6d7780", "#c3c9ce")
WIDTH, HEIGHT, ABOVE, BELOW = 2.75, 2.15, 0.25, 0.45
"""In inches: of a panel with what stands around it, and the space above and below all panels."""


def line_plot(found: Measurements, kind: str) -> bytes:
    """The figure in the format `kind`, "svg" or "png"."""
    import matplotlib

    stream = io.BytesIO()
    metadata: dict[str, Any] = {"Software": None} if kind == "png" else {"Date": None, "Creator": None}
    # Text stays text and ids do not change from run to run.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "dpadmm"}):
        draw(found).savefig(stream, format=kind, dpi=100, bbox_inches="tight", pad_inches=0.12, metadata=metadata)
    return stream.getvalue()


def draw(found: Measurements) -> Figure:
    """The figure before it is written."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    exhibit = found.exhibit
    metrics = [metric for metric in exhibit.metrics if _shown(found, metric)]
    panels = [panel for panel in exhibit.panels if found.xs(panel.title)]
    columns = max(len(panels), 2)
    figure = Figure(figsize=(WIDTH * columns + 0.6, HEIGHT * len(metrics) + 0.5), facecolor="white")
    FigureCanvasAgg(figure)
    grid: Any = figure.subplots(len(metrics), len(panels), squeeze=False)
    high = float(figure.get_figheight())
    figure.subplots_adjust(hspace=0.28, wspace=0.32, bottom=BELOW / high, top=1 - ABOVE / high)
    for row, metric in enumerate(metrics):
        for column, panel in enumerate(panels):
            axes = grid[row][column]
            if metric.only and panel.title not in metric.only:
                axes.set_axis_off()
                continue
            _panel(axes, found, panel.title, metric)
            if row == 0:
                axes.set_title(panel.title, color=INK, fontsize=9.5, fontweight="bold")
            if column == 0 or metric.only:
                axes.set_ylabel(metric.label, color=QUIET, fontsize=8.5)
            if row == len(metrics) - 1 or metrics[row + 1].only:
                axes.set_xlabel(exhibit.x.label, color=QUIET, fontsize=8.5)
    _legend(figure, found)
    return figure


def _shown(found: Measurements, metric: Metric) -> bool:
    panels = metric.only or tuple(panel.title for panel in found.exhibit.panels)
    return any(found.line(panel, curve.label, metric) for panel in panels for curve in found.exhibit.curves)


def _panel(axes: Axes, found: Measurements, panel: str, metric: Metric) -> None:
    exhibit = found.exhibit
    axes.grid(color="#e9ecef", linewidth=0.7)
    axes.set_axisbelow(True)
    for curve in exhibit.curves:
        line = found.line(panel, curve.label, metric)
        if line and curve.label != metric.above:
            _draw_curve(axes, line, curve, style(exhibit, curve))
    if metric.logarithmic:
        _plain_powers(axes)
    xs = found.xs(panel)
    if exhibit.x.logarithmic and xs and min(xs) > 0:
        axes.set_xscale("log")
    axes.set_xticks(xs, [f"{x:g}" for x in xs], minor=False)
    if len(xs) > 7:
        axes.set_xticks(xs[::2], [f"{x:g}" for x in xs[::2]])
    axes.xaxis.set_minor_locator(_none())
    axes.tick_params(length=2, labelsize=7.5, colors=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _plain_powers(axes: Axes) -> None:
    """A logarithmic axis with few labels, as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    wide = high / max(low, 1e-300) > 300
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0), numticks=7))
    axes.yaxis.set_minor_locator(_none())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))


def _none() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def _draw_curve(axes: Axes, line: Line, curve: Curve, look: dict[str, Any]) -> None:
    """The mean with a band of one standard error to each side."""
    if curve.flat:
        point = next(iter(line.values()))
        axes.axhline(point.mean, **{**look, "marker": ""})
        if point.error:
            axes.axhspan(
                point.mean - point.error, point.mean + point.error, color=look["color"], alpha=0.12, linewidth=0
            )
        return
    xs, means = list(line), [point.mean for point in line.values()]
    errors = [point.error for point in line.values()]
    low = [mean - error for mean, error in zip(means, errors, strict=True)]
    high = [mean + error for mean, error in zip(means, errors, strict=True)]
    axes.fill_between(xs, low, high, color=look["color"], alpha=0.18, linewidth=0)
    axes.plot(xs, means, **look)


def style(exhibit: PlottedExhibit, curve: Curve) -> dict[str, Any]:
    """Colour, line and marker of a curve: grey and dashed as published, dotted without privacy."""
    alike = [each for each in exhibit.curves if (each.kind == "published") == (curve.kind == "published")]
    number = alike.index(curve)
    shared: dict[str, Any] = {"markersize": 3.6, "linewidth": 1.5}
    if curve.kind == "published":
        return {
            **shared,
            "color": GREYS[number % len(GREYS)],
            "linestyle": "--",
            "marker": MARKERS[number],
            "zorder": 2,
        }
    colour = COLOURS[number % len(COLOURS)]
    if curve.kind == "open":
        return {**shared, "color": colour, "linestyle": ":", "marker": "" if curve.flat else ".", "zorder": 2.5}
    return {**shared, "color": colour, "linestyle": "-", "marker": MARKERS[number % len(MARKERS)], "zorder": 3}


def legend_label(found: Measurements, curve: Curve) -> str:
    """What the legend says of a curve; of a published one, what its ε truly is."""
    if curve.kind == "open":
        return curve.label if "private" in curve.label else f"{curve.label} (not private)"
    if curve.kind == "private":
        return curve.label
    true = true_range(found, curve)
    return curve.label.replace(" (printed)", "") + ", as published" + (f" (true ε {true})" if true else "")


def true_range(found: Measurements, curve: Curve) -> str:
    """The least and the largest true ε over all panels at the largest claim, from below.

    A measurement says it as `true_epsilon`; None there stands for infinity.
    """
    bounds: list[float] = []
    for panel in found.exhibit.panels:
        by_claim = found.raw(panel.title, curve.label, "true_epsilon")
        if by_claim:
            bounds += [float(value) for value in by_claim[max(by_claim)]]
    if not bounds:
        return ""
    claim = max(x for panel in found.exhibit.panels for x in found.raw(panel.title, curve.label, "true_epsilon"))
    words = " to ".join(dict.fromkeys(epsilon_text(each) for each in (min(bounds), max(bounds))))
    return f"{words} at claimed {claim:g}" if words == "∞" else f"≥ {words} at claimed {claim:g}"


def epsilon_text(bound: float) -> str:
    """A lower bound on ε, rounded down."""
    if bound >= INFINITE:
        return "∞"
    digits = 0 if bound >= 10 else 2 if bound >= 0.1 else 4
    return f"{math.floor(bound * 10**digits) / 10**digits:g}"


def _legend(figure: Figure, found: Measurements) -> None:
    from matplotlib.lines import Line2D

    exhibit = found.exhibit
    hidden = {metric.above for metric in exhibit.metrics}
    shown = [
        curve
        for curve in exhibit.curves
        if curve.label not in hidden or any(not metric.above for metric in exhibit.metrics)
    ]
    handles = [Line2D([], [], label=legend_label(found, curve), **style(exhibit, curve)) for curve in shown]
    if not any(curve.kind != "private" or len(shown) > 1 for curve in shown):
        return
    longest = max(len(legend_label(found, curve)) for curve in shown)
    columns = max(1, min(len(handles), int(figure.get_figwidth() / (0.07 * longest + 0.5))))
    figure.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=columns,
        frameon=False,
        fontsize=8,
        labelcolor=INK,
    )
