"""Fit a model with every answer replaced by data-independent noise, and write down all that an outsider could see.

If two tables with the same public description then differ in anything written down, some data left the oracle by
another way than `release` and `release_state`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import warnings
from typing import Any
from unittest import mock

import numpy as np
from scipy import sparse

from dpadmm.oracles.base import PrivateOracle
from dpadmm.rows.lattice_sum import LatticeSum
from dpadmm.solvers.base import SOLVERS


class Stub:
    """Stands for `PrivateOracle.release`: counts like it, and returns numbers that no data entered."""

    def __init__(self, seed=0, scale=0.3):
        self._rng, self._scale = np.random.default_rng(seed), scale
        self.queries = []

    def release(self, oracle, query, clip_norm, total):
        oracle._count(query)
        # The lattice of an exact sum is public, so it must be the same for every table.
        kind = total.units.tobytes() if isinstance(total, LatticeSum) else str(total.dtype)
        self.queries.append(("released", query.kind, clip_norm, total.shape, kind))
        return self._scale * self._rng.standard_normal(total.shape) + 0.01

    def release_state(self, oracle, query, state):
        """Stands for `PrivateOracle.release_state`."""
        self.queries.append(("released", query.kind, *((block.shape, str(block.dtype)) for block in state)))
        return tuple(self._scale * self._rng.standard_normal(block.shape) + 0.01 for block in state)

    @contextlib.contextmanager
    def installed(self):
        gradient, difference = PrivateOracle.gradient, PrivateOracle.difference

        def watched_gradient(oracle, x, kind="gradient"):
            self.queries.append(("gradient", np.array(x).tobytes(), kind))
            return gradient(oracle, x, kind)

        def watched_difference(oracle, x, anchor, clip_norm, kind="difference"):
            self.queries.append(("difference", np.array(x).tobytes(), np.array(anchor).tobytes(), clip_norm, kind))
            return difference(oracle, x, anchor, clip_norm, kind)

        curvature = PrivateOracle.feature_curvature

        def watched_curvature(oracle, x, weights):
            self.queries.append(("curvature", np.array(x).tobytes(), np.array(weights).tobytes()))
            return curvature(oracle, x, weights)

        with (
            mock.patch.object(PrivateOracle, "feature_curvature", watched_curvature),
            mock.patch.object(PrivateOracle, "release", lambda *args: self.release(*args)),
            mock.patch.object(PrivateOracle, "release_state", lambda *args: self.release_state(*args)),
            mock.patch.object(PrivateOracle, "gradient", watched_gradient),
            mock.patch.object(PrivateOracle, "difference", watched_difference),
        ):
            yield self


def observe(model, X, y, folder=None, stub=None):
    """Everything visible of `model.fit(X, y)`: attributes, printed text, warnings, exceptions, queries, files."""
    stub = Stub() if stub is None else stub
    out, err, failure = io.StringIO(), io.StringIO(), None
    with (
        stub.installed(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        try:
            model.fit(X, y)
            if folder is not None:
                model.save(folder, force=True)
        except Exception as error:
            failure = (type(error).__name__, str(error), type(error.__cause__), error.__suppress_context__)
    files = {} if folder is None else {path.name: path.read_bytes() for path in sorted(folder.glob("*"))}
    return {
        "failure": failure,
        "attributes": fingerprint(vars(model)),
        "stdout": out.getvalue(),
        "stderr": err.getvalue(),
        "warnings": [(warning.category.__name__, str(warning.message)) for warning in caught],
        "queries": stub.queries,
        "files": files,
    }


def differences(one, two):
    """Names of what differs between two observations."""
    return [name for name in one if one[name] != two[name]]


def fingerprint(value, depth=0):
    """A value as nested tuples of plain data, to the last bit, following attributes all the way down."""
    if depth > 20:
        raise AssertionError("a structure too deep to compare")
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return (type(value).__name__, repr(value))
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "O":
            return ("object array", value.shape, fingerprint(value.tolist(), depth + 1))
        return ("array", value.shape, str(value.dtype), value.tobytes())
    if sparse.issparse(value):
        return ("sparse", fingerprint(value.toarray(), depth + 1))
    if isinstance(value, dict):
        return ("dict", tuple((repr(key), fingerprint(value[key], depth + 1)) for key in sorted(value, key=repr)))
    if isinstance(value, (list, tuple, set, frozenset)):
        return (type(value).__name__, tuple(fingerprint(item, depth + 1) for item in value))
    if dataclasses.is_dataclass(value) or hasattr(value, "__dict__"):
        return (type(value).__name__, fingerprint(vars(value), depth + 1))
    return (type(value).__name__, repr(value))


def settings_of(common: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Common settings with others in their place, and no batch size where the solver has no use for one."""
    chosen = common | more
    if not SOLVERS[chosen.get("solver", "auto")].samples:
        chosen.pop("batch_size", None)
    return chosen
