"""The general lasso of Chan, Xie & Zhao 2024 with hidden passes: coefficients in steps, only the last state released.

Prints how far three solvers end from the true coefficients at the same promise, and what each asked first of the rows.
Hiding states is dear here.
"""

import numpy as np

from dpadmm import DPLinearRegression

rng = np.random.default_rng(0)
truth = np.repeat([-0.3, 0.0, 0.3, 0.1], 5)
Z = rng.uniform(-1, 1, (4000, len(truth))) / np.sqrt(len(truth))
b = np.clip(Z @ truth + 0.05 * rng.standard_normal(len(Z)), -1, 1)

print(f"Distance from the true coefficients; that of zeros is {np.linalg.norm(truth):.3f}")
for solver in ("noisy-admm", "full-admm", "auto"):
    model = DPLinearRegression(
        epsilon=2.0,
        delta=1e-5,
        penalty="fused",
        alpha=1e-3,
        solver=solver,
        fit_intercept=False,
        target_bounds=(-1, 1),
    )
    model.fit(Z, b)
    print(f"{solver:10}  {np.linalg.norm(model.coef_ - truth):.3f}  {model.privacy_.mechanisms[0]}")
