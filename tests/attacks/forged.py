"""Content that no library writes: values for any place, and changes to words, bytes and archives."""

from __future__ import annotations

import copy
import json
import math
import random
from typing import Any

DEEP: Any = None
for _ in range(400):
    DEEP = [DEEP]

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 2**31, 2**53, 2**53 + 1, 2**63, 10**400, -(10**400),
    0.0, -0.0, 0.5, 1.0, -1.5, 1e-320, 1e-19, 1e300, math.inf, -math.inf, math.nan,
    "", "x", "1", "NaN", "\x00", "\ud800", "x" * 10_000, [], [1], [[]], {}, {"name": "full"}, {"name": []}, DEEP,
)  # fmt: skip

DEEPEST = 40
REPEATED = b'{"format": 1, "format": 1}'


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path into nested dictionaries and lists, as far as this attack itself dares to go."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, each in inside if len(at) < DEEPEST for place in places(each, (*at, key)))]


def changed(content: dict[str, Any], rng: random.Random) -> Any:
    """A copy with one to three entries replaced, removed, added, nudged or moved."""
    found = copy.deepcopy(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        place = rng.choice(places(found))
        if not place:
            continue
        holder: Any = found
        for key in place[:-1]:
            holder = holder[key]
        _change(holder, place[-1], rng)
    return found


def _change(holder: Any, key: Any, rng: random.Random) -> None:
    how, old = rng.randrange(6), holder[key]
    if how == 0:
        del holder[key]
    elif how == 1 and isinstance(holder, dict):
        holder[rng.choice(("more", "", "name", "shape"))] = rng.choice(VALUES)
    elif how == 2 and isinstance(old, (int, float)) and abs(old) < 1e300:
        holder[key] = rng.choice((-old, old + 1, old * 2, old / 2, old * 1e9, old * (1 + 1e-6), int(old)))
    elif how == 3 and isinstance(holder, dict):
        holder[key] = rng.choice(list(holder.values()))
    else:
        holder[key] = rng.choice(VALUES)


def words(content: Any) -> bytes:
    """JSON, with what Python alone would read in it, too."""
    return json.dumps(content).encode()


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Bytes flipped, cut out, repeated or put in."""
    found = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(found) or 1)
        how, length = rng.randrange(5), rng.choice((1, 2, 16, 200))
        if how == 0 and found:
            found[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            del found[at : at + length]
        elif how == 2:
            found[at:at] = found[at : at + length]
        elif how == 3:
            found[at:at] = rng.choice((b"\xff", b"\x00", b"[" * 50, b"9" * 400, b"NaN", b'"', b"{", b"-"))
        else:
            del found[at:]
    return bytes(found)
