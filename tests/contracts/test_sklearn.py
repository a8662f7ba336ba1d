"""scikit-learn's own checks, with the expected failures named and explained."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from dpadmm import DPLinearRegression, DPLinearSVC, DPLogisticRegression, DPSearchCV

MODELS = [
    model(random_state=seed) for model in (DPLogisticRegression, DPLinearSVC, DPLinearRegression) for seed in (None, 0)
]
CHEAP = DPLogisticRegression(delta=1e-4, penalty="l1", solver="dp-gd", steps=3, random_state=0)
MODELS.append(DPSearchCV(CHEAP, {"alpha": [1e-4, 1e-3]}, mean_trials=2.0))


NOISE = {"check_class_weight_classifiers": "asks for accuracy on a table so small that it is mostly noise"}


@parametrize_with_checks(MODELS, expected_failed_checks=lambda model: NOISE if hasattr(model, "class_weight") else {})
def test_sklearn_checks(estimator, check):
    check(estimator)
