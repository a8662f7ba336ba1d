"""Command-line options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

BUDGET, TRAINING, OUTPUT = "Privacy budget", "Training", "Output"

Epsilon = Annotated[float, typer.Option("--epsilon", "-e", help="ε > 0, for instance 1.0.", rich_help_panel=BUDGET)]
Delta = Annotated[
    float, typer.Option("--delta", "-d", help="δ in (0, 1), well below 1/rows.", rich_help_panel=BUDGET)
]
Relation = Annotated[
    str,
    typer.Option("--relation", help="Neighbouring tables: replace-one or add-remove.", rich_help_panel=BUDGET),
]
Accountant = Annotated[
    str | None,
    typer.Option("--accountant", help="pld, rdp or gaussian; chosen if left out.", rich_help_panel=BUDGET),
]
SolverName = Annotated[
    str,
    typer.Option(
        "--solver",
        "-s",
        help="auto, full-admm, dp-sadmm, dp-vradmm, ssadmm, mpadmm, dp-sgd or dp-gd.",
        rich_help_panel=TRAINING,
    ),
]
SamplerName = Annotated[
    str | None,
    typer.Option(
        "--sampler",
        help="full, truncated-poisson, poisson or fixed; chosen if left out.",
        rich_help_panel=TRAINING,
    ),
]
BatchSize = Annotated[
    int | None,
    typer.Option("--batch-size", "-b", min=1, help="Expected rows a step; √rows if left out.", rich_help_panel=TRAINING),
]
Steps = Annotated[
    int | None, typer.Option("--steps", "-t", min=1, help="Solver steps; chosen if left out.", rich_help_panel=TRAINING)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, errors too.", rich_help_panel=OUTPUT)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no summary.", rich_help_panel=OUTPUT)]
Force = Annotated[
    bool, typer.Option("--force", "-f", help="Replace an earlier output of dpadmm.", rich_help_panel=OUTPUT)
]
ModelFolder = Annotated[Path, typer.Argument(metavar="MODEL_DIR", help="Folder written by `dpadmm fit`.")]
TableFile = Annotated[Path, typer.Argument(metavar="TABLE", help="A .csv, .csv.gz or .parquet file.")]
