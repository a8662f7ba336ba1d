"""The command-line options, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def _data(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Data", **more)


def _budget(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Privacy budget", **more)


def _training(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Training", **more)


def _search(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Search", **more)


def output(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Output", **more)


SOLVERS = "auto, full-admm, dp-sadmm, dp-vradmm, ssadmm, mpadmm, noisy-admm, dp-sgd or dp-gd."
_SAMPLERS = "full, truncated-poisson, poisson or fixed; chosen if left out."
_PENALTIES = "none, l1, l2, elasticnet, group, fused, graph, nuclear, scad or mcp."

ModelFolder = Annotated[Path, typer.Argument(metavar="MODEL_DIR", help="Folder written by `dpadmm fit`.")]
TableFile = Annotated[Path, typer.Argument(metavar="TABLE", help="A .csv, .csv.gz or .parquet file.")]

SchemaFile = Annotated[Path, _data("--schema", metavar="FILE", help="TOML file that declares the columns.")]
Target = Annotated[str | None, _data("--target", metavar="COLUMN", help="Column to predict, if the schema names none.")]
Rows = Annotated[int | None, _data("--rows", "-n", metavar="N", min=1, help="Public number of rows.")]
Persons = Annotated[
    int | None,
    _data(
        "--persons",
        metavar="N",
        min=1,
        help="Instead of --rows: public number of persons, who are protected with all their rows.",
    ),
]
NominalPersons = Annotated[
    int | None,
    _data(
        "--persons",
        metavar="N",
        min=1,
        help="Public number of persons, where the schema names their column; takes the place of --rows.",
    ),
]
NominalRows = Annotated[
    int | None,
    _data(
        "--rows",
        "-n",
        metavar="N",
        min=1,
        help="Public number of rows: the plan is certified before the table is read.",
    ),
]
Features = Annotated[
    int | None, _data("--features", metavar="N", min=1, help="Number of features after encoding; or give a --schema.")
]
ClassCount = Annotated[
    int | None, _data("--classes", metavar="N", min=2, help="Number of classes; 2 if left out. A schema declares them.")
]
SchemaInstead = Annotated[
    Path | None, _data("--schema", metavar="FILE", help="TOML file that declares the columns, instead of --features.")
]
OnDisk = Annotated[
    Path | None,
    _data("--on-disk", metavar="DIR", help="For a .parquet larger than memory: folder for a temporary file."),
]
InvalidRows = Annotated[
    str,
    _data(
        "--invalid-rows",
        metavar="NAME",
        help="Rows that do not fit the schema: error, or zero (they count for nothing).",
    ),
]

Epsilon = Annotated[float, _budget("--epsilon", "-e", metavar="X", help="ε > 0, for instance 1.0.")]
Delta = Annotated[float, _budget("--delta", "-d", metavar="X", help="δ in (0, 1), well below 1/rows.")]
Relation = Annotated[
    str, _budget("--relation", metavar="NAME", help="Which tables are neighbours: replace-one or add-remove.")
]
Accountant = Annotated[
    str | None,
    _budget(
        "--accountant", metavar="NAME", help="pld, rdp, gaussian, iteration or iteration-paper; chosen if left out."
    ),
]
ArithmeticName = Annotated[
    str, _budget("--arithmetic", metavar="NAME", help="granular, or exact (integers and discrete Gaussian noise).")
]
LedgerPlace = Annotated[
    str | None, _budget("--ledger", metavar="PATH", help="Ledger that is charged; see `dpadmm ledger`.")
]
LedgerDataset = Annotated[str | None, _budget("--dataset", metavar="NAME", help="Name of this table in the ledger.")]

Model = Annotated[str, _training("--model", "-m", metavar="NAME", help="logistic, svm, regression or huber.")]
Penalty = Annotated[str, _training("--penalty", metavar="NAME", help=_PENALTIES)]
Alpha = Annotated[float, _training("--alpha", metavar="X", help="Strength of the penalty.")]
L1Ratio = Annotated[float, _training("--l1-ratio", metavar="X", help="L1 share of the elastic net.")]
Graph = Annotated[
    Path | None,
    _training(
        "--graph", metavar="FILE", help="CSV file of public edges. A line is FEATURE,FEATURE or FEATURE,FEATURE,WEIGHT."
    ),
]
PrivateGraphShare = Annotated[
    float | None,
    _budget(
        "--private-graph",
        metavar="SHARE",
        help="Learn the graph of --penalty graph with this share of the budget, for instance 0.2.",
    ),
]
Groups = Annotated[
    Path | None,
    _training(
        "--groups", metavar="FILE", help="CSV file with lines FEATURE,GROUP. If left out, each column is a group."
    ),
]
SolverName = Annotated[str, _training("--solver", "-s", metavar="NAME", help=SOLVERS)]
SamplerName = Annotated[str | None, _training("--sampler", metavar="NAME", help=_SAMPLERS)]
BatchSize = Annotated[
    int | None,
    _training(
        "--batch-size", "-b", metavar="N", min=1, help="Expected number of rows in a mini-batch; √rows if left out."
    ),
]
Steps = Annotated[int | None, _training("--steps", "-t", metavar="N", min=1, help="Solver steps; chosen if left out.")]
ClipNorm = Annotated[
    float | None,
    _training(
        "--clip-norm",
        metavar="X",
        help="Clip of one row's gradient; chosen if left out. With it, solver auto is replaced by full-admm.",
    ),
]
RowNorm = Annotated[float, _training("--row-norm", metavar="X", help="Longer rows are scaled down to this norm.")]
Smoothing = Annotated[
    float | None,
    _training(
        "--smoothing",
        metavar="X",
        help="Strength ν of Laplacian smoothing of neighbours. With it, solver auto is replaced by full-admm.",
    ),
]
StandardErrors = Annotated[
    bool | None,
    _training(
        "--standard-errors/--no-standard-errors",
        help="Compute how far the noise may have moved each coefficient; if left out, only where that is quick.",
    ),
]
NoIntercept = Annotated[bool, _training("--no-intercept", help="Leave the intercept out.")]
Seed = Annotated[
    int | None,
    _training(
        "--seed", metavar="N", help="For tests only: makes the noise repeatable, so that the model is NOT private."
    ),
]

SearchAccountant = Annotated[
    str | None, _budget("--accountant", metavar="NAME", help="profile or rdp; profile, the tighter one, if left out.")
]
Tried = Annotated[
    list[str] | None,
    _search("--try", metavar="NAME=V1,V2,…", help="Values to try. Repeat the option for further names."),
]
Trials = Annotated[
    str,
    _search(
        "--trials", metavar="NAME", help="Law of their number: geometric, logarithmic, negative-binomial or poisson."
    ),
]
MeanTrials = Annotated[float, _search("--mean-trials", metavar="X", help="Mean number of trials, above 1.")]
Shape = Annotated[float | None, _search("--shape", metavar="X", help="Shape of the negative binomial distribution.")]
Validation = Annotated[
    float, _search("--validation", metavar="X", help="Share of the rows that score the trials; the rest trains them.")
]
Scoring = Annotated[
    str | None, _search("--scoring", metavar="NAME", help="What a trial is scored by: accuracy or loss.")
]
ScoreBound = Annotated[
    float | None,
    _search("--score-bound", metavar="X", help="Losses from this on count as the worst; needs --scoring loss."),
]

OutFolder = Annotated[Path, output("--out", "-o", metavar="DIR", help="Folder to make.")]
OutFolderToBe = Annotated[Path | None, output("--out", "-o", metavar="DIR", help="Folder to make, unless --dry-run.")]
OutFile = Annotated[Path, output("--out", "-o", metavar="FILE", help="File to write.")]
Force = Annotated[bool, output("--force", "-f", help="Replace an earlier output.")]
DryRun = Annotated[bool, output("--dry-run", help="Print the cost and stop. Needs --rows; reads no table.")]
Json = Annotated[bool, output("--json", help="Print JSON, also for errors.")]
Quiet = Annotated[bool, output("--quiet", "-q", help="No progress bar, no summary.")]
