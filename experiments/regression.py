"""Private linear regression on simulated tables with public bounds: R² of `auto`, AdaSSP and full-admm on test rows.

AdaSSP perturbs the sufficient statistics (second moment, correlation) and adds a ridge chosen from the noise (Wang
2018); here it spends the whole budget as two Gaussian releases under replace-one.
Run `python -m experiments.regression`.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1, make_regression
from sklearn.linear_model import LinearRegression

from dpadmm import DPLinearRegression
from dpadmm.privacy.accountants.gaussian import gaussian_shift
from experiments.common import mean_and_error, print_table

EPSILONS = (0.1, 0.5, 1.0)
DELTA = 1e-6
Table = tuple[np.ndarray, np.ndarray, tuple[float, float]]


def tables() -> dict[str, Table]:
    """Rows within public bounds, targets within a public range."""
    rng = np.random.default_rng(0)
    X, y = make_regression(20_000, 30, n_informative=15, noise=20.0, random_state=0)
    plain = np.clip(X, -4, 4) / 4, y, (-600.0, 600.0)
    factors = rng.standard_normal((20_000, 5)) @ rng.standard_normal((5, 40)) + 0.3 * rng.standard_normal((20_000, 40))
    X = np.clip(factors, -8, 8) / 8
    y = X @ rng.standard_normal(40)
    correlated = X, y + 0.3 * y.std() * rng.standard_normal(len(y)), (-4.0, 4.0)
    X, y = load_diabetes(return_X_y=True)
    X = np.tile(np.clip(X, -0.2, 0.2) / 0.2, (20, 1)) + 0.02 * rng.standard_normal((20 * len(X), X.shape[1]))
    diabetes = X, np.tile(y, 20), (0.0, 350.0)
    X, y = make_friedman1(20_000, 12, noise=1.0, random_state=0)
    return {
        "plain": plain,
        "correlated": correlated,
        "diabetes, 20 jittered copies": diabetes,
        "friedman": (X, y, (0.0, 30.0)),
    }


def adassp(
    X: np.ndarray, y: np.ndarray, bounds: tuple[float, float], row_norm: float, epsilon: float, seed: int
) -> np.ndarray:
    """Weights for rows [x; 1] scaled to norm ≤ row_norm and targets scaled to [−1, 1]."""
    rng, n = np.random.default_rng(seed), len(X)
    rows = mapped(X, row_norm) / row_norm
    targets = np.clip((y - bounds[0]) * 2 / (bounds[1] - bounds[0]) - 1, -1, 1)
    share = gaussian_shift(epsilon, DELTA) / math.sqrt(2)
    moment_std, correlation_std = math.sqrt(2) / (n * share), 2 / (n * share)
    noise = rng.normal(0, moment_std, (rows.shape[1],) * 2)
    moment = rows.T @ rows / n + (noise + noise.T) / 2
    correlation = rows.T @ targets / n + rng.normal(0, correlation_std, rows.shape[1])
    ridge = max(0.0, moment_std * math.sqrt(2 * rows.shape[1]) - max(0.0, float(np.linalg.eigvalsh(moment)[0])))
    return np.linalg.solve(moment + ridge * np.eye(len(moment)), correlation) / row_norm


def mapped(X: np.ndarray, row_norm: float) -> np.ndarray:
    rows = np.hstack([X, np.ones((len(X), 1))])
    return rows * np.minimum(1, row_norm / np.linalg.norm(rows, axis=1, keepdims=True))


def r_squared(prediction: np.ndarray, y: np.ndarray) -> float:
    return float(1 - np.sum((prediction - y) ** 2) / np.sum((y - y.mean()) ** 2))


def scores(name: str, table: Table, method: str, epsilon: float, seeds: int) -> list[float]:
    X, y, bounds = table
    half, row_norm = len(y) // 2, 2.0
    found = []
    for seed in range(seeds):
        if method == "adassp":
            weights = adassp(X[:half], y[:half], bounds, row_norm, epsilon, seed)
            scaled = mapped(X[half:], row_norm) @ weights
            found.append(r_squared((scaled + 1) / 2 * (bounds[1] - bounds[0]) + bounds[0], y[half:]))
            continue
        penalty = {"ridge": "l2", "lasso": "l1"}.get(method, "none")
        model = DPLinearRegression(
            epsilon, DELTA, target_bounds=bounds, row_norm=row_norm, penalty=penalty, alpha=1e-4, random_state=seed,
            solver="full-admm" if method == "full-admm" else "auto",
        )  # fmt: skip
        found.append(float(model.fit(X[:half], y[:half]).score(X[half:], y[half:])))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    methods = ("auto", "ridge", "lasso", "adassp", "full-admm")
    for name, table in tables().items():
        X, y, _ = table
        half = len(y) // 2
        best = LinearRegression().fit(X[:half], y[:half]).score(X[half:], y[half:])
        rows = []
        for epsilon in EPSILONS:
            cells = [mean_and_error(scores(name, table, method, epsilon, options.seeds)) for method in methods]
            rows.append([str(epsilon), *(f"{mean:.4f} ± {error:.4f}" for mean, error in cells)])
        print_table(f"{name}: R² on test rows, without privacy {best:.4f}", ["ε", *methods], rows)


if __name__ == "__main__":
    main()
