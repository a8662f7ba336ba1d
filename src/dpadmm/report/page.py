"""The report as one HTML page that needs nothing else: no script, no font, no picture from elsewhere."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from string import Template

from dpadmm.privacy.plan_facts import facts_of
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.privacy.wording import rounded_up, short
from dpadmm.report.coefficient_meaning import meaning
from dpadmm.report.coefficients import Coefficients
from dpadmm.report.content import Report
from dpadmm.report.styles import STYLES

MOST_LISTED = 30

ERRORS = (
    "Noise std (lines in the picture) is the standard deviation of a coefficient over the privacy noise, the rows held "
    "fixed: how far the same training on the same rows could have come out elsewhere. It is estimated from the "
    "released answers alone and says nothing about how well the rows stand for a population."
)

_PAGE = Template("""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>$title</title>
<style>$styles</style>
</head>
<body>
<main>
<header>
<h1>$title</h1>
<p class="subtitle">$subtitle</p>
</header>
$warning
<section class="cards" aria-label="The promise in short">$cards</section>
$results
<section>
<h2>Privacy statement</h2>
<p class="statement">$statement</p>
</section>
<section>
<h2>What was asked of the data</h2>
<div class="scroll">$plan</div>
<p class="note">$meaning The $accountant accountant certifies ε = $achieved for exactly $what: $proof.</p>
</section>
<section>
<h2>Coefficients</h2>
$meant
<figure><img alt="$picture_text" src="data:image/png;base64,$picture"></figure>
<details><summary>The $listed largest as a table</summary>
<div class="scroll">$coefficients</div></details>
$errors
</section>
$graph
<section>
<h2>What has to be true</h2>
<ul>$assumptions</ul>
<p class="note">$arithmetic</p>
</section>
<footer>dpadmm $version · plan $digest</footer>
</main>
</body>
</html>
""")


def report_page(report: Report, picture: bytes) -> str:
    """HTML of a report, with the coefficient picture given as PNG."""
    statement, coefficients = report.statement, report.coefficients
    facts = facts_of(report.plan, statement.solver)
    listed = coefficients.largest(MOST_LISTED)
    return _PAGE.substitute(
        title=escape(report.title),
        subtitle=escape(report.subtitle),
        styles=STYLES,
        warning=_warning(statement),
        cards=_cards(statement),
        results=_results(report.results),
        statement=escape(statement.text),
        plan=_table(short.head(facts.unit.kind), short.table(facts), "numbers"),
        accountant=escape(statement.accountant),
        meaning=short.beside_table(facts),
        what="these queries" if facts.search is None else "a search of such trials",
        achieved=rounded_up(statement.epsilon_achieved),
        proof=escape(statement.proof_status),
        picture=base64.b64encode(picture).decode("ascii"),
        picture_text=f"The {len(listed)} largest coefficients of the model, at the scale of a typical row",
        listed=len(listed),
        coefficients=_coefficient_table(coefficients, listed.tolist()),
        graph=_graph(report),
        meant=_meant(report),
        errors=_errors(coefficients),
        assumptions="".join(f"<li>{escape(_sentence(each))}</li>" for each in statement.assumptions),
        arithmetic=escape(statement.arithmetic),
        version=escape(statement.library_version),
        digest=escape(statement.plan_digest[:16]),
    )


def _warning(statement: PrivacyStatement) -> str:
    if not statement.seeded:
        return ""
    return (
        '<p class="warning"><strong>Seeded: NOT private.</strong> Whoever knows the seed can subtract the noise. '
        "Train without a seed before showing this model to anyone.</p>"
    )


def _cards(statement: PrivacyStatement) -> str:
    cards = (
        ("ε promised", rounded_up(statement.epsilon), f"{rounded_up(statement.epsilon_achieved)} certified"),
        ("δ", rounded_up(statement.delta), "extra probability"),
        ("neighbours", statement.relation, f"unit: {statement.unit}"),
        ("accountant", statement.accountant, "its proofs are named below"),
    )
    return "".join(
        f'<div class="card"><span class="label">{escape(label)}</span><span class="value">{escape(value)}</span>'
        f'<span class="note">{escape(note)}</span></div>'
        for label, value, note in cards
    )


def _results(results: Sequence[tuple[str, str]]) -> str:
    if not results:
        return ""
    return f'<section><h2>Results</h2><div class="scroll">{_table(("", ""), results, "pairs")}</div></section>'


def _coefficient_table(table: Coefficients, listed: Sequence[int]) -> str:
    names = table.row_names
    rows = [(names[i], *map(_cell, table.row(i))) for i in (*listed, *range(len(table.names), len(names)))]
    return _table(table.head, rows, "numbers")


def _cell(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"


def _meant(report: Report) -> str:
    text = meaning(report.coefficients, report.score)
    return f"<p>{escape(text)}</p>" if text else ""


def _errors(table: Coefficients) -> str:
    return "" if table.errors is None else f'<p class="note">{ERRORS}</p>'


def _graph(report: Report) -> str:
    """The learned graph, or nothing where none was asked for."""
    if report.edges is None:
        return ""
    names, listed = report.coefficients.names, report.edges[:MOST_LISTED]
    rows = [(names[i], "with" if weight > 0 else "against", names[j], f"{abs(weight):.3g}") for i, j, weight in listed]
    table = _table(("feature", "goes", "feature", "weight"), rows, "numbers") if rows else ""
    return (
        f"<section><h2>Learned graph</h2><p>{len(report.edges):,} edges were told from noise"
        f"{f'; the {len(rows)} strongest' if len(rows) < len(report.edges) else ''}.</p>"
        f'<div class="scroll">{table}</div></section>'
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], style: str) -> str:
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<table class="{style}">{f"<thead><tr>{top}</tr></thead>" if any(head) else ""}<tbody>{body}</tbody></table>'
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
