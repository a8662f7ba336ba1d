"""Who sent what: the messages of a run as one picture, and the promise beside it, on a page that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from string import Template

from dpadmm.network.coordinator import Exchanged
from dpadmm.network.proposal import Proposal
from dpadmm.privacy.wording import rounded_up
from dpadmm.report.styles import STYLES

LANE, HEAD, ROW, LEFT = 140, 50, 26, 190
"""Pixels between two parties, above the first message, between two messages, and before the first party."""
WORDS = {
    "invite": ("the epoch begins", "hello: fresh key"),
    "gathered hello": ("all hellos", "seen"),
    "gathered acknowledgement": ("all have seen them", "ready: ledger charged"),
    "ask": ("question {number}", "masked sum"),
    "close": ("the epoch is over", "secrets erased"),
}

_PAGE = Template("""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>$title</title>
<style>$styles svg { max-width: 100%; height: auto; font: 11px system-ui, sans-serif; }</style>
</head>
<body>
<main>
<header><h1>$title</h1><p class="subtitle">$subtitle</p></header>
<section class="cards">$cards</section>
<section><h2>Who sent what</h2>
<figure>$picture</figure>
<p class="note">Blue: from the coordinator to every silo. Green: back from each. A silo sends one number for each entry
of a sum: its own sum, its share of the noise and its masks, added up modulo 2<sup>64</sup>. Each by itself looks like
chance; the masks cancel when all are added. Beside these messages nothing leaves a silo.</p></section>
<section><h2>Privacy statement</h2><p class="statement">$statement</p></section>
</main>
</body>
</html>
""")


def traffic_page(
    title: str, proposal: Proposal, exchanges: Sequence[Exchanged], statement: str, cards: Sequence[tuple[str, str]]
) -> str:
    """The whole page."""
    roster, plan = proposal.roster, proposal.plan
    promise = [
        ("ε towards the coordinator and colluding silos", rounded_up(plan.budget.epsilon)),
        ("ε if all other owners collude", rounded_up(proposal.epsilon_if_all_collude)),
        *cards,
    ]
    return _PAGE.substitute(
        title=escape(title),
        styles=STYLES,
        subtitle=escape(f"{roster.size} silos, of which at most {roster.colluding} collude; {proposal.model}"),
        cards="".join(map(_card, promise)),
        picture=picture(proposal.roster.names, exchanges),
        statement=escape(statement),
    )


def picture(silos: Sequence[str], exchanges: Sequence[Exchanged]) -> str:
    """The messages in the order of their time, as SVG."""
    width, height = LEFT + LANE * len(silos) + 40, HEAD + ROW * 2 * len(exchanges) + 20
    lanes = [_lane(place, name, height) for place, name in enumerate(("coordinator", *silos))]
    drawn = [part for place, each in enumerate(exchanges) for part in _exchange(place, each, silos)]
    said = f'role="img" aria-label="{len(exchanges)} exchanges" font-family="sans-serif" font-size="11"'
    return f'<svg viewBox="0 0 {width} {height}" width="{width}" {said}>{"".join((*lanes, *drawn))}</svg>'


def _card(pair: tuple[str, str]) -> str:
    label, value = map(escape, pair)
    return f'<div class="card"><span class="label">{label}</span><span class="value">{value}</span></div>'


def _at(place: int) -> int:
    return LEFT + LANE * place


def _lane(place: int, name: str, height: int) -> str:
    x = _at(place)
    return (
        f'<text x="{x}" y="20" text-anchor="middle" font-weight="600">{escape(name)}</text>'
        f'<line x1="{x}" y1="30" x2="{x}" y2="{height}" stroke="#dde2e6"/>'
    )


def _exchange(place: int, exchanged: Exchanged, silos: Sequence[str]) -> list[str]:
    there, back = WORDS.get(exchanged.name, (exchanged.name, ""))
    y = HEAD + ROW * 2 * place
    said = there.format(number=exchanged.number)
    parts = [_words(y, f"{said}, {_size(exchanged.sent)}"), _words(y + ROW, back)]
    for lane, name in enumerate(silos):
        parts.append(_arrow(_at(lane) if lane else _at(0), _at(lane + 1), y, "#0b6e8a"))
        if name in exchanged.received:
            parts.append(_reply(lane, y + ROW, exchanged.received[name]))
    return parts


def _words(y: int, text: str) -> str:
    return f'<text x="{LEFT - 14}" y="{y + 4}" text-anchor="end" fill="#5b6770">{escape(text)}</text>'


def _arrow(start: int, end: int, y: int, colour: str) -> str:
    return (
        f'<line x1="{start}" y1="{y}" x2="{end}" y2="{y}" stroke="{colour}"/>'
        f'<path d="M{end} {y} l-7 -3 v6 z" fill="{colour}"/>'
    )


def _reply(lane: int, y: int, size: int) -> str:
    start, end, colour = _at(lane + 1), _at(lane), "#3b7d3a"
    return (
        f'<line x1="{start}" y1="{y}" x2="{_at(0)}" y2="{y}" stroke="{colour}" stroke-opacity=".5"/>'
        f'<circle cx="{start}" cy="{y}" r="3" fill="{colour}"/>'
        f'<text x="{(start + end) // 2}" y="{y - 4}" text-anchor="middle" fill="{colour}">{_size(size)}</text>'
        + (f'<path d="M{end} {y} l7 -3 v6 z" fill="{colour}"/>' if lane == 0 else "")
    )


def _size(count: int) -> str:
    return f"{count} B" if count < 10_000 else f"{count / 1000:.0f} kB"
