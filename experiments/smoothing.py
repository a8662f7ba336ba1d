"""Does Laplacian smoothing help once the step is tuned? Softmax regression on MNIST by DP-SGD and DP-LSSGD.

Rows of length 3 beside a bias of 1, batches of a fiftieth of the rows, 60 steps, clip 3, δ = 1e-5, replace-one. The
step of every method at every ε is chosen on the last 10,000 training rows, with one seed, after training on the first
50,000; which of these scores was best is not paid for. The test rows are looked at once, with the chosen steps.

`python -m experiments.smoothing` runs everything that has no result yet, one fit after the other, and may be killed and
started again. `--show` prints the tables and draws `docs/smoothing.svg` from the results that are there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common import markdown_table, mean_and_error, train_test

RESULTS = Path("results/smoothing.jsonl")
PICTURE = Path("docs/smoothing.svg")
METHODS = ("none, last", "none", "ring 1", "ring 3", "grid 1")
"""All but the first release an average of the weights. Rings join the pixels of an output, grids those of an image."""
STEPS = {0.1: (0.5, 1.0, 2.0, 4.0), 0.3: (1.0, 2.0, 4.0, 8.0, 16.0), 1.0: (2.0, 4.0, 8.0, 16.0)}
"""Tried at each ε."""
PAPER = {0.30: 85.11, 0.25: 83.65, 0.20: 82.22, 0.15: 80.81, 0.10: 77.13}
"""Wang et al. (2020), Table 2: the best of their strengths, ε: accuracy."""
PLAIN = "none, last"
BESIDE_PAPER = (PLAIN, "grid 1")
SEEDS = (1, 2, 3, 4, 5, 6)
"""Of runs on 60,000 rows; those beside the paper take the first three."""
TRAINING_ROWS = 50_000
LENGTH = 3.0
"""Of every row: long enough for the bias to take a tenth of a gradient's square, not half."""


@dataclass(frozen=True)
class Run:
    """One fit: on so many of the first training rows, scored on the held-out training rows or on the test rows."""

    rows: int
    epsilon: float
    method: str
    step: float
    seed: int
    scored: str


def tuning(epsilon: float) -> Iterator[Run]:
    for method in METHODS:
        yield from (Run(TRAINING_ROWS, epsilon, method, step, 0, "held out") for step in STEPS[epsilon])


def testing(found: dict[Run, float], *epsilons: float) -> Iterator[Run]:
    """Every method on 60,000 rows."""
    for seed in SEEDS:
        for epsilon in epsilons:
            for method in METHODS:
                yield Run(60_000, epsilon, method, chosen(found, method, epsilon), seed, "test")


def beside_paper(found: dict[Run, float]) -> Iterator[Run]:
    """On 50,000 rows at the ε of the paper, without smoothing and with it."""
    for seed in SEEDS[:3]:
        for epsilon in PAPER:
            for method in BESIDE_PAPER:
                yield Run(TRAINING_ROWS, epsilon, method, chosen(found, method, epsilon), seed, "test")


def chosen(found: dict[Run, float], method: str, epsilon: float) -> float:
    """The step that was best on the held-out rows, at the nearest ε that was tuned."""
    nearest = min(STEPS, key=lambda tuned: abs(np.log(tuned / epsilon)))
    scores = {run.step: found[run] for run in tuning(nearest) if run.method == method}
    return max(scores, key=lambda step: scores[step])


def accuracy(run: Run) -> float:
    """Percent, of the rows that the run is scored on."""
    import torch

    from dpadmm.nn import Grid, Ring, fit

    kind, _, last = run.method.partition(", ")
    name, _, strength = kind.partition(" ")
    smoothing: Any = {
        "none": lambda: None,
        "ring": lambda: Ring(float(strength), over="row"),
        "grid": lambda: Grid(float(strength), 28, 28),
    }[name]()
    (inputs, targets), test = images(), images(of_test=True)
    scored = test if run.scored == "test" else (inputs[TRAINING_ROWS:], targets[TRAINING_ROWS:])
    network = torch.nn.Linear(784, 10)
    for weight in network.parameters():
        torch.nn.init.zeros_(weight)
    trained = fit(
        network,
        (inputs[: run.rows], targets[: run.rows]),
        torch.nn.CrossEntropyLoss(reduction="none"),
        epsilon=run.epsilon,
        delta=1e-5,
        clip=LENGTH,
        optimizer=partial(torch.optim.SGD, lr=run.step),
        rate=0.02,
        steps=60,
        smoothing=smoothing,
        average=None if last else "ema",
        random_state=run.seed,
    )
    with torch.no_grad():
        return 100 * float((trained.model(scored[0]).argmax(dim=1) == scored[1]).double().mean())


@cache
def images(of_test: bool = False) -> tuple[Any, Any]:
    import torch

    X, y, X_test, y_test = train_test("mnist")
    pixels, digits = (X_test, y_test) if of_test else (X, y)
    rows = torch.from_numpy(np.asarray(pixels, dtype=np.float32).reshape(len(digits), -1))
    return LENGTH * rows / rows.norm(dim=1, keepdim=True), torch.from_numpy(np.asarray(digits, dtype=np.int64))


def stored() -> dict[Run, float]:
    """What was run before."""
    if not RESULTS.exists():
        return {}
    lines = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    return {Run(**line["run"]): line["accuracy"] for line in lines}


def carry_out(runs: Iterator[Run], found: dict[Run, float]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    for run in runs:
        if run not in found:
            found[run] = accuracy(run)
            with RESULTS.open("a") as stream:
                stream.write(json.dumps({"run": asdict(run), "accuracy": found[run]}) + "\n")
            print(run, f"{found[run]:.2f}", flush=True)


def tables(found: dict[Run, float]) -> str:
    """The results as three tables, one paragraph of Markdown each."""
    header = ["", *(f"ε = {epsilon:g}" for epsilon in STEPS)]
    rows = [[method, *(cell(found, 60_000, epsilon, method) for epsilon in STEPS)] for method in METHODS]
    tested = markdown_table("60,000 rows, test accuracy", header, rows)
    steps = [[method, *(f"{chosen(found, method, epsilon):g}" for epsilon in STEPS)] for method in METHODS]
    paper = [
        [f"{epsilon:g}", f"{best:.2f}", *(cell(found, TRAINING_ROWS, epsilon, method) for method in BESIDE_PAPER)]
        for epsilon, best in PAPER.items()
    ]
    beside = markdown_table(
        "50,000 rows, beside the paper", ["ε", "paper, best of its strengths", *BESIDE_PAPER], paper
    )
    gains = [[method, *(gain(found, epsilon, method) for epsilon in STEPS)] for method in METHODS if method != PLAIN]
    gained = markdown_table(f"Points over '{PLAIN}'", header, gains)
    return "\n".join((tested, gained, markdown_table("Steps that were chosen", header, steps), beside))


def cell(found: dict[Run, float], rows: int, epsilon: float, method: str) -> str:
    seeds = SEEDS[:3] if rows == TRAINING_ROWS else SEEDS
    runs = [Run(rows, epsilon, method, chosen(found, method, epsilon), seed, "test") for seed in seeds]
    if not all(run in found for run in runs):
        return "–"
    mean, error = mean_and_error([found[run] for run in runs])
    return f"{mean:.2f} ± {error:.2f}"


def gain(found: dict[Run, float], epsilon: float, method: str) -> str:
    """What a method gains over the last weights without smoothing, seed by seed: they share batches and noise."""
    pairs = [
        [found.get(Run(60_000, epsilon, name, chosen(found, name, epsilon), seed, "test")) for name in (method, PLAIN)]
        for seed in SEEDS
    ]
    differences = [one - other for one, other in pairs if one is not None and other is not None]
    mean, error = mean_and_error(differences)
    return f"{mean:+.2f} ± {error:.2f}"


def draw(found: dict[Run, float]) -> None:
    """Held-out accuracy against the step, one panel for each ε."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(STEPS), figsize=(10, 3.4), layout="constrained")
    for panel, epsilon in zip(panels, STEPS, strict=True):
        for method in METHODS:
            scores = [found[Run(TRAINING_ROWS, epsilon, method, step, 0, "held out")] for step in STEPS[epsilon]]
            dashed = "--" if method.startswith("none") else "-"
            panel.plot(STEPS[epsilon], scores, dashed, marker="o", markersize=3, label=method)
        panel.set(xscale="log", title=f"ε = {epsilon:g}", xlabel="step")
        panel.set_xticks(STEPS[epsilon], [f"{step:g}" for step in STEPS[epsilon]])
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("accuracy on held-out rows (%)")
    panels[-1].legend(fontsize=8)
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="only print and draw what was found")
    options = parser.parse_args()
    found = stored()
    if not options.show:
        for epsilon in (0.1, 0.3):
            carry_out(tuning(epsilon), found)
        carry_out(testing(found, 0.1, 0.3), found)
        carry_out(beside_paper(found), found)
        carry_out(tuning(1.0), found)
        carry_out(testing(found, 1.0), found)
    print(tables(found))
    draw(found)


if __name__ == "__main__":
    main()
