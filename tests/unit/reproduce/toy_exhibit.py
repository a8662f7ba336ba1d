"""A figure of one's own, as a file: two curves over three values, one of which counts how often it is measured."""

from __future__ import annotations

import os
from dataclasses import dataclass

from dpadmm.errors import CannotCertify
from dpadmm.reproduce import Axis, Better, Curve, Metric, PaperClaim, PlottedExhibit


@dataclass(frozen=True)
class ToyPanel:
    title: str

    @property
    def tables(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True)
class Sloped:
    slope: float

    def __call__(self, case):
        if counted := os.environ.get("TOY_COUNT"):
            with open(counted, "a") as stream:
                stream.write("x")
        if case.x == 3.0 and os.environ.get("TOY_STOP"):
            raise KeyboardInterrupt
        if case.x == 3.0 and os.environ.get("TOY_REFUSE"):
            raise CannotCertify("too fine a lattice")
        return {"value": self.slope * case.x + 0.01 * case.seed}


EXHIBIT = PlottedExhibit(
    name="toy",
    paper="liu2022",
    number="Fig. 0",
    title="toy",
    shows="Steep is above flat.",
    promise="none",
    privacy="None is claimed.",
    setting="Made up.",
    panels=(ToyPanel("left"), ToyPanel("right")),
    x=Axis("x", (1.0, 2.0, 3.0), (1.0, 3.0)),
    metrics=(Metric("value", "value"),),
    curves=(
        Curve("steep", Sloped(2.0)),
        Curve("flat", Sloped(0.5)),
        Curve("floor", Sloped(0.0), "open", flat=True, repeated=False),
    ),
    seeds=3,
    quick_seeds=1,
    claims=(PaperClaim("Steep is above flat", Better("steep", "flat", "value")),),
    best=("steep", "value"),
)
