"""Render docs/performance.md from results/bench.json: `python -m benchmarks.page --write`."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.__main__ import PARTS, RESULTS
from benchmarks.endtoend import TABLES
from benchmarks.report import Row, Sense, bound, number, verdict

PAGE = Path("docs/performance.md")
HEADINGS = {
    "gradient": (
        "One gradient over all rows",
        "The clipped gradient sum that an oracle asks its rows for, at a point where some rows are clipped. NumPy is "
        "the faster of the kernel's twin and two plain products, in the precision of the rows, on rows mapped "
        "beforehand; the share is the time to read the table as given once, over the time of the kernel. Each "
        "number is the median of seven fresh processes, in which the cases took turns: where arrays come to lie in "
        "memory is luck that lasts as long as a process.",
    ),
    "iteration": (
        "One mini-batch iteration",
        "DP-SADMM with an L1 penalty through solver, plan, oracle, secret batch and cryptographic noise, on compiled "
        "kernels and on their NumPy twins.",
    ),
    "split": (
        "What one iteration consists of",
        "The same iteration on compiled kernels, its parts each measured by itself; the rest is what they leave of the "
        "whole.",
    ),
    "smoothing": (
        "Smoothing and noise",
        "The kernel of ring smoothing, a recursion, against two Fourier transforms whose divisor is prepared; what "
        "smoothing adds to an iteration, in the median of seven fresh processes; and what drawing the noise adds, "
        "against noise that is at hand already.",
    ),
    "network": (
        "Training of networks",
        "A whole `dpadmm.nn.fit` of 60 steps, set-up included and its plan in the cache, beside the loop of Opacus' "
        "tutorials with the same expected batches; and what ring smoothing adds.",
    ),
    "fit": (
        "Whole fits",
        "ε = 1, δ = 10⁻⁶. `auto` is the default under replace-one. `dp-sgd` has the batches (Poisson, 512 "
        'rows, ten epochs), clip, step and relation (add-remove) that Opacus and jax-privacy are given; "own step and '
        "clip\" has the batches only. The peers' time "
        "includes noise calibration but no imports, ours is given with the plan cached and not. "
        "diffprivlib is purely ε-private. scikit-learn's models are not private. They, the peers and all objectives "
        "(mean training loss) see the same mapped rows; times and objectives are medians over repeated fits, the "
        "first three not counted, of peers a single fit.",
    ),
    "memory": (
        "Memory",
        "Input and what a fresh process adds to it during `fit`, over the input; the note gives both. What is added "
        "is the peak of the resident size less the size before `fit`, once a fit of 2,000 rows has loaded all code "
        "and what was freed is given back to the system. Every solver keeps a factor and a norm of each row (`auto` "
        "the norm in its coordinates), eight bytes each, and its target: one byte for a label among up to 127 classes, "
        "else eight for a number: 17 bytes a row of a classifier at its peak. `auto` keeps one more norm where rows "
        "may differ in length (`row_norm` above 1, or no intercept); for samplers `fixed` and `poisson` a dense table "
        "of two classes or of numbers has a copy of all three, 24 bytes. Beyond them `auto` takes the "
        "same whatever the number of rows: up to 3,000 features its second moments, of 8 d² bytes each, some of them "
        "at a time; for more features blocks of rows and vectors of d numbers. So a table of few rows for its "
        "features, or of rows shorter than some sixty bytes, takes more than 1.3 times its size, and a plan of "
        "mini-batches that is not cached takes memory to calibrate, however small the table. Rows that are neither "
        "C-ordered float32 or float64 nor CSR rows with sorted 32-bit indices are copied once: DataFrames, tables "
        "stored column by column, integers (as float64). For the "
        "table on disk the number is the whole resident size, the interpreter, the labels and pages of the file "
        "included; its note has the wall time of the fit.",
    ),
    "growth": (
        "Growth of cost",
        "Whole fits, the faster of two; p in time = c · sizeᵖ, fitted to the larger half of the sizes. full-admm is"
        " linear in everything, for a given number of steps. `auto` chooses 8 to 32 rounds (a lasso up to 64) by "
        "rows, features and classes, and is linear in rows and classes; up to 3,000 features it sums a d × d second"
        " moment and turns every row into its coordinates, n · d² each beside rounds of n · d, so that p in the "
        "features lies between one and two (and has no target), and where rows are few the d³ of eigenvectors "
        "shows, too. Beyond 3,000 features it does without, at a cost of non-zeros and features.",
    ),
    "cold": (
        "First fit and import",
        "Fits on the wall, medians of three fresh processes, with the caches of machine code and of plans as stated. "
        "A table this small is trained by NumPy; a larger one, or many fits in one process, are worth compiling for, "
        "once on a machine. The import is processor time.",
    ),
}


def page(results: dict[str, Any]) -> str:
    rows = [Row(**row) for row in results["rows"]]
    parts = results.get("parts", {})
    lines = ["# Performance", "", *introduction(results["machine"]), *summary(rows)]
    for part in PARTS:
        chosen = [row for row in rows if row.part == part]
        if chosen:
            title, text = HEADINGS[part]
            lines += ["", f"## {title}", "", text + measured_when(parts.get(part)), "", *table(chosen)]
    return "\n".join(lines) + "\n"


def introduction(machine: dict[str, Any]) -> list[str]:
    return [
        "Generated by `python -m benchmarks.page --write` from the results of `make bench`; do not edit. A ratio is of",
        "medians of processor time, contestants taking turns in one run, on one thread unless a row says otherwise; of",
        "gradients and of smoothing it is the median of what fresh processes find. Whole fits run one after the other.",
        "Rows about a second thread are wall time, and mean little on a busy machine. The parts below may come from",
        "different runs (`--only`). Targets are the project's own.",
        "",
        f"Machine: {machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB; one thread reads "
        f"{machine['bandwidth_gb_s']:.1f} GB/s. {machine['system']}, Python {machine['python']}, NumPy "
        f"{machine['numpy']}, dpadmm {machine['dpadmm']}.",
    ]


def measured_when(when: dict[str, Any] | None) -> str:
    """A load far above one says that other programs ran, too."""
    return "" if when is None else f" Measured on {when['date']}, at a load of {when['load']} when it began."


def summary(rows: list[Row]) -> list[str]:
    """What misses its target, farthest first, what was not measured, and why the rest of the way is hard."""
    judged = [row for row in rows if row.met is not None]
    unknown = [row for row in rows if row.target is not None and row.value is None]
    missed = sorted((row for row in judged if not row.met), key=distance, reverse=True)
    lines = ["", "## Far from the limit", ""]
    met = f"{len(judged) - len(missed)} of {len(judged)} targets are met."
    lines += [f"{met} Missed, farthest first:", ""] if missed else [met]
    lines += [f"- {row.case}: {row.measure} {number(row.value, row.unit)}, wanted {bound(row)}." for row in missed]
    if unknown:
        lines += ["", "Targets that were not measured:", ""]
        lines += [f"- {row.case}: {row.measure}, wanted {bound(row)}: {row.note}." for row in unknown]
    return [*lines, *without_target(rows), "", *WHY]


def without_target(rows: list[Row]) -> list[str]:
    """Rows that have no target and are far from where a user would want them, with the reason."""
    lines = ["", "Without a target, and far from what one would wish:", ""]
    for part, measure, wished, sense, why in WISHES:
        for row in rows:
            judged = replace(row, target=wished, sense=sense)
            if (row.part, row.measure) == (part, measure) and row.target is None and judged.met is False:
                lines.append(f"- {row.case}: {row.measure} {number(row.value, row.unit).strip()}, {why}.")
    return [*lines, *overhead(rows)]


def overhead(rows: list[Row]) -> list[str]:
    """The share of an iteration that no part of it accounts for."""
    times = {row.measure: row.value for row in rows if row.part == "split" and row.value is not None}
    rest, whole = (next((times[name] for name in times if name.startswith(key)), None) for key in ("adm", "whole"))
    if rest is None or whole is None:
        return []
    return [f"- One mini-batch iteration: {100 * rest / whole:.0f} % is admission, lock and loop, which are Python."]


WISHES: tuple[tuple[str, str, float, Sense, str], ...] = (
    ("gradient", "share of read bandwidth", 60.0, "at least", "bound by arithmetic, not by reading"),
    (
        "fit",
        "time over LogisticRegression (not private)",
        3.0,
        "at most",
        "which stops after few passes; ours sums a second moment and measures every row in its coordinates",
    ),
    (
        "memory",
        "peak over input",
        1.3,
        "at most",
        "since a row takes 17 bytes whatever its length, weights are held some twenty times, second moments, blocks "
        "and plans keep their size, and what is not stored as it is read is copied",
    ),
    ("growth", "exponent", 1.15, "at most", "because of the d × d second moment"),
)

WHY = (
    "How to read this:",
    "",
    "- Contestants of one part always ran together; parts may have been measured at different times (`--only`).",
    "- One run is shown. Ratios move by some hundredths to a tenth from run to run, so that chance decides about a",
    "  target that is met or missed by less.",
    "- Exponents up to 1.15 count as linear: times of whole fits are no better known.",
    "- A row that NumPy, SciPy or a peer wins is at no limit of the machine: the same machine did it faster.",
    "- Sums over float32 rows are formed in float64, because the rounding of a float32 sum could exceed the",
    "  sensitivity; the plain products they are compared with do without.",
    "- Each number of a float32 row is widened before it is added: arithmetic that reading alone does without.",
    "- Two gradients at once, each on one thread, show what the second processor is worth while nothing is shared; on",
    "  a machine whose processors others use, too, that is less than two. Of short gradients most of what is lost is",
    "  waking the other thread and being woken by it, which blocks of one sum are shared out to avoid.",
    "- A sum over w8a takes less than a millisecond, in four blocks, and waking a thread a tenth of it: this row moves",
    "  most from run to run.",
    "- Sums of many classes over many columns fit no cache near the processor. In float64 they are twice as wide as",
    "  SciPy's in float32, and two threads share the way to memory.",
    "- Softmax over K classes does K times the arithmetic on each byte, so bandwidth is no measure of it.",
    "- `dp-sgd` is the algorithm of Opacus where it is given its step and clip and releases the last iterate; its own",
    "  step and clip make another one, with an objective of its own. Two runs of one algorithm differ by chance: 0.002",
    "  is the range of twelve fits on adult.",
)


def distance(row: Row) -> float:
    """How many times too small or too large."""
    assert row.value is not None
    assert row.target is not None
    if row.target == 0 or row.value <= 0:
        return 1.0
    return row.target / row.value if row.sense == "at least" else row.value / row.target


def table(rows: list[Row]) -> list[str]:
    if rows[0].part == "fit":
        return [*absent(rows), *absolute(rows), "", *ratios([row for row in rows if row.measure != "time"])]
    if rows[0].part == "growth":
        return growth(rows)
    return ratios(rows)


def ratios(rows: list[Row]) -> list[str]:
    lines = ["| case | measure | value | target | | note |", "|---|---|---|---|---|---|"]
    for row in rows:
        cells = (row.case, row.measure, number(row.value, row.unit), bound(row), verdict(row), row.note)
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def absent(rows: list[Row]) -> list[str]:
    """A table that was not run is named, not passed over."""
    seen = {row.case.partition(":")[0] for row in rows}
    unseen = [name for name in TABLES if name not in seen]
    return [f"Not in these results: {', '.join(unseen)}.", ""] if unseen else []


def absolute(rows: list[Row]) -> list[str]:
    lines = ["| fit | time | plan not cached | objective | note |", "|---|---|---|---|---|"]
    for row in rows:
        if row.measure == "time":
            objective = row.raw["objective"]
            shown = "–" if objective is None else f"{objective:.4f}"
            uncached = number(row.raw["uncached"], row.unit)
            lines.append(f"| {row.case} | {number(row.value, row.unit)} | {uncached} | {shown} | {row.note} |")
    return lines


def growth(rows: list[Row]) -> list[str]:
    lines = ["| sizes | p | target | | seconds |", "|---|---|---|---|---|"]
    for row in rows:
        times = ", ".join(f"{spent:.3g}" for spent in row.raw.values())
        lines.append(f"| {row.case} | {row.value:.2f} | {bound(row)} | {verdict(row)} | {times} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE} instead of printing it")
    text = page(json.loads(RESULTS.read_text()))
    if parser.parse_args().write:
        PAGE.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
