"""Seeded fits of every kind, whose plans, weights and statements are recorded in tests/golden/fits.json."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from dpadmm import DPLinearRegression, DPLinearSVC, DPLogisticRegression, DPSearchCV, kernels
from dpadmm.datasets import make_demo
from dpadmm.preparation import PrivateGraph, PrivateQuantileClipper, PrivateSecondMoment

ROWS, FEATURES = 1200, 6
BOUNDS = (-4.0, 4.0)


def table() -> tuple[Any, Any]:
    """Rows and ±1 labels, the same everywhere."""
    demo = make_demo(ROWS, FEATURES, 4, random_state=3)
    return demo.X, demo.y


def targets() -> Any:
    """Targets within [-1, 1]."""
    X, _ = table()
    return np.clip(X[:, 0] / 8 - X[:, 1] / 10, -1, 1)


def three_classes() -> Any:
    """Labels 0, 1, 2."""
    X, _ = table()
    return np.digitize(X[:, 0], [-0.5, 0.7])


def _fitted(estimator: Any, y: Any, rows: Callable[[Any], Any] = lambda X: X) -> Any:
    return estimator.fit(rows(table()[0]), y)


def logistic(rows: Callable[[Any], Any] = lambda X: X, **chosen: Any) -> Any:
    """A fitted two-class model."""
    settings = {"epsilon": 2.0, "bounds": BOUNDS, "classes": [-1, 1], "random_state": 11, **chosen}
    return _fitted(DPLogisticRegression(**settings), table()[1], rows)


def svc(**chosen: Any) -> Any:
    """A fitted support vector machine."""
    return _fitted(DPLinearSVC(epsilon=2.0, bounds=BOUNDS, classes=[-1, 1], random_state=11, **chosen), table()[1])


def regression(**chosen: Any) -> Any:
    """A fitted regression."""
    return _fitted(DPLinearRegression(epsilon=2.0, bounds=BOUNDS, random_state=11, **chosen), targets())


def softmax(**chosen: Any) -> Any:
    """A fitted model of three classes."""
    settings = {"epsilon": 2.0, "bounds": BOUNDS, "classes": [0, 1, 2], "random_state": 11, **chosen}
    return _fitted(DPLogisticRegression(**settings), three_classes())


def search() -> Any:
    """A fitted search."""
    base = DPLogisticRegression(epsilon=3.0, bounds=BOUNDS, classes=[-1, 1], penalty="l1", random_state=11)
    return _fitted(DPSearchCV(base, {"alpha": [1e-4, 1e-2]}, trials="geometric", mean_trials=3.0), table()[1])


def transformer(made: Any) -> Any:
    """A fitted transformer."""
    return made.fit(table()[0])


def _with_holes(X: Any) -> Any:
    holed = X.copy()
    holed[7, 2] = np.nan
    return holed


BATCHES = {"steps": 60, "batch_size": 40}
EDGES = [(0, 1), (1, 2), (3, 4)]

FITS: dict[str, Callable[[], Any]] = {
    "auto": lambda: logistic(),
    "auto, strong noise": lambda: logistic(epsilon=0.1),
    "auto, add-remove": lambda: logistic(relation="add-remove"),
    "auto, nominal rows": lambda: logistic(relation="add-remove", n_rows=1000),
    "auto, unit rows": lambda: logistic(bounds=None),
    "auto, no intercept": lambda: logistic(fit_intercept=False),
    "auto, l1": lambda: logistic(penalty="l1", alpha=1e-2),
    "auto, elastic net": lambda: logistic(penalty="elasticnet", alpha=1e-2),
    "auto, graph": lambda: logistic(penalty="graph", alpha=1e-2, graph=EDGES),
    "auto, fused": lambda: logistic(penalty="fused", alpha=1e-2),
    "auto, class weights": lambda: logistic(class_weight={1: 3.0}),
    "auto, float32": lambda: logistic(rows=lambda X: X.astype(np.float32)),
    "auto, sparse": lambda: logistic(rows=sparse.csr_matrix, bounds=None),
    "auto, invalid row": lambda: logistic(rows=_with_holes, invalid_rows="zero"),
    "auto, hinge": lambda: svc(),
    "auto, squared": lambda: regression(),
    "auto, huber": lambda: regression(loss="huber"),
    "auto, softmax": lambda: softmax(),
    "full-admm": lambda: logistic(solver="full-admm", penalty="l1", alpha=1e-2),
    "full-admm, exact": lambda: logistic(solver="full-admm", arithmetic="exact", steps=12),
    "full-admm, smoothed": lambda: logistic(solver="full-admm", smoothing=1.0),
    "full-admm, squared": lambda: regression(solver="full-admm"),
    "full-admm, nuclear": lambda: softmax(solver="full-admm", penalty="nuclear", alpha=1e-2),
    "dp-sadmm": lambda: logistic(solver="dp-sadmm", **BATCHES),
    "dp-sadmm, add-remove": lambda: logistic(solver="dp-sadmm", relation="add-remove", **BATCHES),
    "dp-sadmm, fixed": lambda: logistic(solver="dp-sadmm", sampler="fixed", **BATCHES),
    "dp-sadmm, rdp": lambda: logistic(solver="dp-sadmm", sampler="fixed", accountant="rdp", **BATCHES),
    "dp-sadmm, strong": lambda: logistic(
        solver="dp-sadmm", penalty="l2", alpha=0.1, solver_options={"convexity": "strong"}, **BATCHES
    ),
    "dp-sadmm, smoothed graph": lambda: logistic(
        solver="dp-sadmm", smoothing=2.0, penalty="graph", graph=EDGES, alpha=1e-3, **BATCHES
    ),
    "dp-sadmm, softmax": lambda: softmax(solver="dp-sadmm", **BATCHES),
    "dp-sadmm, hinge": lambda: svc(solver="dp-sadmm", **BATCHES),
    "dp-vradmm": lambda: logistic(solver="dp-vradmm", **BATCHES),
    "dp-vradmm, strong": lambda: logistic(
        solver="dp-vradmm", penalty="l2", alpha=0.1, solver_options={"convexity": "strong"}, **BATCHES
    ),
    "ssadmm": lambda: logistic(solver="ssadmm", penalty="l1", alpha=1e-3, **BATCHES),
    "mpadmm": lambda: logistic(solver="mpadmm", penalty="l1", alpha=1e-3, **BATCHES),
    "noisy-admm": lambda: logistic(solver="noisy-admm", penalty="l1", alpha=1e-3, epsilon=4.0, steps=3),
    "dp-sgd": lambda: logistic(solver="dp-sgd", **BATCHES),
    "dp-gd": lambda: logistic(solver="dp-gd"),
    "private bounds": lambda: logistic(bounds=PrivateQuantileClipper((-100, 100), share=0.1)),
    "private graph": lambda: logistic(penalty="graph", alpha=1e-4, graph=PrivateGraph(share=0.3)),
    "search": search,
    "transformer, clipper": lambda: transformer(
        PrivateQuantileClipper((-100, 100), epsilon=1.0, delta=1e-5, random_state=11)
    ),
    "transformer, moment": lambda: transformer(
        PrivateSecondMoment(epsilon=1.0, delta=1e-5, bounds=BOUNDS, random_state=11)
    ),
}

COMPILED = ("auto", "auto, l1", "auto, float32", "auto, sparse", "full-admm", "dp-sadmm", "dp-vradmm", "noisy-admm")


def record(name: str, engine: kernels.Name = "numpy") -> dict[str, Any]:
    """What must not change: the plan's digest, the released numbers to the last bit, the statement."""
    with kernels.use(engine):
        fitted = FITS[name]()
    numbers = np.concatenate([np.ravel(value).astype(float) for value in _released(fitted)])
    return {
        "plan": fitted.plan_.digest,
        "released": [value.hex() for value in numbers.tolist()],
        "statement": str(fitted.privacy_),
    }


def _released(fitted: Any) -> list[Any]:
    if hasattr(fitted, "best_estimator_"):
        return [fitted.best_estimator_.weights_, fitted.best_score_]
    names = ("weights_", "lower_", "upper_", "second_moment_")
    return [getattr(fitted, name) for name in names if hasattr(fitted, name)]


def machine() -> str:
    """Whatever may move a last bit: the processor and the libraries of numbers."""
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.exists() else []
    models = sorted({line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "flags"))})
    packages = [version(package) for package in ("numpy", "scipy", "numba", "llvmlite", "scikit-learn")]
    return hashlib.sha256(repr((platform.machine(), models, packages)).encode()).hexdigest()[:16]
