"""The picture of audits: what was claimed, what is proven, and what attacks could show."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpadmm.privacy.wording import rounded_up
from dpadmm.report.picture import INK, LOWERS, OTHERS, QUIET, RAISES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg")
LEAST_HEIGHT, ABOVE, BELOW = 2.6, 0.5, 0.45
"""In inches: of the picture, of its titles and of its ε axis, however few the bars."""
LEAST_LINES = 3


@dataclass(frozen=True)
class Audited:
    """One audit: three numbers that must stand in the order lower bound ≤ proven ≤ claimed, and what to expect."""

    name: str
    claimed: float
    proven: float
    lower_bound: float
    expected: float

    @property
    def refuted(self) -> bool:
        return self.lower_bound > self.claimed


def audit_picture(audits: Sequence[Audited], kind: str = "png") -> bytes:
    """Draw one panel for each claimed ε, one line for each name, as a PNG or an SVG."""
    import matplotlib

    stream = io.BytesIO()
    metadata: dict[str, Any] = {"Software": None} if kind == "png" else {"Date": None, "Creator": None}
    # Text stays text and ids do not change from run to run.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "dpadmm"}):
        audit_figure(audits).savefig(
            stream, format=kind, dpi=170, bbox_inches="tight", pad_inches=0.15, metadata=metadata
        )
    return stream.getvalue()


def audit_figure(audits: Sequence[Audited]) -> Figure:
    """The picture before it is written."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    claims = list(dict.fromkeys(audit.claimed for audit in audits))
    names = list(dict.fromkeys(audit.name for audit in audits))
    height = max(LEAST_HEIGHT, 1.7 + 0.3 * len(names))
    figure = Figure(figsize=(2.2 + 3.4 * len(claims), height), facecolor="white")
    figure.subplots_adjust(top=min(0.88, 1 - ABOVE / height), bottom=max(0.11, BELOW / height))
    FigureCanvasAgg(figure)
    panels: Any = figure.subplots(1, len(claims), sharey=True, squeeze=False)
    for axes, claimed in zip(panels[0], claims, strict=True):
        _panel(axes, [audit for audit in audits if audit.claimed == claimed], claimed, names)
    _legend(figure, any(audit.refuted for audit in audits))
    figure.suptitle(
        "Claimed, proven and audited ε", x=0.01, ha="left", color=INK, fontsize=11, fontweight="bold", y=1.0
    )
    return figure


def _panel(axes: Axes, audits: Sequence[Audited], claimed: float, names: Sequence[str]) -> None:
    heights = {name: height for height, name in enumerate(names)}
    for audit in audits:
        height, colour = heights[audit.name], LOWERS if audit.refuted else RAISES
        # The edge keeps a bound of zero visible.
        axes.barh(height, audit.lower_bound, color=colour, edgecolor=colour, linewidth=1.5, height=0.56, zorder=2)
        axes.plot([audit.expected] * 2, [height - 0.36, height + 0.36], color=OTHERS, linewidth=2.2, zorder=3)
        axes.plot(audit.proven, height, marker="D", color="white", markeredgecolor=INK, markersize=5.5, zorder=5)
    axes.axvline(claimed, color=INK, linewidth=1.0, linestyle=(0, (4, 3)), zorder=4)
    axes.set_title(f"claimed ε = {rounded_up(claimed)}", loc="left", color=QUIET, fontsize=9, pad=6)
    axes.set_yticks(range(len(names)), [name.replace("$", r"\$") for name in names])
    spare = max(0, LEAST_LINES - len(names)) / 2
    axes.set_ylim(len(names) - 0.4 + spare, -0.6 - spare)
    axes.set_xlim(0.0, 1.1 * max([claimed, *(audit.lower_bound for audit in audits)]))
    axes.set_xlabel("ε", color=QUIET, fontsize=9)
    axes.grid(axis="x", color="#e6e9ec", linewidth=0.8, zorder=0)
    axes.tick_params(length=0, labelsize=8.5, colors=INK)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _legend(figure: Any, refuted: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Line2D([], [], color=INK, linewidth=1.0, linestyle=(0, (4, 3)), label="claimed"),
        Line2D([], [], color="white", marker="D", markeredgecolor=INK, linestyle="none", label="proven"),
        Patch(color=RAISES, label="audited lower bound"),
        *([Patch(color=LOWERS, label="refuted")] if refuted else []),
        Line2D(
            [],
            [],
            color=OTHERS,
            marker="|",
            markersize=11,
            markeredgewidth=2.2,
            linestyle="none",
            label="bound to expect of full use",
        ),
    ]
    figure.legend(
        handles=handles,
        frameon=False,
        fontsize=8.5,
        labelcolor=INK,
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        ncols=len(handles),
        handlelength=1.4,
        columnspacing=1.4,
    )
