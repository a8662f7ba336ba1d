"""Private preparation: what would otherwise have to be declared, learned from private rows within a budget.

| class | asks for | stands for |
|---|---|---|
| `PrivateQuantileClipper` | counts below thresholds, by bisection | `bounds` of a model |
| `PrivateSecondMoment` | a second moment | a whitening |
| `PrivateGraph` | a second moment | `graph` of a model with `penalty="graph"` |

Each is a scikit-learn transformer with a budget of its own, or, where a model takes it, a step paid by a share of the
model's budget: one plan, one statement, one charge.
"""

from dpadmm.preparation.composed_statements import compose_statements
from dpadmm.preparation.moments import PrivateSecondMoment
from dpadmm.preparation.private_graph import PrivateGraph
from dpadmm.preparation.quantiles import PrivateQuantileClipper

__all__ = ["PrivateGraph", "PrivateQuantileClipper", "PrivateSecondMoment", "compose_statements"]
