"""Models as a folder: `model.npz` (numbers), `model.json` (words), and files that score rows elsewhere; no pickle.

A model is loaded from the first two files alone. Nothing in a folder is ever executed.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpadmm._version import __version__
from dpadmm.declare.penalties import is_matrix
from dpadmm.errors import CannotCertify, FileProblem, PromiseBroken
from dpadmm.estimators.linear import DPLinearRegression
from dpadmm.estimators.loading import FILES, FORMAT, checksum, read_model_folder
from dpadmm.estimators.scoring_rule import linear_score
from dpadmm.estimators.standard_errors import NOT_COMPUTED
from dpadmm.estimators.stored_graph import to_arrays
from dpadmm.files import usable_path, why, write_folder
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.sampling import Everything
from dpadmm.privacy.selection import SearchPlan, require_any_agreement, verify_any_plan
from dpadmm.scoring import SCORE_FILES, Input, score_files
from dpadmm.stored_json import parse, read_words


def save_model(model: Any, path: str | Path, force: bool = False, inputs: Sequence[Input] | None = None) -> Path:
    """Write a fitted model into folder `path`.

    The folder appears, or replaces an earlier one, as a whole, and is on the disk, flushed, when this returns. If it
    cannot be written, what was there before is there still. `model.json` names the checksums of the others, so that a
    statement is never read beside the weights of another model.

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
    folder = usable_path(path, "a model")
    try:
        _require_room(folder, force)
    except OSError as problem:
        raise FileProblem(
            f"the folder {folder}, which cannot be looked into ({why(problem)})",
            "a folder that can be read and written",
            "choose another folder",
        ) from None
    files = model_files(model, inputs)
    try:
        write_folder(folder, files, force)
    except OSError as problem:
        raise FileProblem(
            f"the folder {folder}, which cannot be written ({why(problem)})",
            "a folder on a disk that can be written and has space",
            "save again, in another folder or when this one can be written: the model is unchanged in memory, and what "
            "was in the folder before is there still",
        ) from None
    return folder


def model_files(model: Any, inputs: Sequence[Input] | None = None) -> dict[str, bytes]:
    """What the files of a fitted model hold, by name."""
    arrays = {"weights": model.weights_, "coef": model.coef_, "intercept": np.asarray(model.intercept_)}
    if hasattr(model, "classes_"):
        arrays["classes"] = _plain(model.classes_)
    if is_matrix(model.graph):
        arrays |= to_arrays(model.graph)
    if (replays := model.noise_replays) is not None:
        arrays["spread_weights"] = replays.weights.astype(np.float32)
        arrays["spread_margins"] = replays.margins.astype(np.float32)
    numbers = _npz(arrays)
    texts = {name: text.encode() for name, text in score_files(linear_score(model, inputs)).items()}
    checksums = {name: hashlib.sha256(text).hexdigest() for name, text in texts.items()}
    description = {
        **_description(model),
        "numbers_sha256": hashlib.sha256(numbers).hexdigest(),
        "score_files": checksums,
    }
    description = json.loads(json.dumps(description, default=_plain_number))
    words = json.dumps({**description, "checksum": checksum(description)}, indent=2).encode()
    return {"model.npz": numbers, "model.json": words, **texts}


def load_model(path: str | Path) -> Any:
    """Read a model written by `save_model`; whatever else the folder holds is refused with a `FileProblem`.

    A statement that says other things than its plan is refused, and so is a plan that contradicts itself. Where every
    query reads all rows, which is certified in a moment, the accountant is run again: no smaller ε than the queries
    cost is loaded. For other plans that is done by `dpadmm statement` and `dpadmm audit`.
    """
    folder = usable_path(path, "a model")
    model = read_model_folder(folder)
    statement, plan = model.privacy_, model.plan_
    if statement.plan_digest != plan.digest:
        raise _untrue(folder, "whose privacy statement speaks of another plan")
    try:
        verify_any_plan(plan) if _reads_all_rows(plan) else require_any_agreement(plan)
        wrong = statement.contradictions(plan)
    except (PromiseBroken, CannotCertify) as problem:
        raise _untrue(folder, f"whose plan does not hold ({problem})") from None
    if wrong:
        raise _untrue(folder, f"whose privacy statement speaks of another plan (they differ in {', '.join(wrong)})")
    return model


def _reads_all_rows(plan: Plan | SearchPlan) -> bool:
    return all(type(query.sampler) is Everything for query in plan.queries)


def _untrue(folder: Path, how: str) -> FileProblem:
    return FileProblem(
        f"{folder}, {how}",
        "a statement and a plan as they were certified and written together",
        "train the model again, and do not edit its files",
    )


def changed_score_files(folder: Path) -> list[str]:
    """Files for scoring elsewhere that are not as they were written with the model; absent ones are no matter."""
    written = parse(read_words(folder / "model.json"), f"{folder}/model.json").get("score_files", {})
    found = {name: folder / name for name in SCORE_FILES if (folder / name).exists()}
    return [name for name, path in found.items() if hashlib.sha256(read_words(path)).hexdigest() != written.get(name)]


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
    if maps := getattr(model, "maps_before_", ()):
        description["maps_before"] = list(maps)
    if isinstance(model, DPLinearRegression):
        description["target_range"] = list(model.target_range_)
    if hasattr(model, "graph_"):
        description["graph"] = model.graph_
    if not model.noise_was_replayed:
        description["no_standard_errors"] = model.why_no_noise or NOT_COMPUTED
    return description


def _worded(model: Any) -> dict[str, Any]:
    """The parameters, but for a graph whose matrix is among the numbers."""
    parameters: dict[str, Any] = model.get_params(deep=False)
    return {**parameters, "graph": None} if is_matrix(model.graph) else parameters


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
    if isinstance(value, np.floating):  # one of more than double precision is no float of Python by itself
        return float(value)
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be stored")


def _plain(labels: Any) -> Any:
    """Text labels as a fixed-width array: object arrays would need pickle."""
    labels = np.asarray(labels)
    return labels.astype(str) if labels.dtype.kind == "O" else labels
