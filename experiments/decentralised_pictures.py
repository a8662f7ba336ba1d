"""The pictures and the words of docs/decentralised.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments import decentralised as trials

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DOCS = Path("docs")
INK, QUIET = "#1d2730", "#66727d"
COLOURS = {"ipadmm": "#0b6e8a", "pvp": "#c4572a", "dp-admm": "#6a4c93", "dvp": "#9aa3ab", "radmm": "#c7ccd1"}
NAMES = {
    "ipadmm": "IPADMM",
    "pvp": "PVP",
    "dp-admm": "DP-ADMM",
    "dvp": "DVP, as published",
    "radmm": "RADMM, as published",
}


def draw(seeds: int) -> None:
    """Three SVG files in docs/."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update(
        {"svg.hashsalt": "dpadmm", "font.size": 10, "axes.edgecolor": QUIET, "svg.fonttype": "path"}
    )
    _figure_one(seeds)
    _figure_two(seeds)
    _figure_three(seeds)


def _canvas(width: float, columns: int = 1) -> tuple[Any, Any]:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, columns, figsize=(width, 3.6), constrained_layout=True, sharey=columns > 1)
    for each in np.atleast_1d(axes):
        each.spines[["top", "right"]].set_visible(False)
        each.grid(axis="y", color="#e4e8eb", linewidth=0.8)
        each.set_axisbelow(True)
    return figure, axes


def _save(figure: Any, name: str) -> None:
    figure.savefig(DOCS / f"decentralised-{name}.svg", metadata={"Date": None, "Creator": None})


def _non_private(axes: Axes) -> None:
    risk = trials.outcome(trials.NetworkTrial("admm", 1.0, 0))["last"][-1]
    axes.axhline(risk, color=INK, linewidth=1, linestyle=":")
    axes.annotate(
        "without noise, 100 rounds",
        (0.99, risk),
        xycoords=("axes fraction", "data"),
        ha="right",
        va="top",
        xytext=(0, -3),
        textcoords="offset points",
        color=INK,
        fontsize=9,
    )


def _figure_one(seeds: int) -> None:
    found = trials.figure_one(seeds)
    figure, axes = _canvas(6.2)
    epsilon, _, risk, error = map(np.array, zip(*found, strict=True))
    axes.errorbar(epsilon, risk, 2 * error, color=COLOURS["ipadmm"], marker="o", capsize=3)
    _non_private(axes)
    axes.set_xscale("log")
    axes.set_xticks(epsilon, [f"{each:g}" for each in epsilon])
    axes.minorticks_off()
    axes.set_xlabel("ε of each node (δ = 1e-5)")
    axes.set_ylabel("risk of nodes' own models")
    axes.set_title("More ε, less risk: IPADMM, 10 local steps", loc="left", fontsize=11, color=INK)
    _save(figure, "epsilon")


def _figure_two(seeds: int) -> None:
    figure, (left, right) = _canvas(8.4, 2)
    steps, _, tuned, small = zip(*trials.figure_two(seeds), strict=True)
    places = np.arange(len(steps))
    for values, colour, label in ((small, COLOURS["pvp"], "D = 3, too small"), (tuned, COLOURS["ipadmm"], "D tuned")):
        left.errorbar(places, [v[0] for v in values], [2 * v[1] for v in values], color=colour, marker="o", capsize=3)
        left.annotate(
            label, (places[-1], values[-1][0]), xytext=(0, 8), textcoords="offset points", ha="right", color=colour
        )
    few = trials.scarce_rounds(seeds)
    right.errorbar(places, [v[2] for v in few], [2 * v[3] for v in few], color=COLOURS["ipadmm"], marker="o", capsize=3)
    right.annotate(
        "D tuned",
        (places[-1], few[-1][2]),
        xytext=(0, 8),
        textcoords="offset points",
        ha="right",
        color=COLOURS["ipadmm"],
    )
    for axes, title in ((left, "100 nodes, 100 rounds"), (right, "4 nodes, 10 rounds")):
        axes.set_xticks(places, [str(step) for step in steps])
        axes.set_xlabel("local steps between two broadcasts")
        axes.set_title(title, loc="left", fontsize=11, color=INK)
    left.set_ylabel("risk of nodes' own models, ε = 1")
    _save(figure, "local-steps")


def _figure_three(seeds: int) -> None:
    figure, panels = _canvas(9.6, 2)
    for axes, epsilon in zip(panels, trials.COMPARED, strict=True):
        for name, found in trials.rivals(epsilon, seeds).items():
            if name in COLOURS:
                _curves(axes, name, found)
        _non_private(axes)
        axes.set_ylim(0.37, 0.72)
        axes.set_xlabel("rounds")
        axes.set_title(f"ε = {epsilon:g}", loc="left", fontsize=11, color=INK)
    panels[0].set_ylabel("risk of nodes' own models")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=9)
    _save(figure, "algorithms")


def _curves(axes: Axes, name: str, found: list[dict[str, Any]]) -> None:
    """The average as a line, the last model dashed."""
    for kind, style in (("average", "-"), ("last", "--")):
        rounds, mean, error = trials.curve(found, kind)
        label = f"{NAMES[name]}, {kind}"
        axes.plot(rounds, mean, style, color=COLOURS[name], linewidth=1.6 if kind == "average" else 1.0, label=label)
        axes.fill_between(rounds, mean - 2 * error, mean + 2 * error, color=COLOURS[name], alpha=0.12, linewidth=0)
