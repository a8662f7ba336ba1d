"""Hand mapped rows to a peer in a subprocess, take back its weights, score them."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import log_softmax, logsumexp
from sklearn.metrics import roc_auc_score

from dpadmm.problem.rowmap import RowMap

ROOT = Path(__file__).parents[2]
LARGEST_DENSE_BYTES = 4 << 30
ONE_THREAD = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


@dataclass(frozen=True)
class Peer:
    """A training script and the interpreter that can run it. No peer here takes sparse rows."""

    environment: str
    script: str

    @property
    def python(self) -> Path:
        return ROOT / self.environment / "bin" / "python"


PEERS = {
    "opacus": Peer(".venv-peers", "train_opacus.py"),
    "jax-privacy": Peer(".venv-peers", "train_jax_privacy.py"),
    "diffprivlib": Peer(".venv-diffprivlib", "train_diffprivlib.py"),
}


def available(name: str) -> bool:
    """Whether `make peers` has built the environment of this peer, with the peer in it."""
    peer = PEERS[name]
    module = name.replace("-", "_")
    return peer.python.exists() and any(peer.python.parents[1].glob(f"lib/*/site-packages/{module}/__init__.py"))


def run_peer(
    name: str,
    X: Any,
    y: NDArray[Any],
    X_test: Any,
    y_test: NDArray[Any],
    epsilon: float,
    delta: float,
    seed: int,
    **options: Any,
) -> dict[str, Any]:
    """Train the peer on raw rows mapped by our public row map.

    Returns
    -------
    dict
        accuracy, auc (None for more than two classes), objective (mean training loss), seconds (noise calibration and
        training, without imports and files); or {"skipped": why}.
    """
    if not available(name):
        return {"skipped": f"{name} is not installed: make peers"}
    dense_bytes = 4 * X.shape[0] * (X.shape[1] + 1)
    if dense_bytes > LARGEST_DENSE_BYTES:
        return {"skipped": f"{name} takes dense rows only: {dense_bytes / 2**30:.0f} GiB"}
    rows, targets, test = mapped(X), classes_as_numbers(y), mapped(X_test)
    trained = _train(PEERS[name], rows, targets, {"epsilon": epsilon, "delta": delta, "seed": seed, **options})
    if "failed" in trained:
        return {"skipped": trained["failed"]}
    weights = np.array(trained.pop("weights"))
    return {**score(weights, rows, targets, test, classes_as_numbers(y_test)), **trained}


def mapped(X: Any) -> Any:
    """Rows as dpadmm's models see them, in float32."""
    return RowMap().apply(X.astype(np.float32))


def classes_as_numbers(y: NDArray[Any]) -> NDArray[np.int64]:
    return np.unique(y, return_inverse=True)[1].astype(np.int64)


def score(weights: NDArray[np.float64], X: Any, y: NDArray[Any], X_test: Any, y_test: NDArray[Any]) -> dict[str, Any]:
    """Test accuracy and AUC, and mean training loss, of weights on mapped rows and classes numbered from 0."""
    margins, test = np.asarray(X @ weights), np.asarray(X_test @ weights)
    if weights.ndim == 1:
        loss = logsumexp([np.zeros(len(y)), -(2 * y - 1) * margins], axis=0).mean()
        accuracy, auc = np.mean((test > 0) == y_test), float(roc_auc_score(y_test, test))
    else:
        loss = -log_softmax(margins, axis=1)[np.arange(len(y)), y].mean()
        accuracy, auc = np.mean(test.argmax(axis=1) == y_test), None
    return {"accuracy": float(accuracy), "auc": auc, "objective": float(loss)}


def _train(peer: Peer, X: Any, y: NDArray[np.int64], options: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        np.savez(path, X=X.toarray() if sparse.issparse(X) else X, y=y)
        finished = subprocess.run(
            [peer.python, Path(__file__).with_name(peer.script), path, json.dumps(options)],
            capture_output=True,
            text=True,
            env={**os.environ, **ONE_THREAD},
        )
    if finished.returncode != 0:
        return {"failed": finished.stderr.strip().splitlines()[-1]}
    answer: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return answer
