"""A fitted model as a rule for raw rows, for the files that score rows without this library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpadmm.scoring import Input, LinearScore, Promise
from dpadmm.scoring.raw_inputs import plain_inputs


def linear_score(model: Any, inputs: Sequence[Input] | None = None) -> LinearScore:
    """The rule by which a model predicts.

    Parameters
    ----------
    model : estimator
        Fitted.
    inputs : sequence of Input, optional
        Raw columns that were encoded before the model saw them, which then declares no bounds of its own. Without them
        each feature is a column of numbers, under its name if it has one, else x0, x1, ….
    """
    rowmap, statement = model.row_map_, model.privacy_
    assert inputs is None or rowmap.lower is None, "encoded columns have no bounds besides those of their schema"
    if inputs is None:
        names = getattr(model, "feature_names_in_", [f"x{i}" for i in range(model.n_features_in_)])
        inputs = plain_inputs([str(name) for name in names], rowmap.lower, rowmap.upper)
    digest, seeded = statement.plan_digest, bool(statement.seeded)
    return LinearScore(
        inputs,
        np.asarray(model.weights_, dtype=float).reshape(len(model.weights_), -1),
        float(rowmap.row_norm),
        bool(rowmap.intercept),
        _labels(model.classes_) if hasattr(model, "classes_") else None,
        getattr(model, "target_range_", None),
        Promise(float(statement.epsilon), float(statement.delta), statement.relation, seeded, digest),
    )


def _labels(classes: Any) -> list[Any]:
    """As a loaded model has them: labels of type object are stored as text."""
    labels = np.asarray(classes)
    kept: list[Any] = (labels.astype(str) if labels.dtype.kind == "O" else labels).tolist()
    return kept
