"""`dpadmm audit`: attack a solver many times and say which ε its noise cannot have."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from dpadmm.cli.options import Epsilon, Json, Relation, Seed, SolverName
from dpadmm.cli.screen import print_json, print_line, print_pairs

HELP = """\
Attack a solver: does its noise keep what it claims? Needs no data.

Trains logistic regression on two made-up neighbouring tables that differ as much as the claim allows for, --runs \
times on each, and lets an attacker who knows both tables guess from the noisy answers which one was used. A lower \
bound above the claim refutes it; one below it proves nothing. Full-data solvers are tested against the Gaussian \
they claim to be, mini-batch solvers against (ε, δ) itself, which takes more runs.

\b
Examples
  dpadmm audit --solver auto --epsilon 1
  dpadmm audit --solver dp-sadmm --epsilon 0.5 --runs 20000 --json
"""

AuditDelta = Annotated[float, typer.Option("--delta", "-d", metavar="X", help="δ of the claim; large ones show more.")]
Runs = Annotated[int, typer.Option("--runs", "-r", metavar="N", min=200, help="Fits on each of the two tables.")]
Confidence = Annotated[float, typer.Option("--confidence", metavar="X", help="Of the lower bound, over the runs.")]
AuditSteps = Annotated[int, typer.Option("--steps", "-t", metavar="N", min=2, help="Solver steps of each fit.")]


def audit(
    *,
    solver: SolverName = "auto",
    epsilon: Epsilon,
    delta: AuditDelta = 0.05,
    relation: Relation = "replace-one",
    runs: Runs = 2000,
    confidence: Confidence = 0.999,
    steps: AuditSteps = 2,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Read the command line."""
    from dpadmm.audit import audit_solver

    result = audit_solver(solver, epsilon, delta, runs, confidence, relation, steps, seed)
    if json:
        print_json({"solver": solver, "relation": relation, **asdict(result), "refuted": result.refuted})
        return
    power = [] if result.power is None else [("power", f"full use of the claim would show as ε ≥ {result.power:.4g}")]
    print_pairs(
        f"Audit of {solver}",
        [
            ("claimed", f"ε = {result.claimed:g} at δ = {result.delta:g}, {relation}"),
            ("lower bound", f"ε ≥ {result.lower_bound:.4g} with confidence {result.confidence:g}"),
            *power,
            ("runs", f"{result.runs:,} on each of two neighbouring tables, {result.method} test"),
        ],
    )
    print_line(
        "The claim is REFUTED."
        if result.refuted
        else "The claim stands: no attack of this kind and size refutes it. That is no proof."
    )
