"""What audits found: for people, for programs and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpadmm.cli.outputs import check_new_file, write_new_file
from dpadmm.cli.screen import print_json, print_line, print_pairs, print_table
from dpadmm.errors import InvalidParameter
from dpadmm.privacy.wording import ALL_DIGITS, rounded_down, rounded_up

if TYPE_CHECKING:
    from dpadmm.audit import AuditResult, CheckedModel, ModelAudit, NoAttack, OneRunResult

STATEMENT_AGREES = {"statement_agrees": True}
"""Otherwise the model is refused."""


def entry(result: AuditResult | OneRunResult) -> dict[str, Any]:
    return {**asdict(result), "refuted": result.refuted}


def print_two_tables(title: str, result: AuditResult, relation: str, more: Sequence[tuple[str, str]] = ()) -> None:
    print_pairs(
        title,
        [
            ("claimed", f"{_at(result)}, {relation}"),
            ("proven", f"ε ≤ {rounded_up(result.proven)}"),
            ("lower bound", _bound(result)),
            *_power(result),
            ("runs", f"{result.runs:,} on each of two neighbouring tables, {result.method} test"),
            *more,
        ],
    )
    _print_verdict(result.refuted)


def print_all(results: dict[str, AuditResult], relation: str) -> None:
    first = next(iter(results.values()))
    delta = rounded_up(first.delta, ALL_DIGITS)
    print_line(f"Audit at δ = {delta}, {relation}, {first.runs:,} runs on each of two tables", style="bold")
    print_table(
        ("solver", "claimed ε", "proven", "lower bound", "full use would show", "noise seen below", "test", "verdict"),
        [
            (
                name,
                rounded_up(result.claimed),
                rounded_up(result.proven),
                rounded_down(result.lower_bound, 4),
                rounded_down(result.power, 4),
                rounded_down(result.detectable_noise, 2),
                result.method,
                "REFUTED" if result.refuted else "stands",
            )
            for name, result in results.items()
        ],
    )
    confidence = rounded_down(first.confidence)
    print_line(f"Confidence {confidence} for each line. A claim that stands was not refuted; that is no proof.")


def tell_model(folder: Path, result: ModelAudit, json: bool) -> None:
    """A saved model that was attacked."""
    if json:
        print_json({"model": str(folder), **entry(result), **STATEMENT_AGREES, "no_attack": None})
    else:
        print_two_tables(f"Audit of {folder}", result, result.relation, [*_tried(result), *_stated(result)])


def tell_checked(folder: Path, refusal: NoAttack, confidence: float, json: bool) -> None:
    """Without an attack there is no lower bound; the keys stay."""
    checked = refusal.checked
    if json:
        bound = {"lower_bound": None, "confidence": confidence, "runs": 0, "refuted": False}
        why = {**STATEMENT_AGREES, "no_attack": str(refusal)}
        print_json({"model": str(folder), **asdict(checked), **bound, **why})
        return
    print_pairs(
        f"Audit of {folder}",
        [
            ("claimed", f"{_at(checked)}, {checked.relation}"),
            ("proven", f"ε ≤ {rounded_up(checked.proven)}"),
            ("lower bound", "none: no attack was made"),
            *_stated(checked),
        ],
    )
    print_line(f"Statement, plan and accountant agree. Nothing was attacked. {refusal}")


def _tried(found: ModelAudit) -> list[tuple[str, str]]:
    """What was attacked, and whether the solver was run too."""
    unlike = "it makes hidden passes, is a search, has options that are not stored, or its defaults have changed since"
    asked = "once; it asked exactly what was planned" if found.rehearsed else f"no: {unlike}"
    if found.attacks[1:]:
        attacks = f"{len(found.attacks)} times, with as many runs each: {'; '.join(found.attacks)}"
    else:
        attacks = found.attacks[0]
    return [("attacked", attacks), ("solver was run", asked)]


def _stated(found: ModelAudit | CheckedModel) -> list[tuple[str, str]]:
    return [
        ("statement", "unseeded, and agrees with the recorded plan"),
        ("solver", found.solver),
        ("proof", found.proof),
    ]


def print_one_run(result: OneRunResult, charged: bool) -> None:
    """One fit on a real table, and whether a ledger has charged it."""
    print_pairs(
        f"One-run audit of {result.solver}",
        [
            ("claimed", f"{_at(result)}, {result.relation}"),
            ("proven", f"ε ≤ {rounded_up(result.proven)}"),
            ("lower bound", _bound(result)),
            ("guesses", f"{result.correct:,} of {result.guesses:,} right, about {result.canaries:,} canaries"),
            *_power(result),
            ("runs", f"{result.runs}, {'charged to the ledger' if charged else 'not charged to any ledger'}"),
        ],
    )
    _print_verdict(result.refuted)
    if result.seeded:
        print_line(
            "Seeded: this result is NOT private. Do not publish it. Whoever knows or guesses the seed can subtract the "
            "noise. On private rows, audit without --seed."
        )
    if not charged:
        print_line("This fit spent its whole budget. Count it, or name a --ledger and a --dataset next time.")


def _at(claim: AuditResult | CheckedModel | OneRunResult) -> str:
    """The claim; δ in all its digits, because the lower bound is for the same δ and would want it rounded down."""
    return f"ε = {rounded_up(claim.claimed)} at δ = {rounded_up(claim.delta, ALL_DIGITS)}"


def _bound(result: AuditResult | OneRunResult) -> str:
    return f"ε ≥ {rounded_down(result.lower_bound, 4)} with confidence {rounded_down(result.confidence)}"


def _power(result: AuditResult | OneRunResult) -> list[tuple[str, str]]:
    noise = rounded_down(result.detectable_noise, 2)
    seen = (
        f"noise below {noise} times what is needed would be noticed in 95 of 100 such audits"
        if result.detectable_noise
        else "this audit is too small, for so large a claim, to notice any lack of noise"
    )
    return [
        ("power", f"a mechanism that spends the whole claim would show ε ≥ {rounded_down(result.power, 4)}; {seen}")
    ]


def _print_verdict(refuted: bool) -> None:
    print_line(
        "The claim is REFUTED." if refuted else "The claim stands: this attack did not refute it. That is no proof."
    )


def check_picture(picture: Path, force: bool) -> None:
    from dpadmm.report.audits import FORMATS

    if picture.suffix.lower().lstrip(".") not in FORMATS:
        raise InvalidParameter(f"--picture {picture.name}", "a name ending in .png or .svg", "choose one of these")
    check_new_file(picture, force)


def draw_picture(picture: Path, results: dict[str, Any]) -> None:
    from dpadmm.report.audits import Audited, audit_picture

    audits = [
        Audited(Path(name).name, result.claimed, result.proven, result.lower_bound, result.power)
        for name, result in results.items()
    ]
    write_new_file(picture, audit_picture(audits, picture.suffix.lower().lstrip(".")))
