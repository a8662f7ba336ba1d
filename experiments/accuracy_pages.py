"""docs/accuracy.md, for readers, and docs/accuracy-details.md, with every method, from what is cached.

`python -m experiments.accuracy_pages` prints the first; `--write` writes both. Results: results/accuracy.json, of
`python -m experiments.accuracy`; results/whitened.json, of `python -m experiments.whitened`; results/peers.json, of
`python -m experiments.peers`. With `--keep` cells of which nothing is cached stay as they are on the second page.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments import variance_reduction, whitened
from experiments.accuracy import (
    DATASETS,
    EPSILONS,
    IMAGES,
    ORACLE,
    RESULTS,
    SHUFFLED,
    SIGNAL_FREE,
    SOLVERS,
    Score,
    scores,
    stored_as,
)
from experiments.accuracy_text import DETAILS, INTRODUCTION, SHUFFLED_TEXT, SHUFFLED_TITLE
from experiments.common import commonest, mean_and_error, train_test

PEERS = Path("results/peers.json")
PAGE, DETAILS_PAGE = Path("docs/accuracy.md"), Path("docs/accuracy-details.md")
NOT_RUN, NO_PRIVACY = "–", "Without privacy"
PLAIN, WHITENED = whitened.PLAIN, whitened.WHITENED
ORACLES = (WHITENED, PLAIN)
EARLIER_ORACLE = "oracle dp-gd"
FEWEST_SEEDS = 3
"""Cells of `experiments.variance_reduction` with fewer are not shown."""
CLEAR = 2.0
"""A mean difference of so many standard errors counts as a win or a loss."""
ROUNDED = 3e-5
"""Standard error of a cell that is printed as 0.0000."""

Cells = dict[str, str]
Page = dict[tuple[str, str], Cells]


def show(found: list[Score]) -> str:
    if not found:
        return NOT_RUN
    mean, error = mean_and_error([accuracy for accuracy, _ in found])
    text = f"{mean:.4f} ± {error:.4f}" if len(found) > 1 else f"{mean:.4f}"
    aucs = [auc for _, auc in found if auc is not None]
    return text + (f" ({np.mean(aucs):.3f})" if aucs else "")


def mean_in(cell: str) -> float:
    return 0.0 if cell == NOT_RUN else float(cell.split()[0])


def error_in(cell: str) -> float:
    """Standard error; of a single seed, unknown."""
    return max(float(cell.split()[2]), ROUNDED) if " ± " in cell else math.inf


def on_page(text: str) -> Page:
    """The tables of an earlier page: by section and first cell of a row, the cells by column."""
    found: Page = {}
    section, header = "", list[str]()
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("## "):
            section, header = line[3:], []
        elif line.startswith(f"{NO_PRIVACY}: "):
            found[section, NO_PRIVACY] = {NO_PRIVACY: line.removeprefix(f"{NO_PRIVACY}: ").removesuffix(".")}
        elif line.startswith("| ") and not header:
            header = cells
        elif line.startswith("| "):
            found[section, cells[0]] = dict(zip(header, cells, strict=True))
    return found


def filled(cells: Cells, before: Cells) -> Cells:
    """Cells that were not run as they were before."""
    return {column: before.get(column, cell) if cell == NOT_RUN else cell for column, cell in cells.items()}


@dataclass(frozen=True)
class Cached:
    """All results, and the cells of an earlier page."""

    ours: dict[str, Any]
    oracles: dict[str, Any]
    peers: dict[str, Any]
    kept: Page

    @classmethod
    def read(cls, keep: bool) -> Cached:
        files = (RESULTS, whitened.RESULTS, PEERS)
        ours, oracles, peers = (json.loads(file.read_text()) if file.exists() else {} for file in files)
        stored = variance_reduction.stored()
        for key, measured in stored.items():
            name, epsilon, seed, solver = key.split("|")
            if len(variance_reduction.pairs(stored, name, float(epsilon))) < FEWEST_SEEDS:
                continue
            ours[f"{name}|{stored_as(solver)}|{epsilon}|{seed}"] = measured[:2]
        return cls(ours, oracles, peers, on_page(DETAILS_PAGE.read_text()) if keep else {})

    def cells(self, name: str, epsilon: float) -> Cells:
        methods = ("auto", "auto, blurred", *SOLVERS) if name in IMAGES else ("auto", *SOLVERS)
        cells = {method: show(scores(self.ours, name, method, epsilon)) for method in methods}
        for oracle in ORACLES:
            cells[oracle] = show(_starting(self.oracles, f"{name}|{epsilon}|{oracle}|"))
        cells[EARLIER_ORACLE] = show(max((scores(self.ours, name, tried, epsilon) for tried in ORACLE), key=_mean))
        cells["auto, add-remove"] = show(scores(self.ours, name, "auto, add-remove", epsilon))
        for peer in ("opacus", "diffprivlib"):
            outcomes = _starting(self.peers, f"{name}|{peer}|{epsilon}|")
            cells[peer] = show([(outcome["accuracy"], outcome["auc"]) for outcome in outcomes])
        return filled(cells, self.kept.get((name, str(epsilon)), {}))

    def without_privacy(self, name: str) -> str:
        if f"{name}|none" not in self.ours:
            return self.kept.get((name, NO_PRIVACY), {}).get(NO_PRIVACY, NOT_RUN)
        return show([self.ours[f"{name}|none"]])


def _mean(found: list[Score]) -> float:
    return float(np.mean([accuracy for accuracy, _ in found])) if found else 0.0


def _starting(results: dict[str, Any], key: str) -> list[Any]:
    return [value[:2] if isinstance(value, list) else value for at, value in results.items() if at.startswith(key)]


def runner_up(cells: Cells) -> str:
    """The solver, beside `auto`, with the highest mean."""
    return max(SOLVERS, key=lambda solver: mean_in(cells[solver]))


def gains(shown: Page, rival: Callable[[Cells], str]) -> list[tuple[tuple[str, str], float, float]]:
    """For each cell where both ran: the lead of `auto`, and the lead in standard errors."""
    found = []
    for place, cells in shown.items():
        own, other = cells["auto"], rival(cells)
        if NOT_RUN not in (own, other):
            lead = mean_in(own) - mean_in(other)
            found.append((place, lead, lead / math.hypot(error_in(own), error_in(other))))
    return found


def standing(shown: Page, title: str, rival: Callable[[Cells], str]) -> str:
    """A row: mean gain, wins, ties and losses."""
    found = gains(shown, rival)
    wins, losses = sum(z > CLEAR for *_, z in found), sum(z < -CLEAR for *_, z in found)
    mean = float(np.mean([lead for _, lead, _ in found])) if found else math.nan
    return f"| {title} | {mean:+.4f} | {len(found)} | {wins} | {len(found) - wins - losses} | {losses} |"


def page(cached: Cached, shown: Page) -> str:
    lines = [INTRODUCTION.rstrip(), "", "| compared with | mean gain of `auto` | cells | wins | ties | losses |"]
    lines += ["|---|---|---|---|---|---|"]
    lines += [standing(shown, "the best other solver", lambda cells: cells[runner_up(cells)])]
    lines += [standing(shown, oracle, lambda cells, oracle=oracle: cells[oracle]) for oracle in ORACLES]
    for name in DATASETS:
        lines += ["", f"## {name}", "", f"{NO_PRIVACY}: {cached.without_privacy(name)}.", ""]
        lines += [f"| ε | auto | best other solver | {' | '.join(ORACLES)} |", "|---" * 5 + "|"]
        for epsilon in EPSILONS:
            cells = shown[name, str(epsilon)]
            best = runner_up(cells)
            entries = (cells["auto"], f"{cells[best]} {best}", *(cells[oracle] for oracle in ORACLES))
            lines.append(f"| {epsilon} | " + " | ".join(entries) + " |")
    return "\n".join([*lines, *behind(shown)]) + "\n"


def behind(shown: Page) -> list[str]:
    """The cells where `auto` loses to an oracle or to another solver by more than two standard errors."""
    lines = ["", "## Where `auto` is behind", "", "By more than two standard errors.", ""]
    lines += ["| data | ε | compared with | gain of `auto` |", "|---|---|---|---|"]
    rivals = {"the best other solver": lambda cells: cells[runner_up(cells)]}
    rivals |= {oracle: lambda cells, oracle=oracle: cells[oracle] for oracle in ORACLES}
    for title, rival in rivals.items():
        for (name, epsilon), lead, z in gains(shown, rival):
            if z < -CLEAR:
                lines.append(f"| {name} | {epsilon} | {title} | {lead:+.4f} |")
    return lines


def details(cached: Cached, shown: Page) -> str:
    lines = [DETAILS.rstrip()]
    for name in DATASETS:
        first = shown[name, str(EPSILONS[0])]
        lines += ["", f"## {name}", "", f"{NO_PRIVACY}: {cached.without_privacy(name)}.", ""]
        lines += ["| ε | " + " | ".join(first) + " |", "|---" * (1 + len(first)) + "|"]
        lines += [f"| {epsilon} | " + " | ".join(shown[name, str(epsilon)].values()) + " |" for epsilon in EPSILONS]
    return "\n".join([*lines, *signal_free(cached)]) + "\n"


def signal_free(cached: Cached) -> list[str]:
    header = ["", f"## {SHUFFLED_TITLE}", "", SHUFFLED_TEXT, ""]
    header += ["| data | commonest class | by a coin | " + " | ".join(f"ε = {epsilon}" for epsilon in EPSILONS) + " |"]
    lines = [*header, "|---" * (3 + len(EPSILONS)) + "|"]
    for name in SHUFFLED:
        _, y, _, y_test = train_test(name)
        labels = np.concatenate([y, y_test])
        share = float(np.mean(labels == commonest(labels)))
        cells = {
            f"ε = {epsilon}": show([(lead, None) for lead, _ in scores(cached.ours, name, SIGNAL_FREE, epsilon)])
            for epsilon in EPSILONS
        }
        cells = filled(cells, cached.kept.get((SHUFFLED_TITLE, name), {}))
        lines.append(f"| {name} | {share:.4f} | {0.5 - share:.4f} | " + " | ".join(cells.values()) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write both pages")
    parser.add_argument("--keep", action="store_true", help="leave cells of which nothing is cached as they are there")
    options = parser.parse_args()
    cached = Cached.read(options.keep)
    shown = {(name, str(epsilon)): cached.cells(name, epsilon) for name in DATASETS for epsilon in EPSILONS}
    text = page(cached, shown)
    print(text)
    if options.write:
        DETAILS_PAGE.write_text(details(cached, shown))
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
