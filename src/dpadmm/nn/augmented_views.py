"""Public views of a row, such as mirror images: a row's gradient is its mean over them, before it is clipped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpadmm.errors import InvalidParameter, shown
from dpadmm.nn.examples import LabelledRows
from dpadmm.problem.checks import count as whole_count

Make = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Views:
    """How many views there are of each row, and how a batch is seen in one of them.

    Parameters
    ----------
    count : int
        Views of each row at each step.
    make : callable, optional
        From a batch of inputs and a `torch.Generator` to a batch of as many. The generator begins at a public seed that
        depends on the step and the view alone, so that all rows are seen alike.
    """

    count: int = 1
    make: Make | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", whole_count("augment", self.count, minimum=1))
        if self.make is None and self.count > 1:
            raise InvalidParameter(
                f"augment={self.count} without a view", "view=, too", "pass the function that makes a view of a batch"
            )
        if not (self.make is None or callable(self.make)):
            raise InvalidParameter(f"view={shown(self.make)}", "a function of inputs and a generator", "pass one")

    def of(self, pair: LabelledRows, step: int) -> LabelledRows:
        """All views of all rows: the first view of each row, then the second of each, and so on."""
        import torch

        if self.make is None:
            return pair
        seen = [self.make(pair.inputs, _generator(step * self.count + view)) for view in range(self.count)]
        return LabelledRows(torch.cat(seen), torch.cat([pair.targets] * self.count))


def _generator(seed: int) -> Any:
    import torch

    return torch.Generator().manual_seed(seed)
