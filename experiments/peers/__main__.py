"""Accuracy of the peers on the tables and budgets of `experiments.accuracy`.

Run `python -m experiments.peers` after `make peers` (cached and resumable: results/peers.json, keys as in
results/accuracy.json). Protocol: `experiments.accuracy`; three seeds. Where a fit is slow: one seed, and fewer epochs
of DP-SGD.
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console

from dpadmm.files import replacing
from experiments.accuracy import DATASETS, EPSILONS, delta_for
from experiments.common import mean_and_error, print_table, train_test
from experiments.peers.run import PEERS, run_peer

RESULTS = Path("results/peers.json")
SLOW = {"covtype": 1, "mnist": 1}
FEWER_EPOCHS = {"covtype": 3, "mnist": 5}


def collect(datasets: list[str], peers: list[str], seeds: int) -> dict[str, Any]:
    """Run what the cache lacks. A peer that cannot run leaves no entry."""
    results = stored()
    console = Console(stderr=True)
    for name in datasets:
        table = train_test(name)
        delta = delta_for(name, len(table[1]))
        for peer, epsilon, seed in product(peers, EPSILONS, range(min(seeds, SLOW.get(name, seeds)))):
            key = f"{name}|{peer}|{epsilon}|{seed}"
            if key not in results:
                outcome = run_peer(peer, *table, epsilon, delta, seed, **slow_options(name, peer))
                console.print(f"{key} {outcome}")
                if "skipped" not in outcome:
                    results = stored() | {key: outcome}
                    keep(results)
    return results


def slow_options(name: str, peer: str) -> dict[str, Any]:
    return {"epochs": FEWER_EPOCHS[name]} if name in FEWER_EPOCHS and peer != "diffprivlib" else {}


def stored() -> dict[str, Any]:
    return dict(json.loads(RESULTS.read_text())) if RESULTS.exists() else {}


def keep(results: dict[str, Any]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    with replacing(RESULTS) as stream:
        stream.write(json.dumps(results, indent=0, sort_keys=True).encode())


def cell(results: dict[str, Any], name: str, peer: str, epsilon: float) -> str:
    found = [outcome for key, outcome in results.items() if key.startswith(f"{name}|{peer}|{epsilon}|")]
    if not found:
        return "–"
    mean, error = mean_and_error([outcome["accuracy"] for outcome in found])
    return f"{mean:.4f} ± {error:.4f}" if len(found) > 1 else f"{mean:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    parser.add_argument("--peers", nargs="+", default=list(PEERS))
    options = parser.parse_args()
    results = collect(options.datasets, options.peers, options.seeds)
    for name in options.datasets:
        rows = [[str(epsilon), *(cell(results, name, peer, epsilon) for peer in PEERS)] for epsilon in EPSILONS]
        print_table(name, ["ε", *PEERS], rows)


if __name__ == "__main__":
    main()
