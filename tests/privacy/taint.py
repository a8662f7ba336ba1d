"""Fit a model with every answer replaced by data-independent noise, and write down all that an outsider could see.

If two tables with the same public description then differ in anything written down, some data left the oracle by
another way than a mechanism and the last state of hidden passes.
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

from dpadmm.oracles.hidden_walk import Walk
from dpadmm.oracles.mechanisms import Exact, Granular
from dpadmm.oracles.private import PrivateOracle
from dpadmm.rows.lattice_sum import LatticeSum
from dpadmm.solvers.base import SOLVERS


class Stub:
    """Stands for the `release` of a mechanism: its answers are numbers that no data entered."""

    def __init__(self, seed=0, scale=0.3):
        self._rng, self._scale = np.random.default_rng(seed), scale
        self.queries = []

    def release(self, mechanism, total, query, clip_norm, gate):
        # The lattice of an exact sum is public, so it must be the same for every table.
        kind = total.units.tobytes() if isinstance(total, LatticeSum) else str(total.dtype)
        self.queries.append(("released", query.kind, clip_norm, total.shape, kind))
        return self._scale * self._rng.standard_normal(total.shape) + 0.01

    def release_state(self, state):
        """Stands for what leaves of hidden passes."""
        self.queries.append(("released", *((block.shape, str(block.dtype)) for block in state)))
        return tuple(self._scale * self._rng.standard_normal(block.shape) + 0.01 for block in state)

    @contextlib.contextmanager
    def installed(self):
        ask, last_state = PrivateOracle.ask, Walk.last_state

        def watched(oracle, kind, *at):
            self.queries.append(("asked", kind, *(np.array(value).tobytes() for value in at)))
            return ask(oracle, kind, *at)

        def released(mechanism, *given):
            return self.release(mechanism, *given)

        with (
            mock.patch.object(PrivateOracle, "ask", watched),
            mock.patch.object(Granular, "release", released),
            mock.patch.object(Exact, "release", released),
            mock.patch.object(Walk, "last_state", lambda *given: self.release_state(last_state(*given))),
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
