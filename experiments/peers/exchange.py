"""What every training script shares: rows and options in, weights and seconds out. Runs in the peers' environments."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import perf_counter, process_time

import numpy as np


def serve(train: Callable[..., np.ndarray]) -> None:
    """Call `train(X, y, **options)` with what the command line names, and print its weights as JSON."""
    rows, options = np.load(sys.argv[1]), json.loads(sys.argv[2])
    X, y = rows["X"], rows["y"]
    wall, processor = perf_counter(), process_time()
    weights = train(X, y, **options)
    # Processor time counts no waiting for other programs, wall time no second thread: the peer gets the better one.
    seconds = min(perf_counter() - wall, process_time() - processor)
    print(json.dumps({"weights": np.asarray(weights, dtype=float).tolist(), "seconds": seconds}))
