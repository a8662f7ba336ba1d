"""How good a model is on rows whose metrics may be published: accuracy, AUC, log-loss; R², mean absolute error."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def classification_metrics(
    y: NDArray[Any],
    classes: NDArray[Any],
    predicted: NDArray[Any],
    scores: NDArray[np.float64],
    probabilities: NDArray[np.float64] | None,
) -> dict[str, float | int | None]:
    """Metrics of a classifier.

    Parameters
    ----------
    y, predicted : (n,) ndarray
        True and predicted labels.
    classes : (K,) ndarray
        Declared classes, in the order of the scores.
    scores : (n,) or (n, K) ndarray
        Decision function.
    probabilities : (n, K) ndarray, optional
        Without them there is no log-loss.

    Returns
    -------
    dict
        `rows`, `accuracy`, `largest_class` (the accuracy of always answering the commonest class), `auc` (mean of
        one-against-rest for several classes; None if a class is absent) and `log_loss` (None without probabilities).

    Examples
    --------
    >>> y = np.array([0, 1, 1, 0])
    >>> classification_metrics(y, np.array([0, 1]), y, np.array([-1.0, 2.0, 1.0, -3.0]), None)["auc"]
    1.0
    """
    of_class = y[:, None] == classes[None, :]
    return {
        "rows": len(y),
        "accuracy": float(np.mean(predicted == y)),
        "largest_class": float(of_class.mean(axis=0).max()),
        "auc": _auc(of_class, scores if scores.ndim == 1 or probabilities is None else probabilities),
        "log_loss": None if probabilities is None else _log_loss(of_class, probabilities),
    }


def regression_metrics(y: NDArray[np.float64], predicted: NDArray[np.float64]) -> dict[str, float | int | None]:
    """`rows`, `r2` (None for a constant target) and `mean_absolute_error`."""
    spread = float(np.sum((y - y.mean()) ** 2))
    residual = float(np.sum((y - predicted) ** 2))
    return {
        "rows": len(y),
        "r2": 1 - residual / spread if spread > 0 else None,
        "mean_absolute_error": float(np.mean(np.abs(y - predicted))),
    }


def _auc(of_class: NDArray[np.bool_], scores: NDArray[np.float64]) -> float | None:
    from sklearn.metrics import roc_auc_score

    present = of_class.any(axis=0)
    if not present.all():
        return None
    if scores.ndim == 1:
        return float(roc_auc_score(of_class[:, 1], scores))
    each = [roc_auc_score(of_class[:, k], scores[:, k]) for k in range(scores.shape[1])]
    return float(np.mean(each))


def _log_loss(of_class: NDArray[np.bool_], probabilities: NDArray[np.float64]) -> float:
    own = np.sum(np.where(of_class, probabilities, 0.0), axis=1)
    return float(-np.mean(np.log(np.maximum(own, np.finfo(float).tiny))))
