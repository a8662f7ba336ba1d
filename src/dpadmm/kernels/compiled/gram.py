"""Second moments of sparse rows, entry by entry."""

from __future__ import annotations

import numpy as np

from dpadmm.kernels.jit import kernel

U = np.uintp


@kernel("contract")
def sparse_gram(data, indices, indptr, total):
    total[:] = 0.0
    for r in range(U(len(indptr) - 1)):
        first = U(indptr[r])
        for p in range(first, U(indptr[r + U(1)])):
            value, row = data[p], U(indices[p])
            for q in range(first, p + U(1)):
                total[row, U(indices[q])] += value * data[q]
