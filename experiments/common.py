"""Shared by the experiments: seeds, splits, tables."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from dpadmm.datasets import load

SPLIT_SEED = 0
UNSCALED = ("bio_train",)


@functools.lru_cache(maxsize=1)
def train_test(name: str) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """The official split, or a random half where there is none. mnist pixels arrive in [0, 1]."""
    data = load(name)
    if data.X_test is not None:
        return data.X, data.y, data.X_test, data.y_test
    order = np.random.default_rng(SPLIT_SEED).permutation(len(data.y))
    train, test = order[: len(order) // 2], order[len(order) // 2 :]
    X = to_usual_range(data.X, data.X[train]) if name in UNSCALED else data.X
    return X[train], data.y[train], X[test], data.y[test]


def to_usual_range(X: np.ndarray, examples: np.ndarray) -> np.ndarray:
    """Features cut at their quantiles of 1 % and 99 %, then in [-1, 1]. These bounds are taken as known, as the bounds
    stored with other data sets are."""
    low, high = np.quantile(examples, [0.01, 0.99], axis=0)
    return np.clip(2 * (X - low) / np.where(high > low, high - low, 1.0) - 1, -1, 1)


def commonest(labels: np.ndarray) -> Any:
    """The class that most labels belong to."""
    values, counts = np.unique(labels, return_counts=True)
    return values[counts.argmax()]


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """Mean and standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def print_table(title: str, header: list[str], rows: list[list[str]]) -> None:
    table = Table(*header, title=title)
    for row in rows:
        table.add_row(*row)
    Console(width=120).print(table)


def markdown_table(title: str, header: list[str], rows: list[list[str]]) -> str:
    lines = [f"## {title}", "", "| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"
