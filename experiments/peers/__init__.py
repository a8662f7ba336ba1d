"""Private linear models of other libraries, each trained in a virtual environment of its own, scored here.

`make peers` builds the environments; where one is missing `run_peer` says so and nothing fails. Every peer gets the
rows after `RowMap` (an intercept column, norm at most one) and has to return nothing but weights, so that all of them,
and dpadmm, are scored by the same lines of code.

- **opacus**: DP-SGD on one linear layer, Poisson batches of 512, 10 epochs, clip 1, step 2, noise from its own
  default accountant: one setting for all tables. Of the steps 1/4, 1/2, 1, 2 and 4, tried on adult and mushrooms, none
  is best at every ε. It protects against adding or removing a row, which costs about half the noise of replacing one:
  an advantage for the peer wherever dpadmm runs under replace-one.
- **jax-privacy**: the same DP-SGD with its own clipping, noise, Poisson batches and calibration; add or remove.
- **diffprivlib**: objective perturbation with its defaults. Pure ε: it cannot use δ, and it offers nothing that can.
"""

from experiments.peers.run import PEERS, available, run_peer, score

__all__ = ["PEERS", "available", "run_peer", "score"]
