"""What every training script shares: rows and options in, weights and seconds out. Runs in the peers' environments."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import perf_counter

import numpy as np


def serve(train: Callable[..., np.ndarray]) -> None:
    """Call `train(X, y, **options)` with what the command line names, and print its weights as JSON."""
    rows, options = np.load(sys.argv[1]), json.loads(sys.argv[2])
    X, y = rows["X"], rows["y"]
    start = perf_counter()
    weights = train(X, y, **options)
    seconds = perf_counter() - start
    print(json.dumps({"weights": np.asarray(weights, dtype=float).tolist(), "seconds": seconds}))
