"""What several fits on the same rows promise together: by the accountant, never by adding up ε."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from dpadmm.errors import InvalidParameter
from dpadmm.estimators.base import PrivateLinearModel
from dpadmm.estimators.pipelines import NOTHING_ELSE, learns_nothing
from dpadmm.estimators.search import DPSearchCV
from dpadmm.preparation.base import COSTS_IN_ADDITION, PrivateTransformer
from dpadmm.privacy.composition import compose_plans
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.plan_facts import facts_of, queries_of
from dpadmm.privacy.statement import PrivacyStatement

PRIVATE = (PrivateLinearModel, PrivateTransformer, DPSearchCV)
FIXED_IN_ADVANCE, ROW_BY_ROW = "fixed-in-advance", "functions-row-by-row"
"""Keys of assumptions; for the first see docs/proofs/ledger.md, "Spent is no promise"."""

ALWAYS = (NOTHING_ELSE, COSTS_IN_ADDITION)
"""True of every part, and of the total."""


def compose_statements(*parts: Any, delta: float | None = None) -> PrivacyStatement:
    """One statement for all private parts of a pipeline, or for several models of the same rows.

    Parameters
    ----------
    parts
        Fitted private models and transformers, or pipelines of them. Beside these a pipeline may hold "passthrough",
        `Scattering`, `GroupNorm`, `LaplacianBlur`, `FunctionTransformer`, `Normalizer` and `Binarizer`, which learn
        nothing from rows; whatever else is refused, and so is a search.
    delta : float, optional
        At which to state ε; by default the largest of the parts'.

    Formal guarantees
    -----------------
    The parts are an adaptive composition of their plans' events, certified by the exact Gaussian accountant if all of
    them read all rows at each query, by the iteration accountant if some make hidden passes, else by the privacy-loss
    accountant (docs/proofs/composition.md). Parts on different rows, or under different relations, have no common
    statement here. The statement lists two assumptions: each function maps a row by itself, and the plans of all parts
    were fixed in advance. Whoever decides what to fit next, or when to stop, after looking at a model needs the limit
    of a ledger.
    """
    leaves = list(itertools.chain.from_iterable(map(_leaves, parts)))
    fitted = [leaf for leaf in leaves if isinstance(leaf, PRIVATE)]
    if not fitted:
        raise InvalidParameter("nothing private", "fitted private models or transformers", "fit them first")
    plans = [_one_fit(part) for part in fitted]
    whole = compose_plans(plans, max(plan.budget.delta for plan in plans) if delta is None else delta)
    own = itertools.chain.from_iterable(
        part.privacy_.further_assumptions(plan) for part, plan in zip(fitted, plans, strict=True)
    )
    named = {FIXED_IN_ADVANCE, *ALWAYS}
    functions = (ROW_BY_ROW,) if any(type(leaf) is FunctionTransformer for leaf in leaves) else ()
    further = (FIXED_IN_ADVANCE, *(each for each in own if each.key not in named), *functions, *ALWAYS)
    seeded = any(part.privacy_.seeded for part in fitted)
    facts = facts_of(whole, "", further, seeded, subject="composition")
    return PrivacyStatement(
        replace(
            facts,
            solvers=tuple(itertools.chain.from_iterable(part.privacy_.solvers for part in fitted)),
            # Noise may be discrete in some parts and not in others.
            queries=tuple(itertools.chain.from_iterable(map(queries_of, plans))),
        )
    )


def _leaves(part: Any) -> Iterator[Any]:
    """The parts of a pipeline of pipelines, each known to be private or to learn nothing."""
    if type(part) is Pipeline:
        for _, step in part.steps:
            yield from _leaves(step)
        return
    if not (isinstance(part, PRIVATE) or learns_nothing(part)):
        _refuse(part)
    yield part


def _one_fit(part: Any) -> Plan:
    """The plan of a part that was fitted, and not found by a search, whose trials all count."""
    name = type(part).__name__
    if not (hasattr(part, "plan_") and hasattr(part, "privacy_")):
        raise InvalidParameter(f"{name}, not fitted", "fitted parts", "fit it first")
    if not isinstance(part.plan_, Plan):
        raise InvalidParameter(
            f"{name} with the plan of a private search (DPSearchCV)",
            "parts of one fit each",
            "state the search by itself, or charge all parts to a ledger, which adds them up",
        )
    return part.plan_


def _refuse(part: Any) -> None:
    if isinstance(part, (list, tuple)):
        raise InvalidParameter(f"a {type(part).__name__} of parts", "parts as arguments", "pass them one by one")
    name = repr(part) if isinstance(part, str) else type(part).__name__
    raise InvalidParameter(
        f"{name}, which may learn from rows without noise, or hide parts that do",
        "private models and transformers of this library, Scattering, GroupNorm, LaplacianBlur, FunctionTransformer, "
        "Normalizer, Binarizer, 'passthrough', and pipelines of these",
        "declare what it would learn, for instance bounds, and leave it out of the pipeline",
    )
