"""A private model of rows that Dask holds in partitions: here simulated ones, elsewhere Parquet files or a cluster.

Run `python examples/dask_fit.py`, after `pip install 'dpadmm[dask]'`.
"""

import dask.array as da
import numpy as np

from dpadmm import DPLogisticRegression

ROWS, FEATURES, PARTITIONS = 20_000, 20, 10


def partition(block_info: dict) -> np.ndarray:
    """Stands for the reading of one file. It must give the same rows whenever it is asked."""
    rng = np.random.default_rng(block_info[None]["chunk-location"][0])
    return rng.uniform(-1, 1, (ROWS, FEATURES)).astype(np.float32)


if __name__ == "__main__":
    # For a cluster: from distributed import Client; client = Client("scheduler-address:8786")
    X = da.map_blocks(partition, chunks=((ROWS,) * PARTITIONS, (FEATURES,)), dtype=np.float32, meta=np.empty((0, 0)))
    y = (X[:, 0] - X[:, 1] > 0).astype(int)

    model = DPLogisticRegression(epsilon=1.0, delta=1e-7, penalty="l1", alpha=1e-3, classes=[0, 1])
    model.fit(X, y)
    print(model.privacy_)

    # Predictions of a table larger than memory are made partition by partition, too.
    predicted = X.map_blocks(model.predict, drop_axis=1, dtype=int)
    print("share of rows predicted rightly:", float((predicted == y).mean().compute()))
