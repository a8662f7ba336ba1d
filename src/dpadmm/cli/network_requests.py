"""What the commands of `dpadmm network` are asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from dpadmm.cli import options
from dpadmm.cli.requests import ModelOptions


def _data(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Data", **more)


def _budget(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Privacy budget", **more)


SiloCount = Annotated[int | None, _data("--silos", "-S", metavar="N", min=2, help="How many owners there are.")]
CardFiles = Annotated[
    list[Path] | None, _data("--card", metavar="FILE", help="card.json of a silo; once for each of them.")
]
Colluding = Annotated[
    int,
    _budget(
        "--colluding",
        "-c",
        metavar="C",
        min=0,
        help="How many owners may collude with the coordinator or each other: 1 to one less than there are.",
    ),
]
Spares = Annotated[
    int,
    _budget("--spares", metavar="N", min=0, help="Questions of each kind that may be repeated after a failure."),
]
TotalRows = Annotated[
    int | None, _data("--rows", "-n", metavar="N", min=1, help="Declared total of the rows of all owners: public.")
]
DataNames = Annotated[
    list[str] | None,
    _data("--data", metavar="NAME", help="A public data set to divide, or tables with --schema, one for each owner."),
]
TransportName = Annotated[
    str, options.output("--transport", metavar="NAME", help="embedded (one process) or process (one for each owner).")
]
Algorithm = Annotated[
    str,
    typer.Option(
        "--algorithm",
        metavar="NAME",
        help="sums (masked sums, recommended), or decentralised: ipadmm, dp-admm, admm, pvp, dvp or radmm.",
        rich_help_panel="Training",
    ),
]
Topology = Annotated[
    str,
    typer.Option(
        "--topology",
        metavar="NAME",
        help="Graph of a decentralised algorithm: complete, ring, star, torus, random-regular or erdos-renyi.",
        rich_help_panel="Training",
    ),
]
RunPlace = Annotated[
    Path | None, typer.Argument(metavar="RUN", help="Folder of `dpadmm network plan --out`; left out with --data.")
]
NewRun = Annotated[Path | None, options.output("--out", "-o", metavar="DIR", help="Folder of the run, to be made.")]
ModelOut = Annotated[Path | None, options.output("--out", "-o", metavar="DIR", help="Folder for the model.")]
EpochNumber = Annotated[
    int, options.output("--epoch", metavar="N", min=1, help="Which attempt; owners approve each of them.")
]
Patience = Annotated[
    float, options.output("--patience", metavar="S", min=0.1, help="Seconds to wait for silos before the run pauses.")
]


@dataclass(frozen=True, kw_only=True)
class ProposalRequest(ModelOptions):
    """The options of one `dpadmm network plan`."""

    silos: SiloCount = None
    card: CardFiles = None
    colluding: Colluding = 1
    spares: Spares = 0
    rows: TotalRows = None
    features: options.Features = None
    classes: options.ClassCount = None
    schema: options.SchemaInstead = None
    target: options.Target = None
    out: NewRun = None
    json: options.Json = False


@dataclass(frozen=True, kw_only=True)
class NetworkRunRequest(ModelOptions):
    """The options of one `dpadmm network run`."""

    run: RunPlace = None
    epsilon: options.Epsilon = 1.0
    delta: options.Delta = 1e-5
    silos: SiloCount = None
    data: DataNames = None
    schema: options.SchemaInstead = None
    target: options.Target = None
    colluding: Colluding = 1
    algorithm: Algorithm = "sums"
    topology: Topology = "complete"
    transport: TransportName = "embedded"
    epoch: EpochNumber = 1
    patience: Patience = 60.0
    seed: options.Seed = None
    out: ModelOut = None
    force: options.Force = False
    json: options.Json = False
    quiet: options.Quiet = False
