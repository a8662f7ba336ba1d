"""A graph of features learned with a share of the budget, and what it is worth: mushrooms, w8a and a simulated chain.

Run `python -m experiments.private_graph` (cached and resumable: results/private_graph.json), `--quick` for one seed, or
`--write` to render docs/preparation.md as well. Protocol: ε = 1 in all, δ = 1/n², replace-one, noise seeds 0, 1, …;
official test split, or a random half (seed 0). Penalties have strength 1/(4nμ) (weak), as in docs/structure.md, and
4/(nμ) (strong); both are shown, and docs/preparation.md says what was looked at. The exact graph is that of the same
rule without noise: NOT private, the most a graph could do.
Data: `$DPADMM_DATA` or the cache of `dpadmm.datasets`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dpadmm import DPLogisticRegression, PrivateGraph
from dpadmm.files import replacing
from dpadmm.privacy.accountants.gaussian import gaussian_shift
from dpadmm.problem.incidence import signed_incidence
from dpadmm.problem.rowmap import RowMap
from experiments.common import markdown_table, mean_and_error, print_table, train_test
from experiments.structure import chain_table

EPSILON = 1.0
TABLES = ("mushrooms", "w8a", "chain")
SOLVERS = ("dp-vradmm", "auto")
SHARES = (0.1, 0.3)
STRENGTHS = {"weak": 0.25, "strong": 4.0}
EXACT = "exact graph, NOT private"
RESULTS, PAGE = Path("results/private_graph.json"), Path("docs/preparation.md")
BEGIN, END = "<!-- begin: experiments.private_graph -->", "<!-- end: experiments.private_graph -->"
Result = dict[str, Any]


@cache
def table(name: str) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    return chain_table(np.random.default_rng(0)) if name == "chain" else train_test(name)


class Exact:
    """Answers as an oracle would without noise: not private, for comparison."""

    def __init__(self, X: Any) -> None:
        rows = RowMap().apply(X)
        dense = (rows.toarray() if hasattr(rows, "toarray") else rows).astype(float)
        self._moment, self.public_rows = dense.T @ dense / len(dense), len(dense)

    def feature_moment(self) -> np.ndarray:
        return self._moment

    def noise_std(self, kind: str) -> float:
        return 0.0


@cache
def exact_graph(name: str) -> Any:
    return PrivateGraph().ask_graph(Exact(table(name)[0]), intercept=True)  # type: ignore[arg-type]


def choices(kind: str, name: str) -> dict[str, Any]:
    if kind == "no penalty":
        return {}
    if kind == "lasso":
        return {"penalty": "l1"}
    if kind == EXACT:
        return {"penalty": "graph", "graph": signed_incidence(exact_graph(name), table(name)[0].shape[1])}
    return {"penalty": "graph", "graph": PrivateGraph(share=float(kind.split()[-1]))}


KINDS = ("lasso", EXACT, *(f"private graph {share}" for share in SHARES))
METHODS = ("no penalty", *(f"{kind}, {strength}" for kind in KINDS for strength in STRENGTHS))
SHOWN = METHODS[-1]


def trained(name: str, solver: str, method: str, seed: int | None) -> DPLogisticRegression:
    X, y, _, _ = table(name)
    delta = 1 / len(y) ** 2
    kind, _, strength = method.rpartition(", ") if ", " in method else (method, "", "weak")
    model = DPLogisticRegression(
        EPSILON,
        delta,
        alpha=STRENGTHS[strength] / (len(y) * gaussian_shift(EPSILON, delta)),
        solver=solver,
        classes=[-1, 1],
        random_state=seed,
        **choices(kind, name),
    )
    return model.fit(X, y)


def measured(name: str, solver: str, method: str, seed: int) -> Result:
    _, _, X_test, y_test = table(name)
    model = trained(name, solver, method, seed)
    edges = [[i, j, weight] for i, j, weight in getattr(model, "graph_", [])]
    if method.startswith(EXACT):
        edges = [list(edge) for edge in exact_graph(name)]
    return {"accuracy": model.score(X_test, y_test), "edges": edges, "split": list(model.privacy_.budget_split)}


def cached(results: dict[str, Result], key: str, compute: Callable[[], Result]) -> Result:
    if key not in results:
        results[key] = compute()
        RESULTS.parent.mkdir(exist_ok=True)
        with replacing(RESULTS) as stream:
            stream.write(json.dumps(results, sort_keys=True).encode())
    return results[key]


def agreement(edges: list[Any], reference: list[Any]) -> str:
    """Share of the edges that the exact graph has too, with the same sign."""
    known = {(i, j): weight > 0 for i, j, weight in reference}
    hits = [known.get((i, j)) == (weight > 0) for i, j, weight in edges]
    return f"{100 * np.mean(hits):.0f}%" if hits else "–"


def lines_of(name: str, seeds: int, results: dict[str, Result]) -> list[list[str]]:
    lines = []
    for method in METHODS:
        cells = []
        for solver in SOLVERS:
            found = [
                cached(results, f"{name}|{solver}|{method}|{seed}", lambda: measured(name, solver, method, seed))  # noqa: B023
                for seed in range(seeds)
            ]
            cells.append("{:.4f} ± {:.4f}".format(*mean_and_error([one["accuracy"] for one in found])))
            if solver == SOLVERS[0]:
                graphs, split = [one["edges"] for one in found], "; ".join(found[0]["split"]) or "all for training"
        edges = f"{np.mean([len(graph) for graph in graphs]):.0f}" if "graph" in method else "–"
        agreed = [edge for graph in graphs for edge in graph]
        shared = agreement(agreed, exact_graph(name)) if method.startswith("private") else "–"
        lines.append([method, split, edges, shared, *cells])
    return lines


HEADER = ["method", "budget", "edges", "also in the exact graph", *(f"accuracy, {solver}" for solver in SOLVERS)]


def title(name: str) -> str:
    n, d = table(name)[0].shape
    return f"{name} ({n:,} rows, {d} features)"


def statement(name: str) -> str:
    return str(trained(name, "dp-vradmm", SHOWN, None).privacy_)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="render the tables of docs/preparation.md")
    options = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    found = [(title(name), HEADER, lines_of(name, 1 if options.quick else options.seeds, results)) for name in TABLES]
    for one in found:
        print_table(*one)
    statements = {name: statement(name) for name in TABLES[:2]}
    for name, text in statements.items():
        print(f"\n{name}, {SHOWN}, dp-vradmm:\n{text}")
    if options.write:
        quoted = [
            f"### Statement of one fit on {name}\n\ndp-vradmm, {SHOWN}:\n\n> {text}\n"
            for name, text in statements.items()
        ]
        tables = [markdown_table(*one).replace("## ", "### ", 1) for one in found]
        before, rest = PAGE.read_text().split(BEGIN)
        after = rest.split(END)[1]
        PAGE.write_text("\n".join([before + BEGIN, "", *tables, *quoted, END]) + after)


if __name__ == "__main__":
    main()
