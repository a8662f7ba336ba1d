"""The first look at parameters, before anything is done with one: each is the kind of thing its name says.

The place that uses a parameter checks its value. Here only the type is checked, so that such a place never meets a
table instead of a number, a number too large for double precision, or a set instead of a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpadmm.errors import InvalidParameter, shown
from dpadmm.stored_json import LARGEST_WHOLE

TEXTS = {"relation", "penalty", "solver", "sampler", "accountant", "arithmetic", "invalid_rows"} | {
    "dataset",
    "loss",
    "trials",
    "scoring",
}
NUMBERS = {"epsilon", "delta", "alpha", "l1_ratio", "row_norm", "clip_norm", "mean_trials", "shape"} | {
    "validation",
    "score_bound",
    "share",
    "strictness",
}
COUNTS = {"steps", "batch_size", "n_rows", "n_candidates", "max_edges"}
FLAGS = {"fit_intercept", "centred", "weighted", "verbose"}
LONGEST = 1000


def require_plain(parameters: Mapping[str, Any]) -> None:
    """Refuse parameters that are not even of the kind their names say."""
    for name, value in parameters.items():
        if name in TEXTS and not (value is None or (isinstance(value, str) and len(value) <= LONGEST)):
            raise InvalidParameter(f"{name}={shown(value)}", "a short text", f"pass {name} as a string")
        if name in NUMBERS and not _is_one_number(value):
            raise InvalidParameter(f"{name}={shown(value)}", "one number", f"choose another {name}")
        if name in COUNTS and not (_is_one_number(value) and _is_sensible(value)):
            raise InvalidParameter(f"{name}={shown(value)}", "a whole number below 2**53", f"choose a smaller {name}")
        if name in FLAGS and not isinstance(value, (bool, int, np.bool_, np.integer)):
            raise InvalidParameter(f"{name}={shown(value)}", "True or False", "pass one of these")
    if isinstance(parameters.get("ledger"), str) and "\0" in parameters["ledger"]:
        raise InvalidParameter("a ledger at a place with a null character", "a path", "correct the path")
    options = parameters.get("solver_options")
    if not (options is None or isinstance(options, Mapping)) or not all(isinstance(key, str) for key in options or ()):
        raise InvalidParameter(
            f"solver_options of type {type(options).__name__}",
            "None, or a dictionary from names of options to values",
            "pass a dictionary, such as {'step_size': 0.5}",
        )
    require_plain_options(options or {})


def require_plain_options(options: Mapping[str, Any]) -> None:
    """Options of a solver are names, flags, or numbers within the floating-point range."""
    for name, value in options.items():
        plain = value is None or isinstance(value, (str, bool, int, float, np.generic))
        if name not in ("smoother", "rules") and not (plain and _is_one_number(value)):
            raise InvalidParameter(f"solver_options[{name!r}]={shown(value)}", "one number or name", "correct it")


def _is_one_number(value: Any) -> bool:
    """Whether it is nothing larger than a number: what is none at all is refused where it is used, in better words."""
    if isinstance(value, np.ndarray) or (hasattr(value, "shape") and getattr(value, "shape", ()) != ()):
        return False
    if isinstance(value, (list, tuple, set, frozenset, dict, range, complex, bytes, type)) or callable(value):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    except (TypeError, ValueError):
        return not isinstance(value, str) or len(value) <= LONGEST
    return True


def _is_sensible(value: Any) -> bool:
    return not isinstance(value, (int, np.integer)) or abs(int(value)) <= LARGEST_WHOLE
