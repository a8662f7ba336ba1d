"""Twenty owners on a ring train one model without showing a row; each promises ε = 1 about its own rows.

Prints the accuracy of what they agree on beside that of one owner alone, then what the first owner promises.
"""

import numpy as np

from dpadmm import DPLogisticRegression
from dpadmm.network.decentralised import deal, train_decentralised

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (20_000, 10)) / np.sqrt(10)
truth = np.linspace(-2, 2, 10)
y = np.where(X @ truth + 0.3 * rng.standard_normal(len(X)) > 0, "ill", "well")
X_new = rng.uniform(-1, 1, (10_000, 10)) / np.sqrt(10)
y_new = np.where(X_new @ truth > 0, "ill", "well")

owners = deal(X, y, 20)
model = train_decentralised(
    owners,
    epsilon=1.0,
    delta=1e-5,
    classes=["ill", "well"],
    graph="ring",
    algorithm="ipadmm",
    options={"rounds": 50, "local_steps": 5, "rho": 0.02},
)
alone = DPLogisticRegression(epsilon=1.0, delta=1e-5, classes=["ill", "well"], row_norm=1.0).fit(*owners[0])

print(f"together: {np.mean(model.predict(X_new) == y_new):.3f}   one owner alone: {alone.score(X_new, y_new):.3f}")
print(model.promises[0].text)
