"""The inner loops as pure functions, each twice: in NumPy, and compiled by Numba. Randomness comes in as arrays, or as
the generator of `randomness` that `normals` draws from.

The kernels of a namespace have the same signatures and agree to rounding:

| kernel       | what it does                                                        |
|--------------|---------------------------------------------------------------------|
| dense_sum    | sum of clipped gradients (or differences) over dense rows           |
| dense_batch  | the same over a mini-batch, in the commonest case                   |
| sparse_sum   | the same over CSR rows                                              |
| sparse_gram  | second moment of CSR rows, its lower triangle                       |
| person_means | mean gradients of persons over their dense rows, unclipped             |
| normals      | standard normals from the words of a generator                      |
| granular     | sum and noise rounded to one grid, added and divided; bit by bit    |
| ring         | smoothing on a ring by two recursions                               |
| tail         | everything an ADMM step does after the gradient                     |
| plain_tail   | the same where y is x but for its free entries, and none is smoothed |
| visits       | a hidden pass of noisy gradient ADMM, one row after another         |
"""

from dpadmm.kernels import source_digest
from dpadmm.kernels.kernel_choice import FitSize, Loop, Name, active, active_name, announce, choose, use

__all__ = ["FitSize", "Loop", "Name", "active", "active_name", "announce", "choose", "source_digest", "use"]
