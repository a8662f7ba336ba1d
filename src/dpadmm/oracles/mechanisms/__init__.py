"""From a raw sum to an answer: noise is added here and nowhere else, but for hidden passes."""

from dpadmm.oracles.mechanisms.base import Mechanism
from dpadmm.oracles.mechanisms.exact import Exact
from dpadmm.oracles.mechanisms.granular import Granular

__all__ = ["Exact", "Granular", "Mechanism"]
