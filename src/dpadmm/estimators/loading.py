"""From the words and numbers of a model file to a model: every entry is looked at before it becomes part of one."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import FileProblem
from dpadmm.estimators.linear import DPLinearRegression, DPLinearSVC, DPLogisticRegression
from dpadmm.estimators.standard_errors import NOT_COMPUTED
from dpadmm.estimators.stored_graph import from_arrays
from dpadmm.estimators.stored_numbers import MOST_NUMBERS, read_numbers
from dpadmm.privacy.selection import plan_from_dict
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.problem.rowmap import RowMap
from dpadmm.scoring import SCORE_FILES
from dpadmm.solvers.auto.noise_spread.replay import Spread
from dpadmm.stored_json import (
    entries,
    exactly,
    flag,
    listed,
    parse,
    read_words,
    reading,
    real,
    text,
    texts,
    unreadable,
    whole,
)

FORMAT = 1
FILES = ("model.npz", "model.json", *SCORE_FILES)
MODELS: dict[str, type[Any]] = {
    model.__name__: model for model in (DPLogisticRegression, DPLinearSVC, DPLinearRegression)
}
NEEDED = ("format", "library_version", "model", "parameters", "row_map", "n_iter", "n_features", "feature_names")
PROMISED = ("plan", "privacy", "numbers_sha256", "checksum")
POSSIBLE = ("maps_before", "target_range", "graph", "no_standard_errors", "score_files")

Numbers = dict[str, NDArray[Any]]


def read_model_folder(folder: Path) -> Any:
    """The model in a folder; `FileProblem` for whatever `save_model` would not have written."""
    try:
        with reading("a model"):
            words = parse(read_words(folder / "model.json"), "the description of a model")
            return _rebuilt(words, read_words(folder / "model.npz", MOST_NUMBERS))
    except (FileNotFoundError, NotADirectoryError):
        raise _no_model(folder) from None
    except FileProblem as problem:
        raise _corrupt(folder, problem.given) from None
    except OSError as problem:
        raise _corrupt(folder, type(problem).__name__) from None


def checksum(description: dict[str, Any]) -> str:
    """Of the words of a model, its checksum aside."""
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()


def _no_model(folder: Path) -> FileProblem:
    if folder.is_file():
        return FileProblem(
            f"{folder}, which is a file", "the folder of a saved model", "pass the folder that holds model.json"
        )
    return FileProblem(
        f"{folder}, which holds no model",
        "a folder with model.npz and model.json",
        "pass the folder of a saved model",
    )


def _corrupt(folder: Path, why: str) -> FileProblem:
    return FileProblem(
        f"{folder}, whose model files are corrupt or of another version ({why})",
        f"files written by dpadmm (format {FORMAT})",
        "train and save the model again",
    )


def _rebuilt(words: dict[str, Any], content: bytes) -> Any:
    exactly(words, "the description of a model", (*NEEDED, *PROMISED), POSSIBLE)
    stated = words.pop("checksum")
    if words["format"] != FORMAT or stated != checksum(words):
        raise unreadable("a model", "of another version, or whose description was changed after it was written")
    if hashlib.sha256(content).hexdigest() != words["numbers_sha256"]:
        raise unreadable("a model", "whose two files do not belong together")
    exactly(words.get("score_files", {}), "the checksums of score files", (), SCORE_FILES)
    numbers = read_numbers(content)
    model = MODELS[words["model"]](**entries(words["parameters"], "the parameters of a model"))
    _set_sizes(model, words, numbers)
    _set_numbers(model, words, numbers)
    model.plan_, model.privacy_ = plan_from_dict(words["plan"]), PrivacyStatement.from_dict(words["privacy"])
    return model


def _set_sizes(model: Any, words: dict[str, Any], numbers: Numbers) -> None:
    """What is known of features and steps, which the weights must fit."""
    model.n_iter_ = whole(words["n_iter"], "the steps of a model", least=0)
    model.n_features_in_ = n_features = whole(words["n_features"], "the features of a model")
    row_map = exactly(words["row_map"], "a row map", ("row_norm", "intercept", "lower", "upper"))
    intercept = flag(row_map["intercept"], "the intercept of a row map")
    weights = numbers["weights"]
    if weights.ndim not in (1, 2) or weights.shape[0] != n_features + intercept:
        raise unreadable("a model", "whose weights are not one for each feature")
    limits = [row_map[name] for name in ("lower", "upper")]
    bounds = None if limits == [None, None] else tuple(_numbers(limit, "the bounds of a model") for limit in limits)
    model.row_map_ = RowMap.declare(real(row_map["row_norm"], "a row norm"), intercept, bounds, n_features)
    model.maps_before_ = tuple(texts(words.get("maps_before", []), "the maps before a model"))
    if words["feature_names"]:
        names = texts(words["feature_names"], "the feature names of a model")
        if len(names) != n_features:
            raise unreadable("a model", "without a name for each feature")
        model.feature_names_in_ = np.asarray(names, dtype=object)


def _set_numbers(model: Any, words: dict[str, Any], numbers: Numbers) -> None:
    model.weights_, model.coef_ = numbers["weights"], numbers["coef"]
    intercept = numbers["intercept"]
    model.intercept_ = intercept if intercept.ndim else float(intercept)
    outputs = model.weights_[0].size
    single = isinstance(model, DPLinearRegression)
    shape = (model.n_features_in_,) if single else (outputs, model.n_features_in_)
    if model.coef_.shape != shape or intercept.shape != (() if single else (outputs,)) or (single and outputs != 1):
        raise unreadable("a model", "whose coefficients do not have the shape of its weights")
    if not single:
        model.classes_ = numbers["classes"]
        if model.classes_.shape != ((2,) if outputs == 1 else (outputs,)):
            raise unreadable("a model", "without a class for each score")
    else:
        lower, upper = _numbers(words["target_range"], "a target range")
        model.target_range_ = lower, upper
    model.graph = from_arrays(numbers, model.graph, model.n_features_in_)
    if "graph" in words:
        model.graph_ = [_edge(edge, model.n_features_in_) for edge in listed(words["graph"], "a graph")]
    model.forget_noise(text(words.get("no_standard_errors", NOT_COMPUTED), "why there are no standard errors"))
    if "spread_weights" in numbers:
        model.keep_replays(_spread(numbers["spread_weights"], numbers["spread_margins"], model.weights_.shape))


def _numbers(value: Any, what: str) -> tuple[float, ...]:
    return tuple(real(each, what) for each in listed(value, what))


def _edge(edge: Any, n_features: int) -> tuple[int, int, float]:
    first, second, weight = listed(edge, "an edge")
    i, j = whole(first, "an end of an edge", least=0), whole(second, "an end of an edge", least=0)
    if not max(i, j) < n_features:
        raise unreadable("an edge", "that ends at no feature")
    return i, j, real(weight, "the weight of an edge")


def _spread(weights: NDArray[Any], margins: NDArray[Any], shape: tuple[int, ...]) -> Spread:
    if weights.shape[1:] != shape or margins.shape[1:] != shape or not len(weights) or not len(margins):
        raise unreadable("a model", "with standard errors of another")
    return Spread(weights.astype(np.float64), margins.astype(np.float64))
