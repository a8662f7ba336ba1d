"""How ε, δ, noise and bounds are printed: in few digits, and rounded to the side on which the sentence stays true.

Rounded up: ε, δ, spent budgets, and how far one row can move a sum. Rounded down: noise, what an audit found, and what
is left.

*Formal guarantees.* `rounded_up(x)` is the smallest decimal of so many digits that is no smaller than x, compared as
exact numbers. There is one exception: a float whose shortest decimal has no more digits, such as 0.1, prints as that
decimal, which may lie half a unit in the last place of a float below it (a relative 1.2·10⁻¹⁶). Read as a float it is x
itself; read exactly, the margins of the accountants (10⁻⁹ of δ or more) cover the difference. Rounding is monotone, so
that a certified ε that is at most the promised one never prints above it.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

DIGITS = 6

ALL_DIGITS = 17
"""As many as a float may need: it then prints as its shortest decimal, neither up nor down."""

SPENT = (
    "Spent ε is what these fits cost together if all of them were fixed in advance. Where later fits, or when to stop, "
    "were decided after looking at earlier models, only the limit is promised."
)
"""Beside every printed sum of a ledger."""


def rounded_up(value: float, digits: int = DIGITS) -> str:
    """A decimal of at most `digits` digits that is not below `value`.

    Examples
    --------
    >>> rounded_up(1.0), rounded_up(0.1), rounded_up(1e-5), rounded_up(1 / 3), rounded_up(0.1 + 0.2)
    ('1', '0.1', '1e-05', '0.333334', '0.300001')
    """
    return _decimal(value, digits, ROUND_CEILING)


def rounded_down(value: float, digits: int = DIGITS) -> str:
    """A decimal of at most `digits` digits that is not above `value`.

    Examples
    --------
    >>> rounded_down(2 / 3, 4), rounded_down(12.0)
    ('0.6666', '12')
    """
    return _decimal(value, digits, ROUND_FLOOR)


def pair(epsilon: float, delta: float) -> str:
    """ε and δ of a promise, as tables print them.

    Examples
    --------
    >>> pair(1.0, 1e-5)
    'ε = 1, δ = 1e-05'
    """
    return f"ε = {rounded_up(epsilon)}, δ = {rounded_up(delta)}"


def _decimal(value: float, digits: int, rounding: str) -> str:
    value = float(value)
    if not math.isfinite(value):
        return f"{value:g}"
    context = Context(prec=digits, rounding=rounding)
    shortest = Decimal(repr(value))
    if context.create_decimal(shortest) == shortest:
        return _as_general(context.normalize(shortest), digits)
    # The float itself and not its shortest decimal, which may lie on the other side of it.
    return _as_general(context.normalize(Decimal(value)), digits)


def _as_general(number: Decimal, digits: int) -> str:
    """As the format "g" writes a float."""
    power = number.adjusted() if number else 0
    if -5 < power < digits:
        return f"{number:f}"
    return f"{number.scaleb(-power, Context(prec=digits)):f}e{power:+03d}"
