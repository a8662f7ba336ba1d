"""The compiled kernels under the names of their twins. Importing this file imports Numba."""

from dpadmm.kernels.compiled.admm_step import granular, plain_tail, ring, tail
from dpadmm.kernels.compiled.dense import dense_batch, dense_sum
from dpadmm.kernels.compiled.gram import sparse_gram
from dpadmm.kernels.compiled.persons import person_means
from dpadmm.kernels.compiled.row_visits import visits
from dpadmm.kernels.compiled.sparse import sparse_sum
from dpadmm.kernels.compiled.ziggurat import normals

PARALLEL = True
"""They release the lock of the interpreter, so that row blocks may be summed by threads."""
PAIR_COST = 64
"""Of a product of two stored entries in `sparse_gram`, in products of a dense block."""

__all__ = [
    "PAIR_COST",
    "PARALLEL",
    "dense_batch",
    "dense_sum",
    "granular",
    "normals",
    "person_means",
    "plain_tail",
    "ring",
    "sparse_gram",
    "sparse_sum",
    "tail",
    "visits",
]
