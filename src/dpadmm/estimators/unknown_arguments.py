"""Arguments that other libraries have and this one does not: refused with the name of what takes their place."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Collection
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from dpadmm.errors import UnknownParameter

Given = ParamSpec("Given")
Made = TypeVar("Made")
Self = TypeVar("Self")

INSTEAD = {
    "C": "use alpha, the strength of the penalty, with a penalty such as 'l2': alpha plays the role of 1 / (C · rows)",
    "max_iter": "use steps, the number of steps: each is paid for, so that it is fixed before training",
    "tol": "leave it out: the number of steps is fixed before training; set it by steps",
    "sample_weight": "use public_weight in fit, if the weights are public constants and not computed from private rows",
    **dict.fromkeys(
        ("groups", "ids", "persons", "person_ids", "user_ids"),
        "use person in fit, if these are the ids of the persons whose rows they are",
    ),
    "n_jobs": "leave it out: threads are chosen by at_most_threads or DPADMM_NUM_THREADS",
    "eps": "use epsilon",
    "data_norm": "use row_norm, the declared bound on the norm of a row",
    **dict.fromkeys(
        ("epsilon", "delta", "relation", "ledger", "dataset", "random_state"),
        "give it to the model, for instance DPLogisticRegression(epsilon=1.0, delta=1e-6)",
    ),
}
"""What to do instead, by the name other libraries use."""


def knows_its_names(
    function: Callable[Concatenate[Self, Given], Made],
) -> Callable[Concatenate[Self, Given], Made]:
    """Refuse an unknown argument with what to use instead; the signature stays as it is."""
    known = [name for name in inspect.signature(function).parameters if name != "self"]

    @wraps(function)
    def checked(self: Self, /, *given: Given.args, **named: Given.kwargs) -> Made:
        for name in named:
            if name not in known:
                raise unknown(name, known)
        return function(self, *given, **named)

    return checked


def unknown(name: str, known: Collection[str]) -> UnknownParameter:
    """The refusal of an argument that does not exist."""
    near = difflib.get_close_matches(name, known, n=1)
    guess = f"did you mean {near[0]}?" if near else "correct the name"
    return UnknownParameter(
        f"{name}=..., which is no argument here", "one of " + ", ".join(known), INSTEAD.get(name, guess)
    )
