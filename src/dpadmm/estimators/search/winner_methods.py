"""What a fitted search does as its winner does: predict, score, save."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted


def _winner_has(name: str) -> Any:
    return available_if(lambda search: hasattr(getattr(search, "best_estimator_", search.estimator), name))


class SpeaksForItsWinner:
    """Of a search with `estimator` and, once fitted, `best_estimator_`."""

    best_estimator_: Any

    @_winner_has("predict")  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> NDArray[Any]:
        """Of the winner."""
        return np.asarray(self._winner().predict(X))

    @_winner_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Of the winner."""
        return np.asarray(self._winner().predict_proba(X))

    @_winner_has("predict_log_proba")  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Of the winner."""
        return np.asarray(self._winner().predict_log_proba(X))

    @_winner_has("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Of the winner."""
        return np.asarray(self._winner().decision_function(X))

    def score(self, X: Any, y: Any) -> float:
        """Of the winner, on rows whose score may be released."""
        return float(self._winner().score(X, y))

    def save(self, path: str | Path, force: bool = False) -> Path:
        """Write the winner with the statement of the search. See `dpadmm.load_model`."""
        return Path(self._winner().save(path, force))

    def _winner(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_
