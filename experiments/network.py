"""What many owners lose against one: Adult, divided among silos, by federated sums, by local noise and alone.

    python -m experiments.network --seeds 10 --out results/network.json
    python -m experiments.network --write docs/network.md results/network.json

Each fit is a whole federation in one process: keys, sessions, masks, shares of noise. Test rows are used to measure and
for nothing else. Figures are means over seeds of the division; the noise is secret, so that they differ from
run to run. What was measured before is not measured again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpadmm import DPLogisticRegression
from dpadmm.network import Federation
from dpadmm.network.coordinator import Exchanged
from dpadmm.privacy.wording import rounded_up
from experiments.common import train_test

Rows = tuple[Any, np.ndarray, Any, np.ndarray]

DELTA = 1e-5
EPSILONS = (0.5, 1.0)
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


@dataclass(frozen=True)
class Setting:
    """One line of the table."""

    words: str
    silos: int
    colluding: int
    steps: int | None = None
    fewer_seeds: int | None = None
    pieces: int = 1


SETTINGS = (
    Setting("all rows in one place", 1, 0),
    Setting("4 silos, c = 1", 4, 1),
    Setting("4 silos, c = 1, rows sorted by label", 4, -1),
    Setting("10 silos, c = 3", 10, 3),
    Setting("100 silos, c = 33", 100, 33, fewer_seeds=3),
    Setting("4 silos, c = 3: local noise", 4, 3),
    Setting("100 silos, c = 99: local noise", 100, 99, fewer_seeds=6),
    Setting("all rows in one place, six questions", 1, 0, 6),
    Setting("4 silos, c = 1, six questions", 4, 1, 6),
    Setting("one of 4 silos alone", 1, 4),
    Setting("one of 10 silos alone", 1, 10),
)

OTHERS = {
    "mnist": (
        Setting("all rows in one place", 1, 0, fewer_seeds=1),
        Setting("10 silos, c = 1, two digits each", 10, -1, fewer_seeds=1, pieces=2),
    )
}


@dataclass(frozen=True)
class Figure:
    """What was measured of one setting at one ε."""

    data: str
    words: str
    epsilon: float
    accuracy: float
    deviation: float
    seeds: int
    second_epsilon: float | None
    questions: int
    kilobytes: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="?", type=Path, help="figures to write into a page")
    parser.add_argument("--write", type=Path, help="the page")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("results/network.json"))
    parser.add_argument("--data", default="adult", help="adult has all settings, other data sets the first two")
    parser.add_argument("--clock", action="store_true", help="print the CPU seconds of one fit at 4 and at 100 silos")
    parser.add_argument("--only", default="", help="settings whose words contain this")
    chosen = parser.parse_args()
    if chosen.write is not None:
        write(chosen.write, json.loads(chosen.results.read_text()))
        return
    if chosen.clock:
        clock()
        return
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    found = json.loads(chosen.out.read_text()) if chosen.out.exists() else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = {(each["data"], each["words"], each["epsilon"]) for each in found}
        for figure in measured(chosen.data, chosen.seeds, chosen.only, known):
            print(json.dumps(asdict(figure)), flush=True)
            found.append(asdict(figure))
            chosen.out.write_text(json.dumps(found, indent=1))


def measured(name: str, seeds: int, only: str, known: set[tuple[str, str, float]]) -> Iterator[Figure]:
    data = train_test(name)
    for setting in SETTINGS if name == "adult" else OTHERS.get(name, SETTINGS[:2]):
        for epsilon in EPSILONS:
            if only in setting.words and (name, setting.words, epsilon) not in known:
                yield measure(name, setting, epsilon, min(seeds, setting.fewer_seeds or seeds), data)


def measure(name: str, setting: Setting, epsilon: float, seeds: int, data: Rows) -> Figure:
    scores, traffic = [], Traffic()
    second = None
    for seed in range(seeds):
        model, second = fitted(setting, epsilon, seed, data, traffic)
        scores.append(model.score(*data[2:]))
    return Figure(
        name,
        setting.words,
        epsilon,
        round(float(np.mean(scores)), 4),
        round(float(np.std(scores)), 4),
        seeds,
        second,
        model.plan_.steps,
        round(traffic.bytes / seeds / 1000, 1),
    )


def clock() -> None:
    """CPU seconds, which other work on the machine does not change much."""
    data = train_test("adult")
    for setting in SETTINGS:
        if setting.words in ("all rows in one place", "4 silos, c = 1", "100 silos, c = 33"):
            began = time.process_time()
            fitted(setting, 1.0, 0, data, Traffic())
            print(f"{setting.words}: {time.process_time() - began:.1f} s")


class Traffic:
    """Adds up what the busiest silo sends."""

    def __init__(self) -> None:
        self.bytes = 0

    def __call__(self, exchanged: Exchanged) -> None:
        self.bytes += max(exchanged.received.values(), default=0)


def fitted(setting: Setting, epsilon: float, seed: int, data: Rows, hear: Callable[[Exchanged], None]) -> Any:
    X, y, _, _ = data
    classes = np.unique(y).tolist()
    model = DPLogisticRegression(epsilon, DELTA, classes=classes, row_norm=1.0, steps=setting.steps)
    place = np.random.default_rng(seed).permutation(len(y))
    if setting.silos == 1:
        part = place[: len(place) // max(1, setting.colluding)]
        return model.set_params(arithmetic="exact").fit(X[part], y[part]), None
    tables = [(X[part], y[part]) for part in divided(setting, place, y)]
    federation = Federation.embedded(tables, abs(setting.colluding), observe=hear)
    model.fit(federation)
    assert federation.proposal is not None
    return model, float(rounded_up(federation.proposal.epsilon_if_all_collude, 3))


def divided(setting: Setting, place: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Rows of each silo: at random, or sorted by label and dealt in so many pieces that each silo has few labels."""
    if setting.colluding > 0:
        return np.array_split(place, setting.silos)
    pieces = np.array_split(np.argsort(y, kind="stable"), setting.pieces * setting.silos)
    return [np.concatenate(pieces[silo :: setting.silos]) for silo in range(setting.silos)]


def write(page: Path, found: list[dict[str, Any]]) -> None:
    """Replace the figures of a page."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    page.write_text(f"{before}{BEGIN}\n{table(found)}\n{END}{after}", encoding="utf-8")


def table(found: list[dict[str, Any]]) -> str:
    lines = [
        "| δ = 1e-5 | test accuracy at ε = 0.5 | at ε = 1 | second ε | seeds | kB from a silo |",
        "|---|---|---|---|---|---|",
    ]
    for data, words in dict.fromkeys((each["data"], each["words"]) for each in found):
        half, one = (
            next(e for e in found if (e["data"], e["words"], e["epsilon"]) == (data, words, epsilon))
            for epsilon in EPSILONS
        )
        second = "" if one["second_epsilon"] is None else f"{half['second_epsilon']} / {one['second_epsilon']}"
        cells = [f"{data}, {words}", _accuracy(half), _accuracy(one), second, one["seeds"], one["kilobytes"] or ""]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _accuracy(found: dict[str, Any]) -> str:
    deviation = f" ± {found['deviation']:.4f}" if found["seeds"] > 1 else ""
    return f"{found['accuracy']:.4f}{deviation}"


if __name__ == "__main__":
    main()
