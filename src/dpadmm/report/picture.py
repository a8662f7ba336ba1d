"""The picture of the coefficients at the scale of a typical row: bars for one output, a heat map for several."""

from __future__ import annotations

import io
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from dpadmm.report.coefficients import Coefficients

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_FEATURES = 30
LONGEST_NAME = 34
RAISES, LOWERS, OTHERS = "#0b6e8a", "#c4572a", "#a9b1ba"
NOISE = "lines: ± one standard deviation of the privacy noise"
LABEL_HEIGHT = 0.6
"""Inches that the numbers and the label below the axes take."""
INK, QUIET = "#1d2730", "#66727d"


def coefficient_picture(table: Coefficients, axis_label: str, relevant: Collection[int] | None = None) -> bytes:
    """Draw the largest effects on a typical row as a PNG, those of categories beyond the mean of their column.

    Lines of one standard error go to each side where they are known.

    Parameters
    ----------
    table : Coefficients
    axis_label : str
        What a bar or a colour means.
    relevant : collection of int, optional
        Features known to matter (simulated data only); the others are drawn pale.
    """
    chosen = _largest(table)
    figure, axes = _canvas(max(len(chosen), 3), wide=len(table.outputs))
    if len(chosen) == 0:
        axes.text(0.5, 0.5, "every coefficient is zero", ha="center", color=QUIET, transform=axes.transAxes)
        axes.set_axis_off()
    elif len(table.outputs) == 1:
        _bars(axes, table, chosen, axis_label, relevant)
    else:
        _heat_map(figure, axes, table, chosen, axis_label)
    _title(axes, table, len(chosen))
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=170, bbox_inches="tight", pad_inches=0.15, metadata={"Software": None})
    return stream.getvalue()


def _largest(table: Coefficients) -> Any:
    """Numbers of the features of the model with the largest effects."""
    sizes = np.sqrt(np.sum(table.effects**2, axis=0))
    taking_part = table.largest(len(table.names))
    return taking_part[np.argsort(-sizes[taking_part], kind="stable")][:MOST_FEATURES]


def _canvas(rows: int, wide: int) -> tuple[Figure, Axes]:
    # Figure and canvas without pyplot: no global state, no display, nothing to close.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    width = 7.4 if wide == 1 else max(5.0, min(10.0, 3.2 + 0.75 * wide))
    figure = Figure(figsize=(width, 1.1 + 0.235 * rows), facecolor="white")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def _bars(axes: Axes, table: Coefficients, chosen: Any, axis_label: str, relevant: Collection[int] | None) -> None:
    values = table.effects[0, chosen]
    known = np.array([relevant is None or int(i) in relevant for i in chosen])
    colours = np.where(known, np.where(values > 0, RAISES, LOWERS), OTHERS)
    heights = np.arange(len(chosen))
    axes.barh(heights, values, color=colours.tolist(), height=0.68, zorder=2)
    errors = None if table.effect_errors is None else table.effect_errors[0, chosen]
    if errors is not None:
        axes.errorbar(values, heights, xerr=errors, fmt="none", ecolor=INK, elinewidth=0.9, zorder=4)
    axes.axvline(0, color=INK, linewidth=0.8, zorder=3)
    axes.set_yticks(heights, [_short(table.names[i]) for i in chosen])
    axes.set_ylim(len(chosen) - 0.4, -0.6)
    axes.set_xlabel(axis_label, color=QUIET, fontsize=9)
    axes.grid(axis="x", color="#e6e9ec", linewidth=0.8, zorder=0)
    axes.tick_params(length=0, labelsize=8.5, colors=INK)
    for spine in axes.spines.values():
        spine.set_visible(False)
    _legend(axes, values, known, errors, "score" if table.middle is None else "prediction")


def _legend(axes: Axes, values: Any, known: Any, errors: Any, what: str) -> None:
    """Below the axes and their label, where it hides no bar."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.transforms import ScaledTranslation

    entries = [
        (RAISES, f"raises the {what}", bool(np.any(known & (values > 0)))),
        (LOWERS, f"lowers the {what}", bool(np.any(known & (values < 0)))),
        (OTHERS, "not a relevant feature", bool(np.any(~known))),
    ]
    handles: list[Any] = [Patch(color=colour, label=label) for colour, label, present in entries if present]
    if errors is not None and np.any(np.isfinite(errors)):
        unknown = "" if np.all(np.isfinite(errors)) else " (not known for categories)"
        handles.append(Line2D([], [], color=INK, linewidth=0.9, label=NOISE + unknown))
    figure: Any = axes.figure
    below = axes.transAxes + ScaledTranslation(0, -LABEL_HEIGHT, figure.dpi_scale_trans)
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.0, 0.0), "bbox_transform": below}
    axes.legend(handles=handles, frameon=False, fontsize=8.5, labelcolor=INK, handlelength=1.1, **place)


def _heat_map(figure: Figure, axes: Axes, table: Coefficients, chosen: Any, axis_label: str) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    values = table.effects[:, chosen].T
    limit = float(np.abs(values).max())
    colours = LinearSegmentedColormap.from_list("diverging", [LOWERS, "#ffffff", RAISES])
    image = axes.imshow(values, cmap=colours, vmin=-limit, vmax=limit, aspect="auto")
    axes.set_yticks(range(len(chosen)), [_short(table.names[i]) for i in chosen])
    turn: dict[str, Any] = {} if len(table.outputs) <= 4 else {"rotation": 45.0, "ha": "right"}
    axes.set_xticks(range(len(table.outputs)), [_short(name, 16) for name in table.outputs], **turn)
    axes.tick_params(length=0, labelsize=8.5, colors=INK)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel(axis_label, color=QUIET, fontsize=9)
    bar = figure.colorbar(image, ax=axes, fraction=0.05, pad=0.03)
    bar.ax.tick_params(length=0, labelsize=8, colors=INK)
    bar.outline.set_visible(False)


def _title(axes: Axes, table: Coefficients, shown: int) -> None:
    total = f"{table.nonzero} of {len(table.names)} coefficients are not zero"
    part = total if shown == table.nonzero else f"{total}; the {shown} largest"
    axes.set_title(part, loc="left", color=INK, fontsize=11, fontweight="bold", pad=10)


def _short(name: str, longest: int = LONGEST_NAME) -> str:
    # A dollar sign would start a formula.
    text = name if len(name) <= longest else name[: longest - 1] + "…"
    return text.replace("$", r"\$")
