"""The picture of spending: how much of its limit every data set has used, over time."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import cycle
from typing import TYPE_CHECKING, Any

from dpadmm.privacy.wording import rounded_up
from dpadmm.report.picture import INK, QUIET

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0b6e8a", "#c4572a", "#5b7f2b", "#7a4f9a", "#b38600", "#4a5a68")

LEAST_MARGIN = timedelta(seconds=30)

KEY = "Spent, if all fits were fixed in advance; the limit holds in any case:"


@dataclass(frozen=True)
class Spending:
    """One data set: its limit in ε, and the ε spent after each fit."""

    dataset: str
    limit: float
    times: Sequence[datetime]
    epsilons: Sequence[float]

    @property
    def label(self) -> str:
        spent = self.epsilons[-1] if self.epsilons else 0.0
        return f"{self.dataset}: ε {rounded_up(spent)} of {rounded_up(self.limit)}".replace("$", r"\$")


def spending_picture(accounts: Sequence[Spending], until: datetime) -> bytes:
    """Draw the spending of all data sets as a PNG, up to the time `until`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties

    figure = Figure(figsize=(7.4, 3.8), facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for account, colour in zip(accounts, cycle(COLOURS), strict=False):
        _steps(axes, account, until, colour)
    _frame(axes)
    left, right = time_span([time for account in accounts for time in account.times], until)
    edges: Any = (left, right)
    axes.set_xlim(edges)
    if accounts:
        key = axes.legend(frameon=False, fontsize=8.5, labelcolor=INK, loc="upper left", bbox_to_anchor=(0.0, -0.12))
        key.set_title(KEY, prop=FontProperties(size=8.5))
        key.set_alignment("left")
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=170, bbox_inches="tight", pad_inches=0.15, metadata={"Software": None})
    return stream.getvalue()


def time_span(charged: Sequence[datetime], until: datetime) -> tuple[datetime, datetime]:
    """From a little before the first charge to a little after the last, however short a time lies between them.

    Examples
    --------
    >>> noon = datetime(2026, 1, 1, 12)
    >>> [str(edge.time()) for edge in time_span([noon], noon + timedelta(minutes=50))]
    ['11:56:00', '12:54:00']
    """
    if not charged:
        return until - timedelta(hours=1), until
    first, last = min(charged), max([until, *charged])
    margin = max(0.08 * (last - first), LEAST_MARGIN)
    return first - margin, last + margin


def _steps(axes: Axes, account: Spending, until: datetime, colour: str) -> None:
    """A step up where a fit was charged; the last level reaches the present."""
    times = [*account.times, max([until, *account.times])]
    shares = [100.0 * epsilon / account.limit for epsilon in account.epsilons]
    levels = [0.0, *shares, shares[-1] if shares else 0.0]
    dates: Any = [times[0], *times]
    axes.step(dates, levels, where="post", color=colour, linewidth=2.0, label=account.label)
    # Dots: of fits a moment ago the step alone would be a line without width.
    charged: Any = account.times
    axes.plot(charged, shares, "o", color=colour, markersize=4.5)


def _frame(axes: Axes) -> None:
    from matplotlib import dates

    axes.axhline(100.0, color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.text(1.0, 102.0, "limit", transform=axes.get_yaxis_transform(), ha="right", color=QUIET, fontsize=8.5)
    axes.set_ylim(0.0, 112.0)
    axes.set_ylabel("spent, % of the limit on ε", color=QUIET, fontsize=9)
    locator: Any = dates.AutoDateLocator(maxticks=8)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    formatter: Any = dates.ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]
    # Bare seconds beside a minute would read as minutes.
    formatter.formats[-1] = formatter.zero_formats[-1] = "%H:%M:%S"
    axes.xaxis.set_major_formatter(formatter)
    axes.xaxis.get_offset_text().set_fontsize(8.5)
    axes.grid(axis="y", color="#e6e9ec", linewidth=0.8)
    axes.tick_params(length=0, labelsize=8.5, colors=INK)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_title("Privacy spent over time (UTC)", loc="left", color=INK, fontsize=11, fontweight="bold", pad=10)
