"""Public data sets for examples, tests and experiments: `load(name)` and the simulated `make_demo()`."""

from dpadmm.datasets.catalogue import names
from dpadmm.datasets.dataset import Dataset
from dpadmm.datasets.loader import cache_folder, load
from dpadmm.datasets.simulated import make_demo

__all__ = ["Dataset", "cache_folder", "load", "make_demo", "names"]
