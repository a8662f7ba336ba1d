"""The example of the README: a private sparse model, its accuracy and its privacy statement."""

from dpadmm import DPLogisticRegression
from dpadmm.datasets import make_demo

train, test = make_demo(random_state=0), make_demo(random_state=1)
model = DPLogisticRegression(epsilon=1.0, delta=1e-6, penalty="l1", alpha=1e-3, row_norm=10, classes=[-1, 1])
model.fit(train.X, train.y)
print(model.score(test.X, test.y))
print(model.privacy_)
model.save("demo-model", force=True)
