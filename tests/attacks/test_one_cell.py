"""One cell is replaced by anything at all: no other row's numbers, norm, target, weight or precision may change."""

from __future__ import annotations

import warnings
from functools import partial
from importlib import import_module
from unittest import mock

import numpy as np
import pytest
from scipy import sparse

from dpadmm import (
    DPLinearRegression,
    DPLogisticRegression,
    DPSearchCV,
    PrivateGraph,
    PrivateQuantileClipper,
    PrivateSecondMoment,
)
from dpadmm.cells.one_cell import label
from dpadmm.errors import DpadmmError
from dpadmm.rows.local import LocalRows
from dpadmm.sessions import Work
from dpadmm.tables import Schema, encode

from .campaign import Campaign
from .nasty import ARRAYS, FRAME_TYPES, LISTS, MASKED, NASTY, SPARSE, frame, framed, objects

ONCE = "one label 'oops' in a list made all other labels text (audited ε ≥ 4.36 at claimed 1)"
FEATURES = Campaign(
    "input",
    "replace one feature cell by anything, in every container",
    "a cell decided the precision and the reading of others, or stopped the fit",
    400,
    30_000,
)
LABELS = Campaign("input", "replace one label or target by anything, in every container", ONCE, 300, 20_000)
STRICT = Campaign(
    "input", "the same where invalid rows are refused: refused in the same words, or no difference", ONCE, 200, 8_000
)
OTHERS = Campaign("input", "the same for searches, transformers and tables with a schema", ONCE, 100, 2_000)
DASK = Campaign("input", "the same for Dask arrays and DataFrames whose partitions differ in type", ONCE, 60, 1_000)
TORCH = Campaign("input", "the same for tensors of every type", "none", 40, 1_000)

N, D = 8, 3
CHOICES = {"solver": "dp-gd", "steps": 1, "epsilon": 1.0, "delta": 1e-3, "invalid_rows": "zero", "random_state": 0}
MODELS = {
    "logistic": lambda **more: DPLogisticRegression(**{**CHOICES, "classes": [0, 1], **more}),
    "weighted": lambda **more: DPLogisticRegression(**{**CHOICES, "classes": [0, 1], "class_weight": {0: 0.5}, **more}),
    "bounded": lambda **more: DPLogisticRegression(**{**CHOICES, "classes": [0, 1], "bounds": (0, 4), **more}),
    "text classes": lambda **more: DPLogisticRegression(**{**CHOICES, "classes": ["0", "1"], **more}),
    "softmax": lambda **more: DPLogisticRegression(**{**CHOICES, "classes": [0, 1, 2**53 + 1], **more}),
    "truth": lambda **more: DPLogisticRegression(**{**CHOICES, "classes": [False, True], **more}),
    "squared": lambda **more: DPLinearRegression(**{**CHOICES, "target_bounds": (-1, 2), **more}),
    "huber": lambda **more: DPLinearRegression(**{**CHOICES, "loss": "huber", "target_bounds": (-1, 2), **more}),
}
COLUMNS = {
    "list": list,
    "tuple": tuple,
    "object array": lambda cells: objects([cells])[0],
    "column of a matrix": lambda cells: objects([[cell] for cell in cells]),
    "list of lists": lambda cells: [[cell] for cell in cells],
    "text array": lambda cells: np.array([cell if isinstance(cell, str) else repr(cell) for cell in cells]),
    **{
        f"Series {kind}": (lambda cells, kind=kind: framed([[cell] for cell in cells], [kind])["c0"])
        for kind in FRAME_TYPES
    },
    "array of pyarrow": lambda cells: of_pyarrow(cells),
    "chunks of pyarrow": lambda cells: of_pyarrow(cells, cut=3),
    **{
        f"frame {kind}": (lambda cells, kind=kind: framed([[cell] for cell in cells], [kind]))
        for kind in ("int64", "object")
    },
    **{
        name: (lambda cells, make=make: make([[cell] for cell in cells]).ravel())
        for name, make in (ARRAYS | MASKED).items()
    },
}


def of_pyarrow(cells, cut=None):
    """An array of pyarrow, or None where it makes another type of the cells: beside one date numbers become dates."""
    pyarrow = import_module("pyarrow")
    held = pyarrow.array(cells) if cut is None else pyarrow.chunked_array([cells[:cut], cells[cut:]])
    changed = sum(label(one) != label(other) for one, other in zip(held.to_pylist(), cells, strict=True))
    return held if changed <= 1 else None


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """NumPy warns of what the containers are filled with here; the library is watched by test_leaks.py.

    Plans depend on public choices alone, so each is made once.
    """
    for where in (
        "declare.recipe.calibrate",
        "preparation.base.calibrate",
        "estimators.search.search.calibrate_search",
    ):
        module, name = f"dpadmm.{where}".rsplit(".", 1)
        monkeypatch.setattr(import_module(module), name, once(getattr(import_module(module), name)))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def once(function):
    """A function that remembers what it made of public arguments."""
    made = {}

    def remembered(*arguments, **more):
        key = repr([each for each in (*arguments, *more.items()) if not callable(each)])
        return made[key] if key in made else made.setdefault(key, function(*arguments, **more))

    return remembered


def table_of(rng):
    return (
        rng.integers(0, 4, (N, D)).tolist() if rng.random() < 0.5 else (rng.integers(0, 2**12, (N, D)) / 1024).tolist()
    )


def replaced(rows, i, j, cell):
    return [[cell if (i, j) == (k, m) else old for m, old in enumerate(row)] for k, row in enumerate(rows)]


def facts(rows):
    """Everything an oracle knows of each row, bit for bit."""
    if not isinstance(rows, LocalRows):
        return [known for part in rows for known in facts(part)]
    X, table = rows._X, rows._table
    known = []
    for i in range(X.shape[0]):
        row = X[[i]]
        # A column of categories has one sign for all zeros, which no release shows: docs/proofs/rows.md.
        numbers = (row.data if sparse.issparse(row) else np.asarray(row)) + X.dtype.type(0)
        stored = (row.indices.tobytes() if sparse.issparse(row) else None, numbers.tobytes())
        alive = table.factors[i] != 0
        weight = None if rows._weights is None else rows._weights[i].tobytes()
        target = rows._columns[:, i].tobytes()
        known.append(
            (
                X.dtype.str,
                sparse.issparse(X),
                stored if alive else None,
                table.factors[i],
                rows._norms[i],
                target,
                weight,
            )
        )
    return known


def read(model, X, y):
    """Rows as the oracle would hold them, or the words of the refusal."""
    try:
        rows = model.prepare(X, y)[1]
    except DpadmmError as refusal:
        return str(refusal)
    except Exception as problem:
        return f"{type(problem).__name__}, which is not the library's own"
    return facts(rows)


def others_differ(one, two, i):
    if isinstance(one, str) or isinstance(two, str):
        return "a refusal" if one != two else None
    if len(one) != len(two):
        return "another number of rows"
    changed = [k for k in range(len(one)) if k != i and one[k] != two[k]]
    return f"{len(changed)} other rows" if changed else None


def holder(rng):
    """A container of features, and its name."""
    makers = {**ARRAYS, **MASKED, **SPARSE, **LISTS}
    if rng.random() < 0.4:
        seed = int(rng.integers(2**31))
        return "DataFrame", lambda rows: frame(rows, np.random.default_rng(seed))
    name = str(rng.choice(list(makers)))
    return name, makers[name]


def made(make, cells):
    """A container, or None where it cannot hold the cell."""
    try:
        return make(cells)
    except BaseException:
        return None


def labels_for(name):
    return ["0", "1"] * (N // 2) if name == "text classes" else [0, 1] * (N // 2)


def test_one_feature_changes_no_other_row():
    with FEATURES.begin() as tally:
        for n in tally.each():
            rng = np.random.default_rng(n)
            (name, make), kind = holder(rng), str(rng.choice(list(MODELS)))
            rows, i, j = table_of(rng), int(rng.integers(N)), int(rng.integers(D))
            cell = NASTY[n % len(NASTY)]
            before, after = made(make, rows), made(make, replaced(rows, i, j, cell))
            if before is None or after is None:
                continue
            if name.startswith(("lil", "dok")) and kind == "bounded":
                continue
            one, two = (read(MODELS[kind](), held, labels_for(kind)) for held in (before, after))
            found = others_differ(one, two, i)
            if found:
                tally.defect(f"{name}, {kind}, {type(cell).__name__}: {found}")


def test_one_label_changes_no_other_row():
    X = np.arange(N * D).reshape(N, D) / 7
    with LABELS.begin() as tally:
        for n in tally.each():
            rng = np.random.default_rng(n)
            name, kind = str(rng.choice(list(COLUMNS))), str(rng.choice(list(MODELS)))
            cells, i, cell = labels_for(kind), int(rng.integers(N)), NASTY[n % len(NASTY)]
            before, after = (made(COLUMNS[name], labels) for labels in (cells, [*cells[:i], cell, *cells[i + 1 :]]))
            if before is None or after is None:
                continue
            one, two = (read(MODELS[kind](), X, labels) for labels in (before, after))
            found = others_differ(one, two, i)
            if found:
                tally.defect(f"{name}, {kind}, {type(cell).__name__}: {found}")


REFUSALS = ("not numbers", "NaN", "different lengths")


def test_where_invalid_rows_are_refused_nothing_else_changes():
    with STRICT.begin() as tally:
        for n in tally.each():
            rng = np.random.default_rng(n)
            (name, make), (i, j) = holder(rng), (int(rng.integers(N)), int(rng.integers(D)))
            rows, cell = table_of(rng), NASTY[n % len(NASTY)]
            before, after = made(make, rows), made(make, replaced(rows, i, j, cell))
            if before is None or after is None:
                continue
            one, two = (
                read(MODELS["logistic"](invalid_rows="error"), held, labels_for("")) for held in (before, after)
            )
            refused = isinstance(two, str) and any(words in two for words in REFUSALS)
            if not refused and others_differ(one, two, i):
                tally.defect(f"{name}, {type(cell).__name__}: {others_differ(one, two, i)}")


class Seen(Exception):
    """What reached the rows, handed back before anything is asked."""


def seen_by(search_or_step, X, y):
    def stop(first, second):
        raise Seen(second if isinstance(first, Work) else first)

    where = (
        "estimators.search.search.best_of" if isinstance(search_or_step, DPSearchCV) else "sessions.session.Work.oracle"
    )
    with mock.patch(f"dpadmm.{where}", stop):
        try:
            search_or_step.fit(X, y)
        except Seen as found:
            held = found.args[0]
        except DpadmmError as refusal:
            return str(refusal)
    if isinstance(held, LocalRows):
        return facts(held)
    return [row for part in (held.training, held.validation) for row in coded(part, held.target)]


def coded_bytes(table, kept):
    return (table.X[kept] + 0.0).tobytes(), table.y[kept].tobytes()


def coded(part, target):
    """The rows of a part of a search: numbers and target, or None where the row counts as zero."""
    found = zip(part.X + 0.0, *target.encode(part.y), strict=True)
    return [(row.tobytes(), int(code)) if known and np.isfinite(row).all() else None for row, code, known in found]


STEPS = {
    "search": lambda: DPSearchCV(
        MODELS["logistic"](solver="auto", steps=None), {"alpha": [1e-3, 1e-2], "penalty": ["l1"]}
    ),
    "clipper": lambda: PrivateQuantileClipper((0, 9), epsilon=1.0, delta=1e-3, invalid_rows="zero", random_state=0),
    "moment": lambda: PrivateSecondMoment(epsilon=1.0, delta=1e-3, invalid_rows="zero", random_state=0),
    "graph": lambda: PrivateGraph(epsilon=1.0, delta=1e-3, invalid_rows="zero", random_state=0),
}
NUMBERS = [kind for kind in FRAME_TYPES if not kind.startswith(("bool", "decimal", "text of"))]
"""A schema tells categories by how they are written, and a type that writes a number otherwise makes other cells."""
SCHEMA = Schema.from_dict(
    {
        "columns": {
            "c0": {"kind": "numeric", "lower": 0, "upper": 4},
            "c1": {"kind": "categorical", "categories": [0, 1, 2, 3]},
            "c2": {"kind": "categorical", "categories": ["0", "1", "2", "3"], "unseen": "error"},
            "c3": {"kind": "boolean"},
        },
        "target": {"column": "c4", "kind": "classes", "classes": [0, 1]},
    }
)


def test_searches_transformers_and_schemas():
    with OTHERS.begin() as tally:
        for n in tally.each():
            rng, cell = np.random.default_rng(n), NASTY[n % len(NASTY)]
            i, what = int(rng.integers(N)), [*STEPS, "schema", "schema"][n % 6]
            if what == "schema":
                kinds, rows, j = (
                    list(rng.choice(NUMBERS, 5)),
                    rng.integers(0, 2, (N, 5)).tolist(),
                    int(rng.integers(5)),
                )
                tables = [framed(each, kinds) for each in (rows, replaced(rows, i, j, cell))]
                one, two = (encode(table, SCHEMA, with_target=True, invalid_rows="zero") for table in tables)
                kept = np.arange(N) != i
                if coded_bytes(one, kept) != coded_bytes(two, kept):
                    tally.defect(f"schema, {kinds[j]}, {type(cell).__name__}")
                continue
            (name, make), rows, j = holder(rng), table_of(rng), int(rng.integers(D))
            if name[:3] in ("csr", "csc", "coo", "lil", "dok", "bsr"):
                name, make = "object array", objects
            before, after = made(make, rows), made(make, replaced(rows, i, j, cell))
            if before is None or after is None:
                continue
            one, two = (seen_by(STEPS[what](), held, labels_for("")) for held in (before, after))
            if isinstance(one, str) or isinstance(two, str):
                differs = one != two
            else:
                differs = sum(a != b for a, b in zip(one, two, strict=True)) > 1
            if differs:
                tally.defect(f"{what}, {name}, {type(cell).__name__}")


def test_partitions_of_dask():
    dask = pytest.importorskip("dask")
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")

    def arrays(parts, dtype):
        held = [da.from_delayed(dask.delayed(part, pure=False), (N // 2, D), dtype=dtype) for part in parts]
        return da.concatenate(held, axis=0)

    def frames(parts, meta):
        return dd.from_delayed([dask.delayed(part, pure=False) for part in parts], meta=meta, verify_meta=False)

    def kept(rows):
        pairs = zip(rows._parts._kept, rows._parts._chunks, strict=True)
        return [found.read(chunk) for found, chunk in (dask.compute(*pair) for pair in pairs)]

    def seen(X, y):
        try:
            return facts(kept(MODELS["logistic"]().prepare(X, y)[1]))
        except DpadmmError as refusal:
            return str(refusal)

    y = da.from_array(np.array(labels_for("")), chunks=N // 2)
    with dask.config.set(scheduler="synchronous"), DASK.begin() as tally:
        for n in tally.each():
            rng, cell = np.random.default_rng(n), NASTY[n % len(NASTY)]
            rows, i, j = table_of(rng), int(rng.integers(N)), int(rng.integers(D))
            kind, kinds = ("f4", "f8", "i2")[n % 3], [str(each) for each in rng.choice(FRAME_TYPES, D)]
            if kind == "i2":
                rows = rng.integers(0, 4, (N, D)).tolist()
            tables = []
            for each in (rows, replaced(rows, i, j, cell)):
                halves = [each[: N // 2], each[N // 2 :]]
                if n % 2:
                    typed = [made(ARRAYS[f"array {kind}"], half) for half in halves]
                    parts = [objects(half) if fit is None else fit for fit, half in zip(typed, halves, strict=True)]
                    tables.append(arrays(parts, kind))
                else:
                    tables.append(frames([framed(half, kinds) for half in halves], framed(rows, kinds)[:0]))
            one, two = (seen(table, y) for table in tables)
            if "Dask partition that could not be read" in two:
                continue  # Dask itself failed at the cell, which the statement names as an assumption
            found = others_differ(one, two, i)
            if found:
                tally.defect(f"{'array' if n % 2 else 'frame'}, {type(cell).__name__}: {found}")


def test_tensors():
    torch = pytest.importorskip("torch")
    kinds = (
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
        torch.int16,
        torch.int64,
        torch.uint8,
        torch.bool,
    )
    with TORCH.begin() as tally:
        for n in tally.each():
            rng, cell, kind = np.random.default_rng(n), NASTY[n % len(NASTY)], kinds[n % len(kinds)]
            rows, i, j = table_of(rng), int(rng.integers(N)), int(rng.integers(D))
            make = partial(torch.tensor, dtype=kind)
            before, after = (made(make, each) for each in (rows, replaced(rows, i, j, cell)))
            if after is None or after.shape != before.shape:
                continue
            found = others_differ(*(read(MODELS["logistic"](), held, labels_for("")) for held in (before, after)), i)
            if found:
                tally.defect(f"{kind}, {type(cell).__name__}: {found}")
