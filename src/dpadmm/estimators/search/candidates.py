"""What may be tried: a finite public list of parameter settings, made before anything is known of the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dpadmm.declare.penalties import uses
from dpadmm.errors import InvalidParameter, shown

Candidate = dict[str, Any]

MOST = 10_000
FIXED = {
    "epsilon": "the budget is that of the whole search",
    "delta": "the budget is that of the whole search",
    "relation": "the promise is one",
    "n_rows": "the number of rows is one",
    "invalid_rows": "the table is checked once",
    "classes": "all candidates predict the same labels",
    "target_bounds": "all candidates predict on the same scale",
    "arithmetic": "the promise is one",
    "ledger": "the search is one charge",
    "dataset": "the search is one charge",
    "random_state": "a seed would make the trials repeatable",
    "verbose": "progress would tell the number of trials",
}
STRENGTHS = {"alpha": "l1", "l1_ratio": "elasticnet"}
"""Parameters that some penalties ignore, each with a penalty that does not."""


def make_candidates(space: Any, size: int, known: Iterable[str]) -> tuple[Candidate, ...]:
    """The list to draw from.

    Parameters
    ----------
    space : dict, or sequence of dicts
        Parameter names with lists of values, or with distributions (objects with `rvs`).
    size : int
        How many settings to draw beforehand where there are distributions; a grid is taken whole.
    known : iterable of str
        Parameters of the estimator.
    """
    from sklearn.model_selection import ParameterGrid, ParameterSampler

    spaces: Sequence[Any] = [space] if isinstance(space, Mapping) else space
    if not isinstance(spaces, Sequence) or not spaces or not all(isinstance(part, Mapping) and part for part in spaces):
        raise _unusable("param_space that is not a dictionary or a list of dictionaries, or an empty one")
    for name in (name for part in spaces for name in part):
        if name in FIXED:
            raise InvalidParameter(f"a search over {name!r}", f"other parameters: {FIXED[name]}", f"drop {name!r}")
        if name not in set(known):
            raise InvalidParameter(f"a search over {name!r}", "parameters of the estimator", "correct the name")
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MOST:
        raise InvalidParameter(f"n_candidates={shown(size)}", f"a whole number from 1 to {MOST}", "choose about 50")
    try:
        if any(hasattr(values, "rvs") for part in spaces for values in part.values()):
            # A public constant seeds the draw: the list is public, and the same for everyone who makes it.
            found = list(ParameterSampler(list(spaces), size, random_state=0))
        else:
            grid = ParameterGrid(list(spaces))
            found = list(grid) if len(grid) <= MOST else []
    except (TypeError, ValueError):
        raise _unusable("param_space with a value that is no list and no distribution") from None
    if not found:
        raise _unusable(f"param_space with no setting, or more than {MOST}")
    return tuple(found)


def require_used(candidates: Sequence[Candidate], penalty: Any) -> None:
    """Refuse a search over a strength of the penalty where no candidate has a penalty of that kind.

    Parameters
    ----------
    candidates : sequence of dict
        As `make_candidates` made them.
    penalty : str or None
        Of candidates that name none.
    """
    for name in STRENGTHS:
        trying = [one for one in candidates if name in one]
        tried = {repr(one[name]) for one in trying}
        if len(tried) > 1 and not any(uses(one.get("penalty", penalty), name) for one in trying):
            raise InvalidParameter(
                f"a search over {name!r}, which no candidate's penalty uses: it would be paid for and change nothing",
                f"a penalty that uses {name!r}, such as {STRENGTHS[name]!r}",
                f"set that penalty, search over penalties too, or drop {name!r}",
            )


def _unusable(given: str) -> InvalidParameter:
    return InvalidParameter(
        given, "{name: [values], …} or a list of such dictionaries", "list what may be tried, for instance alpha"
    )
