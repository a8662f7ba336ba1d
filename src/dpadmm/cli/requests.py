"""What each command that declares a fit is asked: dataclasses whose fields are its options, shared by inheritance."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from dpadmm.cli import options

PANELS = ("Data", "Privacy budget", "Search", "Training", "Output")
"""The order in which `--help` shows them."""

Request = TypeVar("Request")


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """What decides the plan of a fit, whatever the table."""

    epsilon: options.Epsilon
    delta: options.Delta
    relation: options.Relation = "replace-one"
    model: options.Model = "logistic"
    penalty: options.Penalty = "none"
    alpha: options.Alpha = 1e-4
    l1_ratio: options.L1Ratio = 0.5
    graph: options.Graph = None
    private_graph: options.PrivateGraphShare = None
    groups: options.Groups = None
    solver: options.SolverName = "auto"
    steps: options.Steps = None
    batch_size: options.BatchSize = None
    sampler: options.SamplerName = None
    clip_norm: options.ClipNorm = None
    row_norm: options.RowNorm = 1.0
    smoothing: options.Smoothing = None
    no_intercept: options.NoIntercept = False

    def parameters(self) -> dict[str, Any]:
        """Those that estimators and declarations have too, by their names there."""
        as_they_are = ("penalty", "alpha", "l1_ratio", "solver", "steps", "batch_size", "sampler", "clip_norm")
        shared = {name: getattr(self, name) for name in (*as_they_are, "row_norm", "smoothing")}
        return {**shared, "fit_intercept": not self.no_intercept}


@dataclass(frozen=True, kw_only=True)
class PlanOptions(ModelOptions):
    """What decides the plan of a single fit."""

    accountant: options.Accountant = None
    arithmetic: options.ArithmeticName = "granular"

    def parameters(self) -> dict[str, Any]:
        """Those that estimators and declarations have too, by their names there."""
        return {**super().parameters(), "accountant": self.accountant, "arithmetic": self.arithmetic}


@dataclass(frozen=True, kw_only=True)
class PlanRequest(PlanOptions):
    """The options of one `dpadmm plan`."""

    rows: options.Rows = None
    persons: options.Persons = None
    features: options.Features = None
    classes: options.ClassCount = None
    schema: options.SchemaInstead = None
    target: options.Target = None
    json: options.Json = False


@dataclass(frozen=True, kw_only=True)
class TableOptions(ModelOptions):
    """What every command that trains on a table is asked."""

    table: options.TableFile
    schema: options.SchemaFile
    target: options.Target = None
    rows: options.NominalRows = None
    persons: options.NominalPersons = None
    invalid_rows: options.InvalidRows = "error"
    ledger: options.LedgerPlace = None
    dataset: options.LedgerDataset = None
    seed: options.Seed = None
    force: options.Force = False
    json: options.Json = False
    quiet: options.Quiet = False


@dataclass(frozen=True, kw_only=True)
class FitRequest(PlanOptions, TableOptions):
    """The options of one `dpadmm fit`."""

    out: options.OutFolder
    on_disk: options.OnDisk = None
    standard_errors: options.StandardErrors = None


@dataclass(frozen=True, kw_only=True)
class TuneRequest(TableOptions):
    """The options of one `dpadmm tune`."""

    accountant: options.SearchAccountant = None
    tried: options.Tried = None
    trials: options.Trials = "geometric"
    mean_trials: options.MeanTrials = 10.0
    shape: options.Shape = None
    validation: options.Validation = 0.2
    scoring: options.Scoring = None
    score_bound: options.ScoreBound = None
    out: options.OutFolderToBe = None
    dry_run: options.DryRun = False

    @property
    def folder(self) -> Path:
        """Where the winner is written."""
        return Path() if self.out is None else self.out


def taking(kind: type[Request]) -> Callable[[Callable[[Request], None]], Callable[..., None]]:
    """Make a command of a function of one request: every field of the dataclass `kind` is an option of it."""
    hints = get_type_hints(kind, include_extras=True)
    parameters = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(kind)  # type: ignore[arg-type]
    ]

    def decorate(command: Callable[[Request], None]) -> Callable[..., None]:
        def read(**given: Any) -> None:
            command(kind(**given))

        read.__name__, read.__doc__ = command.__name__, command.__doc__
        read.__signature__ = inspect.Signature(sorted(parameters, key=_panel))  # type: ignore[attr-defined]
        read.__annotations__ = hints
        return read

    return decorate


def _panel(parameter: inspect.Parameter) -> int:
    """The place of an option among the panels; arguments come first."""
    panels = [said.rich_help_panel for said in parameter.annotation.__metadata__ if hasattr(said, "rich_help_panel")]
    return PANELS.index(panels[0]) if panels[0] in PANELS else -1
