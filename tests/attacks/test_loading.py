"""Every file the library reads back, with content it never wrote: refused, soon, and in bounded memory."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import stat
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpadmm import DPLinearRegression, DPLogisticRegression, load_model
from dpadmm.errors import CannotCertify, DpadmmError, FileProblem, InputError, PromiseBroken
from dpadmm.estimators.loading import checksum
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.calibration import calibrate, verify_plan
from dpadmm.privacy.events import Event
from dpadmm.privacy.ledger.entries import Entry, Head, chain, read_entries, write_entry
from dpadmm.privacy.plan import Plan, Request
from dpadmm.privacy.questions import ClippedGradient
from dpadmm.privacy.sampling import Everything, make_sampler
from dpadmm.privacy.selection import Repetitions, calibrate_search, plan_from_dict
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.tables import Schema

from .campaign import Campaign
from .forged import REPEATED, changed, damaged, words

LOADERS = Campaign(
    room="loading",
    attack="every loader is given stored words with entries replaced, removed, added or nested, and damaged bytes",
    before="raw tracebacks (OverflowError, RecursionError, KeyError); models with NaN or misshapen weights",
    sample=2000,
    full=100_000,
)
PLANS = Campaign(
    room="loading",
    attack="numbers of a certified plan are changed, and the plan is verified",
    before="2^63 rows in the sampler, another denominator and other noise on the mean certified, once at epsilon 0",
    sample=150,
    full=5000,
)
ARCHIVES = Campaign(
    room="loading",
    attack="archives of numbers that expand, promise more than they hold, repeat or lack members, or are cut short",
    before="1 MB became 1 GiB in memory; a header of 2^45 numbers, raw tracebacks",
    sample=400,
    full=20_000,
)
LONGEST = 5.0
"""Seconds for one file; each takes milliseconds where nothing is computed from it."""
MOST_MEMORY = 96 << 20


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 3))
    return X, (X[:, 0] > 0).astype(int)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, bytes]]:
    """The files of some saved models."""
    X, y = table()
    edges = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])
    models = (
        DPLogisticRegression(1.0, 1e-4, classes=[0, 1], bounds=(-1, 1), random_state=0),
        DPLogisticRegression(1.0, 1e-4, classes=[0, 1], penalty="graph", graph=edges, random_state=0),
        DPLogisticRegression(1.0, 1e-4, solver="dp-sadmm", steps=5, batch_size=20, classes=[0, 1], random_state=0),
        DPLinearRegression(1.0, 1e-4, random_state=0),
    )
    saved = [model.fit(X, y).save(tmp_path_factory.mktemp("models") / "model") for model in models]
    return [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in saved]


def write(folder: Path, description: Any, numbers: bytes) -> None:
    """Files with checksums made anew, so that what they hold is looked at."""
    if isinstance(description, dict) and "numbers_sha256" in description:
        rest = {key: value for key, value in description.items() if key != "checksum"}
        rest["numbers_sha256"] = hashlib.sha256(numbers).hexdigest()
        description = {**rest, "checksum": checksum(rest)}
    (folder / "model.json").write_bytes(description if isinstance(description, bytes) else words(description))
    (folder / "model.npz").write_bytes(numbers)


def refused(load: Callable[[], Any], *errors: type[Exception]) -> str:
    """What is wrong with how `load` ends; nothing if it ends well, or by one of these errors, in time."""
    began = time.monotonic()
    try:
        load()
    except errors:
        pass
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"[:200]
    seconds = time.monotonic() - began
    return f"took {seconds:.1f} s" if seconds > LONGEST else ""


@cache
def plans() -> list[Plan]:
    """One of each kind of sampler, and one with a statistic."""
    single = [Request("gradient", 10, ClippedGradient(1.0))]
    budget, rows = Budget(1.0, 1e-5), 5000
    made = [
        calibrate(budget, single, make_sampler(name, rows, 50), rows, cache=False)
        for name in ("truncated-poisson", "fixed", "poisson")
    ]
    X, y = table()
    model = DPLogisticRegression(1.0, 1e-4, classes=[0, 1], random_state=0).fit(X, y)
    hidden = DPLogisticRegression(1.0, 1e-4, classes=[0, 1], solver="noisy-admm", random_state=0).fit(X, y)
    return [*made, calibrate(budget, single, Everything(), rows), model.plan_, hidden.plan_]


@cache
def search_plan() -> Any:
    def bases(single: Budget) -> tuple[Plan, ...]:
        return (calibrate(single, [Request("gradient", 10, ClippedGradient(1.0))], Everything(), 800),)

    return calibrate_search(Budget(1.0, 1e-5), Repetitions("geometric", 10.0), bases, 1000, 200)


SCHEMA = """
[columns.age]
kind = "numeric"
lower = 17
upper = 90
[columns.work]
kind = "categorical"
categories = ["private", "state"]
[target]
column = "income"
kind = "classes"
classes = ["low", "high"]
"""


def loaders(folders: list[dict[str, bytes]], tmp_path: Path) -> list[Callable[[random.Random], str]]:
    """Each gives one loader something wrong, and says how it ended if it ended badly."""
    models = [(json.loads(files["model.json"]), files["model.npz"]) for files in folders]
    stored = [json.loads(words(plan.to_dict())) for plan in (*plans(), search_plan())]
    statements = [description["privacy"] for description, _ in models]
    events = [json.loads(words(plan.event.to_dict())) for plan in plans()]
    entry = write_entry(Head(), "2026-01-01T00:00:00.000000Z", "create", {"dataset": "a", "limit": {"epsilon": 1.0}})

    def model_words(rng: random.Random) -> str:
        description, numbers = rng.choice(models)
        write(tmp_path, changed(description, rng), numbers)
        return refused(lambda: load_model(tmp_path), FileProblem)

    def model_bytes(rng: random.Random) -> str:
        description, numbers = rng.choice(models)
        write(tmp_path, damaged(words(description), rng), numbers)
        return refused(lambda: load_model(tmp_path), FileProblem)

    def plan(rng: random.Random) -> str:
        return refused(lambda: plan_from_dict(changed(rng.choice(stored), rng)), FileProblem)

    def statement(rng: random.Random) -> str:
        return refused(lambda: PrivacyStatement.from_dict(changed(rng.choice(statements), rng)).text, FileProblem)

    def event(rng: random.Random) -> str:
        return refused(
            lambda: Event.from_dict(changed({"event": rng.choice(events)}, rng)["event"]), FileProblem, KeyError
        )

    def schema(rng: random.Random) -> str:
        text = damaged(SCHEMA.encode(), rng)
        (tmp_path / "schema.toml").write_bytes(text)
        return refused(lambda: Schema.read(tmp_path / "schema.toml"), InputError)

    def declared(rng: random.Random) -> str:
        return refused(lambda: Schema.from_dict(changed(Schema.from_toml(SCHEMA).to_dict(), rng)), InputError)

    def ledger(rng: random.Random) -> str:
        text = damaged(entry.text.encode(), rng).decode("utf-8", "replace")
        forged = Entry(1, text, chain(Head().hash, text))
        return refused(lambda: list(read_entries(Head(), [forged])), FileProblem)

    return [model_words, model_bytes, plan, statement, event, schema, declared, ledger]


def test_every_loader_refuses_by_its_own_errors(folders: list[dict[str, bytes]], tmp_path: Path) -> None:
    each = loaders(folders, tmp_path)
    with LOADERS.begin() as tally:
        for number in tally.each():
            wrong = each[number % len(each)](random.Random(number))
            if wrong:
                tally.defect(f"try {number}: {wrong}")


def consistent(plan: Plan) -> bool:
    """What must hold of any plan that verifies, written here once more, from the definitions."""
    for query in plan.queries:
        sampler = query.sampler
        rows = getattr(sampler, "n_rows", plan.n_rows)
        expected = {
            "full": float(plan.n_rows),
            "permutation": 1.0,
            "fixed": float(getattr(sampler, "batch_size", 0)),
        }.get(sampler.name, getattr(sampler, "rate", 0.0) * plan.n_rows)
        if rows != plan.n_rows or abs(query.denominator - expected) > 1e-9 * expected or not 1 <= query.count <= 10**9:
            return False
    return 1 <= plan.n_rows <= 2**53 and plan.budget.delta * plan.n_rows < 1


def test_no_certificate_of_a_plan_whose_numbers_disagree() -> None:
    honest = plans()
    stored = [json.loads(words(plan.to_dict())) for plan in honest]
    with PLANS.begin() as tally:
        for number in tally.each():
            rng = random.Random(number)
            fields = changed(rng.choice(stored), rng)
            try:
                # The noise on a mean follows from the rest: made anew, so that the rest is looked at.
                for query in fields["queries"]:
                    query["noise_std"] = query["noise_multiplier"] * query["clip_norm"] / query["denominator"]
            except (KeyError, TypeError, ArithmeticError, IndexError):
                pass
            began = time.monotonic()
            try:
                plan = Plan.from_dict(fields)
                epsilon = verify_plan(plan)
            except (FileProblem, PromiseBroken, CannotCertify):
                continue
            except Exception as problem:
                tally.defect(f"try {number}: {type(problem).__name__}: {problem}"[:200])
                continue
            finally:
                if time.monotonic() - began > LONGEST:
                    tally.defect(f"try {number}: took {time.monotonic() - began:.1f} s")
            if not (consistent(plan) and 0.9 * plan.epsilon_achieved <= epsilon <= plan.budget.epsilon):
                tally.defect(f"try {number}: certified at {epsilon}")


@pytest.mark.parametrize(
    "change",
    [
        lambda plan, query: replace(plan, queries=(replace(query, sampler=replace(query.sampler, n_rows=2**63)),)),
        lambda plan, query: replace(
            plan, queries=(replace(query, sampler=replace(query.sampler, n_rows=2**63, rate=1e-19)),)
        ),
        lambda plan, query: replace(plan, queries=(replace(query, sampler=replace(query.sampler, rate=1e-19)),)),
        lambda plan, query: replace(plan, queries=(replace(query, denominator=2 * query.denominator),)),
        lambda plan, query: replace(plan, queries=(replace(query, count=0),)),
        lambda plan, query: replace(plan, queries=(replace(query, count=True),)),
        lambda plan, query: replace(plan, queries=(replace(query, clip_norm=0.0),)),
        lambda plan, query: replace(plan, queries=(replace(query, clip_norm=float("nan")),)),
        lambda plan, query: replace(plan, queries=(replace(query, noise_multiplier=1e300),)),
        lambda plan, query: replace(plan, queries=(replace(query, noise_multiplier=-query.noise_multiplier),)),
        lambda plan, query: replace(plan, queries=(replace(query, noise_multiplier=1.3 * query.noise_multiplier),)),
        lambda plan, query: replace(plan, queries=(replace(query, kind="noisy pass"),)),
        lambda plan, query: replace(plan, queries=()),
        lambda plan, query: replace(plan, n_rows=4999),
        lambda plan, query: replace(plan, n_rows=200_000),
        lambda plan, query: replace(plan, epsilon_achieved=5.0),
        lambda plan, query: replace(plan, epsilon_achieved=0.0),
    ],
)  # fmt: skip
def test_one_number_that_contradicts_the_others(change: Any) -> None:
    plan = plans()[0]
    assert verify_plan(plan) <= 1.0
    with pytest.raises(PromiseBroken):
        verify_plan(change(plan, plan.queries[0]))


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: replace(plan, n_rows=2000),
        lambda plan: replace(plan, budget=Budget(1.0, 5e-6)),
        lambda plan: replace(plan, budget=replace(plan.budget, relation="add-remove")),
        lambda plan: replace(plan, score=replace(plan.score, n_rows=100)),
        lambda plan: replace(plan, bases=(replace(plan.bases[0], budget=plan.budget),)),
        lambda plan: replace(plan, accountant="pld"),
        lambda plan: replace(plan, epsilon_achieved=2.0),
    ],
)
def test_one_number_of_a_search_that_contradicts_the_others(change: Any) -> None:
    plan = search_plan()
    assert verify_plan(plan) <= 1.0
    with pytest.raises(PromiseBroken):
        verify_plan(change(plan))


# -- numbers -----------------------------------------------------------------------------------------------------


def array_bytes(shape: str, descr: str = "<f8", fortran: bool = False, data: bytes = b"") -> bytes:
    """A file of one array whose header says whatever it is told to."""
    header = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


def archive(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return stream.getvalue()


def members_of(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {name: file.read(name) for name in file.namelist()}


def linked(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name, content in members.items():
            entry = zipfile.ZipInfo(name)
            if name == "weights.npy":
                entry.external_attr, content = (stat.S_IFLNK | 0o777) << 16, b"/etc/passwd"
            file.writestr(entry, content)
    return stream.getvalue()


def expanding(honest: dict[str, bytes]) -> bytes:
    """Some hundred kilobytes that become a quarter of a gigabyte."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for name, content in honest.items():
            if name != "weights.npy":
                file.writestr(name, content)
        with file.open("weights.npy", "w") as member:
            member.write(array_bytes(f"({1 << 25},)"))
            for _ in range(256):
                member.write(bytes(1 << 20))
    return stream.getvalue()


def forged_archives(content: bytes) -> dict[str, bytes]:
    """Archives that are wrong in one way each."""
    honest = members_of(content)
    one = np.array([1.0]).tobytes()
    shapes = {
        "negative": array_bytes("(-1,)", data=one),
        "2**45 numbers": array_bytes(f"({2**45},)", data=one),
        "beyond any integer": array_bytes(f"({10**400},)", data=one),
        "overflowing product": array_bytes(f"({2**32}, {2**32})"),
        "no tuple": array_bytes("7", data=one),
        "objects": array_bytes("(1,)", "|O", data=one),
        "fields": array_bytes("(1,)", "f8, f8", data=one),
        "no size": array_bytes("(4,)", "|S0"),
        "NaN": array_bytes("(4,)", data=np.full(4, np.nan).tobytes()),
        "infinity": array_bytes("(4,)", data=np.full(4, np.inf).tobytes()),
        "another type": array_bytes("(4,)", "<U1", data=b"a\0\0\0" * 4),
        "another shape": array_bytes("(2, 2)", data=one * 4),
        "another number": array_bytes("(3,)", data=one * 3),
        "more than it says": array_bytes("(4,)", data=one * 5),
        "no header": b"\x93NUMPY\x01\x00\xff\xff",
        "nothing": b"",
        "a pickle": b"cos\nsystem\n(S'true'\ntR.",
        "deep": array_bytes("(" * 5000 + ")" * 5000),
    }
    forged = {name: archive({**honest, "weights.npy": wrong}) for name, wrong in shapes.items()}
    forged["expands"] = expanding(honest)
    forged["missing"] = archive({name: each for name, each in honest.items() if name != "coef.npy"})
    forged["more"] = archive({**honest, "more.npy": honest["coef.npy"]})
    forged["no suffix"] = archive({**honest, "classes": honest["coef.npy"]})
    forged["outside"] = archive({**honest, "../weights.npy": honest["coef.npy"]})
    forged["a link"] = linked(honest)
    forged["empty"] = b""
    forged["no archive"] = b"PK\x03\x04" + bytes(100)
    forged["cut"] = content[: len(content) // 2]
    return forged


def test_forged_archives_are_refused_in_bounded_memory(folders: list[dict[str, bytes]], tmp_path: Path) -> None:
    description = json.loads(folders[0]["model.json"])
    for name, content in forged_archives(folders[0]["model.npz"]).items():
        write(tmp_path, description, content)
        tracemalloc.start()
        wrong = refused(lambda: load_model(tmp_path), FileProblem)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert not wrong, f"{name}: {wrong}"
        assert peak < MOST_MEMORY, f"{name}: {peak >> 20} MiB"
        with pytest.raises(FileProblem):
            load_model(tmp_path)


def test_a_graph_in_few_bytes_does_not_become_a_table_of_terabytes(
    folders: list[dict[str, bytes]], tmp_path: Path
) -> None:
    members = members_of(folders[1]["model.npz"])
    stream = io.BytesIO()
    np.save(stream, np.array([2**40, 3]))
    write(tmp_path, json.loads(folders[1]["model.json"]), archive({**members, "graph_shape.npy": stream.getvalue()}))
    assert not refused(lambda: load_model(tmp_path), FileProblem, MemoryError)
    with pytest.raises(FileProblem):
        load_model(tmp_path)


def test_an_array_in_fortran_order_is_the_same_array(folders: list[dict[str, bytes]], tmp_path: Path) -> None:
    members = members_of(folders[0]["model.npz"])
    coef = np.load(io.BytesIO(members["coef.npy"]))
    turned = array_bytes(str(coef.shape), fortran=True, data=coef.tobytes("F"))
    write(tmp_path, json.loads(folders[0]["model.json"]), archive({**members, "coef.npy": turned}))
    np.testing.assert_array_equal(load_model(tmp_path).coef_, coef)


def test_damaged_archives(folders: list[dict[str, bytes]], tmp_path: Path) -> None:
    models = [(json.loads(files["model.json"]), files["model.npz"]) for files in folders]
    with ARCHIVES.begin() as tally:
        for number in tally.each():
            rng = random.Random(number)
            description, content = rng.choice(models)
            if number % 2:
                members = members_of(content)
                name = rng.choice(sorted(members))
                content = archive({**members, name: damaged(members[name], rng)})
            else:
                content = damaged(content, rng)
            write(tmp_path, description, content)
            wrong = refused(lambda: load_model(tmp_path), FileProblem)
            if wrong:
                tally.defect(f"try {number}: {wrong}")


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"1" + b"0" * 400,
        b'{"format": 1' + b"0" * 5000 + b"}",
        REPEATED,
        b'{"format": NaN}',
        b"\xff\xfe",
        b"null",
        b"[]",
        b"",
    ],
    ids=lambda content: content[:10].decode("latin-1"),
)
def test_words_that_are_no_description(content: bytes, folders: list[dict[str, bytes]], tmp_path: Path) -> None:
    write(tmp_path, content, folders[0]["model.npz"])
    with pytest.raises(FileProblem):
        load_model(tmp_path)


def test_a_pipe_in_place_of_a_file_does_not_hang(folders: list[dict[str, bytes]], tmp_path: Path) -> None:
    (tmp_path / "model.npz").write_bytes(folders[0]["model.npz"])
    os.mkfifo(tmp_path / "model.json")
    with pytest.raises(FileProblem):
        load_model(tmp_path)


def test_every_refusal_is_one_of_the_library() -> None:
    assert issubclass(FileProblem, DpadmmError)
