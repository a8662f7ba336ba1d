"""Objective perturbation with diffprivlib, pure ε. Runs in .venv-diffprivlib, which holds an older scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np
from diffprivlib.models import LogisticRegression

from exchange import serve

warnings.simplefilter("ignore")


def train(X: np.ndarray, y: np.ndarray, epsilon: float, delta: float, seed: int) -> np.ndarray:
    """`delta` is accepted and not used: the mechanism is purely ε-private. More than two classes share ε evenly."""
    model = LogisticRegression(epsilon=epsilon, data_norm=1.0, fit_intercept=False, random_state=seed)
    model.fit(X.astype(np.float64), y)
    return model.coef_[0] if len(model.coef_) == 1 else model.coef_.T


if __name__ == "__main__":
    serve(train)
