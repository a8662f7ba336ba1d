"""Models as a folder: `model.npz` (numbers), `model.json` (words), and files that score rows elsewhere; no pickle.

A model is loaded from the first two alone: nothing of a folder is ever executed.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from dpadmm._version import __version__
from dpadmm.errors import FileProblem
from dpadmm.estimators.elsewhere import linear_score
from dpadmm.estimators.linear import DPLinearRegression, DPLinearSVC, DPLogisticRegression
from dpadmm.estimators.stored_graph import from_arrays, is_matrix, to_arrays
from dpadmm.estimators.uncertainty import NOT_COMPUTED, why_unknown
from dpadmm.files import replacing
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.selection import SearchPlan, plan_from_dict
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.problem.rowmap import RowMap
from dpadmm.scoring import SCORE_FILES, Input, score_files
from dpadmm.solvers.auto.spread.replay import Spread

FORMAT = 1
FILES = ("model.npz", "model.json", *SCORE_FILES)
MODELS: dict[str, type[Any]] = {
    model.__name__: model for model in (DPLogisticRegression, DPLinearSVC, DPLinearRegression)
}


def save_model(model: Any, path: str | Path, force: bool = False, inputs: Sequence[Input] | None = None) -> Path:
    """Write a fitted model into folder `path`.

    Each file is complete or absent, and `model.json` names the checksums of the others, so that a statement is never
    read beside the weights of another model.

    Parameters
    ----------
    model : estimator
        Fitted.
    path : str or Path
        A new or empty folder.
    force : bool
        Replace an earlier model. A folder that holds other files, such as a report, is refused all the same: they would
        speak of the model that was there.
    inputs : sequence of Input, optional
        Raw columns that became the features, for the files that score raw rows; without them a feature is a column.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    folder = Path(path)
    _require_room(folder, force)
    arrays = {"weights": model.weights_, "coef": model.coef_, "intercept": np.asarray(model.intercept_)}
    if hasattr(model, "classes_"):
        arrays["classes"] = _plain(model.classes_)
    if is_matrix(model.graph):
        arrays |= to_arrays(model.graph)
    if model._spread is not None:
        arrays["spread_weights"] = model._spread.weights.astype(np.float32)
        arrays["spread_margins"] = model._spread.margins.astype(np.float32)
    numbers = _npz(arrays)
    texts = {name: text.encode() for name, text in score_files(linear_score(model, inputs)).items()}
    checksums = {name: hashlib.sha256(text).hexdigest() for name, text in texts.items()}
    description = {
        **_description(model),
        "numbers_sha256": hashlib.sha256(numbers).hexdigest(),
        "score_files": checksums,
    }
    description = json.loads(json.dumps(description, default=_plain_number))
    words = json.dumps({**description, "checksum": _checksum(description)}, indent=2).encode()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in set(SCORE_FILES) - set(texts):
            (folder / name).unlink(missing_ok=True)  # of the model that was there
        for name, content in {"model.npz": numbers, "model.json": words, **texts}.items():
            with replacing(folder / name) as stream:
                stream.write(content)
    except OSError as problem:
        raise FileProblem(
            f"the folder {folder}, which cannot be written ({type(problem).__name__})",
            "a writable folder",
            "choose another folder or fix its permissions",
        ) from None
    return folder


def load_model(path: str | Path) -> Any:
    """Read a model written by `save_model`; one whose statement does not speak of its plan is refused."""
    folder = Path(path)
    model = _load(folder)
    if not _speaks_of(model.privacy_, model.plan_):
        raise FileProblem(
            f"{folder}, whose privacy statement speaks of another plan",
            "a statement and a plan written together",
            "train the model again, and do not edit its files",
        )
    return model


def changed_score_files(folder: Path) -> list[str]:
    """Files for scoring elsewhere that are not as they were written with the model; absent ones are no matter."""
    written = json.loads((folder / "model.json").read_text()).get("score_files", {})
    found = {name: folder / name for name in SCORE_FILES if (folder / name).exists()}
    return [name for name, path in found.items() if hashlib.sha256(path.read_bytes()).hexdigest() != written.get(name)]


def _require_room(folder: Path, force: bool) -> None:
    held = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
    if held and not force:
        raise FileProblem(
            f"the folder {folder}, which is not empty",
            "a new or empty folder",
            "choose another name, or pass force=True to replace the model in it",
        )
    if not held <= set(FILES):
        raise FileProblem(
            f"the folder {folder}, which holds other files than a saved model",
            "a new folder, or one that holds nothing but a model: a report would speak of the model that was there",
            "choose another name",
        )


def _load(folder: Path) -> Any:
    try:
        words = json.loads((folder / "model.json").read_text())
        if words["format"] != FORMAT or words.pop("checksum") != _checksum(words):
            raise ValueError("the description was changed after it was written")
        content = (folder / "model.npz").read_bytes()
        if hashlib.sha256(content).hexdigest() != words["numbers_sha256"]:
            raise ValueError("the two files do not belong together")
        with np.load(io.BytesIO(content), allow_pickle=False) as numbers:
            return _rebuild(words, dict(numbers))
    except FileNotFoundError:
        raise FileProblem(
            f"{folder}, which holds no model",
            "a folder with model.npz and model.json",
            "pass the folder of a saved model",
        ) from None
    except NotADirectoryError:
        raise FileProblem(
            f"{folder}, which is a file", "the folder of a saved model", "pass the folder that holds model.json"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, EOFError, AttributeError, BadZipFile):
        raise FileProblem(
            f"{folder}, whose model files are corrupt or of another version",
            f"files written by dpadmm (format {FORMAT})",
            "train and save the model again",
        ) from None


def _description(model: Any) -> dict[str, Any]:
    rowmap = model.row_map_
    description = {
        "format": FORMAT,
        "library_version": __version__,
        "model": type(model).__name__,
        "parameters": {
            name: value
            for name, value in _worded(model).items()
            # A seed would give the noise away, the address of a ledger may hold a password, and JSON keeps no labels.
            if name not in ("random_state", "ledger", "class_weight") and _storable(value)
        },
        "row_map": {
            "row_norm": rowmap.row_norm,
            "intercept": rowmap.intercept,
            "lower": rowmap.lower,
            "upper": rowmap.upper,
        },
        "n_iter": model.n_iter_,
        "n_features": model.n_features_in_,
        "feature_names": list(getattr(model, "feature_names_in_", [])) or None,
        "plan": model.plan_.to_dict(),
        "privacy": model.privacy_.to_dict(),
    }
    if isinstance(model, DPLinearRegression):
        description["target_range"] = list(model.target_range_)
    if hasattr(model, "graph_"):
        description["graph"] = model.graph_
    if not model.noise_was_replayed:
        description["no_standard_errors"] = why_unknown(model) or NOT_COMPUTED
    return description


def _worded(model: Any) -> dict[str, Any]:
    """The parameters, but for a graph whose matrix is among the numbers."""
    parameters: dict[str, Any] = model.get_params(deep=False)
    return {**parameters, "graph": None} if is_matrix(model.graph) else parameters


def _rebuild(words: dict[str, Any], numbers: dict[str, Any]) -> Any:
    kind = MODELS[words["model"]]
    model = kind(**words["parameters"])
    model.graph = from_arrays(numbers, model.graph)
    fields = words["row_map"]
    model.row_map_ = RowMap(
        float(fields["row_norm"]),
        bool(fields["intercept"]),
        None if fields["lower"] is None else tuple(fields["lower"]),
        None if fields["upper"] is None else tuple(fields["upper"]),
    )
    model.weights_ = numbers["weights"]
    model.coef_ = numbers["coef"]
    model.intercept_ = numbers["intercept"] if numbers["intercept"].ndim else float(numbers["intercept"])
    if "classes" in numbers:
        model.classes_ = numbers["classes"]
    if "target_range" in words:
        model.target_range_ = tuple(words["target_range"])
    if "graph" in words:
        model.graph_ = [(int(i), int(j), float(weight)) for i, j, weight in words["graph"]]
    model.n_iter_ = int(words["n_iter"])
    model.n_features_in_ = int(words["n_features"])
    if words["feature_names"]:
        model.feature_names_in_ = np.asarray(words["feature_names"], dtype=object)
    if model.weights_.shape[0] != model.n_features_in_ + int(model.row_map_.intercept):
        raise ValueError("the two files do not belong together")
    model._forget_noise(str(words.get("no_standard_errors", NOT_COMPUTED)))
    if "spread_weights" in numbers:
        model._spread = _spread(numbers["spread_weights"], numbers["spread_margins"], model.weights_.shape)
    model.plan_ = plan_from_dict(words["plan"])
    model.privacy_ = PrivacyStatement.from_dict(words["privacy"])
    return model


def _spread(weights: Any, margins: Any, shape: tuple[int, ...]) -> Spread:
    if weights.shape[1:] != shape or margins.shape[1:] != shape or not len(weights) or not len(margins):
        raise ValueError("standard errors of another model")
    return Spread(weights.astype(np.float64), margins.astype(np.float64))


def _speaks_of(statement: PrivacyStatement, plan: Plan | SearchPlan) -> bool:
    promised = (statement.epsilon, statement.delta, statement.relation, statement.epsilon_achieved)
    planned = (plan.budget.epsilon, plan.budget.delta, str(plan.budget.relation), plan.epsilon_achieved)
    return statement.plan_digest == plan.digest and promised == planned


def _checksum(description: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()


def _storable(value: Any) -> bool:
    """Whether a parameter can be written as JSON; smoothers and private steps are left out."""
    try:
        json.dumps(value, default=_plain_number)
    except (TypeError, ValueError):
        return False
    return True


def _npz(arrays: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def _plain_number(value: Any) -> Any:
    """NumPy scalars, which users pass as parameters, as JSON knows them."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be stored")


def _plain(labels: Any) -> Any:
    """Text labels as a fixed-width array: object arrays would need pickle."""
    labels = np.asarray(labels)
    return labels.astype(str) if labels.dtype.kind == "O" else labels
