"""One algorithm a file. A solver never sees a row: it is handed an oracle, and all it does is post-processing."""

from dpadmm.solvers.auto import Auto
from dpadmm.solvers.base import SOLVERS, Oracle, Setting, Solution, Solver, run
from dpadmm.solvers.baselines.proximal import ProximalGD, ProximalSGD
from dpadmm.solvers.full import FullADMM
from dpadmm.solvers.mpadmm import MPADMM
from dpadmm.solvers.noisy import NoisyADMM
from dpadmm.solvers.sadmm import SADMM
from dpadmm.solvers.ssadmm import SSADMM
from dpadmm.solvers.vradmm import VRADMM

__all__ = [
    "MPADMM",
    "SADMM",
    "SOLVERS",
    "SSADMM",
    "VRADMM",
    "Auto",
    "FullADMM",
    "NoisyADMM",
    "Oracle",
    "ProximalGD",
    "ProximalSGD",
    "Setting",
    "Solution",
    "Solver",
    "run",
]
