"""With every sentence replaced by "x" the library does the same: words are for people, and nothing reads them."""

from __future__ import annotations

import ast
import inspect
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import dpadmm
from dpadmm import (
    Budget,
    DPLogisticRegression,
    DPSearchCV,
    Ledger,
    PrivateQuantileClipper,
    compose_statements,
    load_model,
)
from dpadmm.audit import audit_model
from dpadmm.audit.saved_model import check_model
from dpadmm.cli.app import run
from dpadmm.errors import FileProblem
from dpadmm.estimators.loading import checksum
from dpadmm.privacy.assumptions import PARAMETERS
from dpadmm.privacy.ledger import verify
from dpadmm.privacy.plan_facts import contradictions
from dpadmm.privacy.questions import QUESTIONS
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.privacy.wording import assumption_words, sentence, short
from tests.attacks.printed_inputs import training, write_table
from tests.golden.test_stored import MODELS, STORED

WORDINGS = (sentence, short, assumption_words)
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (300, 3))
Y = (X[:, 0] > 0).astype(int)
SOLVERS: tuple[dict[str, Any], ...] = (
    {},
    {"solver": "dp-vradmm", "steps": 6, "batch_size": 20},
    {"solver": "noisy-admm", "steps": 1},
    {"arithmetic": "exact", "solver": "full-admm", "steps": 2},
    {"bounds": PrivateQuantileClipper((-4, 4), share=0.1), "solver": "full-admm", "steps": 2},
    {"relation": "add-remove", "n_rows": 300},
)


def model(**more: Any) -> DPLogisticRegression:
    return DPLogisticRegression(1.0, 1e-4, classes=[0, 1], **more)


def silenced(value: Any) -> Any:
    """The same shape, with "x" for each sentence."""
    if isinstance(value, str):
        return "x"
    if isinstance(value, dict):
        return {key: silenced(each) for key, each in value.items()}
    if isinstance(value, assumption_words.Phrase):
        return assumption_words.Phrase("x", "")
    return tuple(map(silenced, value)) if isinstance(value, tuple) else value


def worder(name: str, function: FunctionType) -> Any:
    """What stands for a function that words something; None for any other."""
    returned = str(inspect.signature(function).return_annotation)
    answers = {"str": "x", "tuple[str, ...]": ("x",), "tuple[tuple[str, ...], ...]": (("x",) * 6,)}
    return (lambda *given, **named: answers[returned]) if returned in answers else None


def silence(patch: pytest.MonkeyPatch) -> int:
    """Replace every sentence, and say how many places held one."""
    found = 0
    for module in WORDINGS:
        for name, value in list(vars(module).items()):
            if isinstance(value, FunctionType) and "wording" in value.__module__:
                new = None if value.__module__.endswith("rounding") else worder(name, value)
            else:
                new = silenced(value) if name.isupper() and isinstance(value, (str, dict, tuple)) else None
            if new is not None:
                patch.setattr(module, name, new)
                found += 1
    for name in QUESTIONS:
        patch.setattr(QUESTIONS[name], "words", "x")
    return found


@pytest.fixture
def wordless(monkeypatch: pytest.MonkeyPatch) -> None:
    assert silence(monkeypatch) > 30


def without_words(statement: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in statement.items() if key != "statement"}


def fitted_and_saved(folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """What a seeded fit leaves in a folder, and what is read from there."""
    made = model(random_state=0, **options).fit(X, Y)
    made.save(folder)
    words = json.loads((folder / "model.json").read_text())
    read = load_model(folder)
    assert read.privacy_ == made.privacy_
    assert read.privacy_.contradictions(read.plan_) == ()
    return {"weights": made.weights_.tolist(), "plan": made.plan_.digest, "privacy": without_words(words["privacy"])}


@pytest.mark.parametrize("options", SOLVERS, ids=lambda options: "-".join(map(str, options)) or "auto")
def test_fits_are_stored_and_read_alike(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = fitted_and_saved(tmp_path / "worded", options)
    silence(monkeypatch)
    assert fitted_and_saved(tmp_path / "silent", options) == expected
    stored = json.loads((tmp_path / "silent" / "model.json").read_text())["privacy"]
    assert stored["statement"] == "x"
    one, other = load_model(tmp_path / "worded"), load_model(tmp_path / "silent")
    assert one.privacy_ == other.privacy_
    assert str(one.privacy_) == "x"


@pytest.mark.usefixtures("wordless")
@pytest.mark.parametrize("change", [{"epsilon": 0.1}, {"queries": []}, {"assumptions": []}, {"proofs": []}])
def test_forged_facts_are_refused_alike(change: dict[str, Any], tmp_path: Path) -> None:
    model().fit(X, Y).save(tmp_path / "model")
    words = json.loads((tmp_path / "model" / "model.json").read_text())
    words["privacy"] |= change
    del words["checksum"]
    (tmp_path / "model" / "model.json").write_text(json.dumps({**words, "checksum": checksum(words)}))
    with pytest.raises(FileProblem, match=f"differ in {next(iter(change))}"):
        load_model(tmp_path / "model")


def test_models_are_audited_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    made = model(solver="full-admm", steps=2).fit(X, Y)
    expected, checked = audit_model(made, runs=200, random_state=0), check_model(made)
    assert expected.proof != "x"
    silence(monkeypatch)
    found = audit_model(made, runs=200, random_state=0)
    assert (found.lower_bound, found.proven, found.rehearsed) == (expected.lower_bound, expected.proven, True)
    assert check_model(made).proven == checked.proven


def test_ledgers_are_charged_and_verified_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def charged(place: Path) -> tuple[Any, ...]:
        ledger = Ledger.create(place)
        ledger.set_limit("people", Budget(3.0, 1e-3), owner="the hospital")
        for options in SOLVERS[:2]:
            model(ledger=ledger, dataset="people", **options).fit(X, Y)
        assert verify(place).ok
        return ledger.spent("people"), [entry.content["kind"] for entry in ledger.entries]

    expected = charged(tmp_path / "worded.db")
    silence(monkeypatch)
    assert charged(tmp_path / "silent.db") == expected
    assert verify(tmp_path / "worded.db").ok


def test_searches_and_totals_are_stated_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stated(folder: Path) -> tuple[dict[str, Any], ...]:
        plain = model(solver="full-admm", steps=2, random_state=0)
        found = DPSearchCV(plain, {"penalty": ["none", "l2"]}, mean_trials=2.0).fit(X, Y)
        assert load_model(found.save(folder)).privacy_ == found.privacy_
        clipper = PrivateQuantileClipper((-4, 4), epsilon=0.5, random_state=0).fit(X)
        total = compose_statements(clipper, plain.fit(X, Y))
        return without_words(found.privacy_.to_dict()), without_words(total.to_dict())

    expected = stated(tmp_path / "worded")
    silence(monkeypatch)
    assert stated(tmp_path / "silent") == expected


@pytest.mark.usefixtures("wordless")
@pytest.mark.parametrize("folder", [name for name in MODELS if "facts" not in name])
def test_models_of_version_one_are_read_alike(folder: str) -> None:
    stored = json.loads((STORED / folder / "model.json").read_text())["privacy"]
    privacy = load_model(STORED / folder).privacy_
    assert json.loads(privacy.to_json()) == stored
    assert "differentially private" in str(privacy)


def test_commands_end_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that was written in words is read without them, and an edited one is refused."""
    write_table(tmp_path)
    assert run(["fit", *training(tmp_path, "1", "1e-4"), "--solver", "full-admm", "--steps", "2"]) == 0
    folder, rows = tmp_path / "model", str(tmp_path / "t.csv")
    edited = Path(shutil.copytree(folder, tmp_path / "edited"))
    (edited / "statement.txt").write_text("This model is private.\n")
    silence(monkeypatch)
    for command in (["statement", "--verify"], ["audit", "--runs", "200"]):
        assert run([*command, str(folder)]) == 0
        assert run([*command, str(edited)]) == 4
    assert run(["evaluate", str(folder), rows, "--public-or-test"]) == 0
    assert run(["plan", "--rows", "1000", "--features", "3", "--epsilon", "1", "--delta", "1e-5"]) == 0
    assert run(["fit", *training(tmp_path, "1", "1e-4"), "--solver", "full-admm", "--steps", "2"]) == 0
    assert run(["statement", str(folder)]) == 0


# -- facts and words belong together ---------------------------------------------------------------------------------


def test_every_assumption_has_words_and_every_word_its_parameter() -> None:
    assert set(assumption_words.WORDS) == set(PARAMETERS)
    for key, names in PARAMETERS.items():
        given = {"subject": "model", **dict.fromkeys(names, "7")}
        filled = "".join(assumption_words.WORDS[key]).format(**given)
        assert "{" not in filled
        assert all("{" + name + "}" in "".join(assumption_words.WORDS[key]) for name in names)


def test_statements_of_both_versions_survive_json() -> None:
    for options in SOLVERS:
        made = model(random_state=0, **options).fit(X, Y).privacy_
        assert PrivacyStatement.from_dict(json.loads(made.to_json())) == made


@pytest.mark.parametrize(("factor", "wrong"), [(1.0, False), (1.0 + 1e-9, False), (1.001, True), (0.999, True)])
def test_shares_and_signals_may_differ_in_their_last_digits_only(factor: float, wrong: bool) -> None:
    step = {"bounds": PrivateQuantileClipper((-4, 4), share=0.1), "solver": "full-admm", "steps": 2}
    made = model(**step).fit(X[:25], Y[:25])
    facts = made.privacy_.facts
    split = (replace(facts.split[0], share=factor * facts.split[0].share), *facts.split[1:])
    assert contradictions(replace(facts, split=split), made.plan_) == (("split",) if wrong else ())
    outlook = replace(facts.outlook, signal=factor * facts.outlook.signal)
    assert contradictions(replace(facts, outlook=outlook), made.plan_) == (("outlook",) if wrong else ())


def test_the_promise_itself_is_compared_to_the_last_bit() -> None:
    made = model(solver="full-admm", steps=2).fit(X, Y)
    for name in ("epsilon", "delta", "epsilon_achieved"):
        nudged = float(np.nextafter(getattr(made.privacy_, name), 0.0))
        assert contradictions(replace(made.privacy_.facts, **{name: nudged}), made.plan_) == (name,)


# -- no code reads words back ----------------------------------------------------------------------------------------

WORDED = ("mechanisms", "proof_status", "budget_split")
"""Attributes that hold sentences, whatever they belong to."""
OF_STATEMENTS = ("assumptions", "outlook", "arithmetic", "unit", "solver", "text", "words")
"""Attributes that hold words of a statement, and keys elsewhere."""
OF_ERRORS = ("given", "expected", "do", "args")
STATEMENTS, ERRORS = ("privacy_", "statement", "stated"), ("problem", "error", "refusal")
"""How statements and errors are called."""
WORDINGS_CALLED = ("sentence.", "short.", "worded(", "in_short(", "stored_words(")
READERS = (
    *("split", "rsplit", "partition", "rpartition", "startswith", "endswith", "removeprefix", "removesuffix"),
    *("find", "index", "search", "match", "fullmatch", "sub", "findall", "finditer", "replace"),
)
KNOWN = {
    "privacy/version1.py": "statements of version 1 stored sentences: they are compared whole with what was said then",
    "tables/schema.py": "the message of Python's TOML parser",
    "nn/examples.py": "the message of PyTorch's allocator, which has no type of its own",
    "cli/statement_command.py": "whether to tell a reader that the files of a model use other words",
}


def holds_words(expression: ast.AST) -> bool:
    """Whether an expression reads a sentence of this library."""
    return any(map(_holds_words, ast.walk(expression)))


def _holds_words(node: ast.AST) -> bool:
    source = ast.unparse(node) if isinstance(node, (ast.Attribute, ast.Call)) else ""
    if isinstance(node, ast.Call):
        named = source.startswith("str(") and any(name in source for name in (*STATEMENTS, *ERRORS))
        return named or source.startswith(WORDINGS_CALLED)
    if not isinstance(node, ast.Attribute):
        return False
    holder = ast.unparse(node.value)
    return (
        node.attr in WORDED
        or (node.attr in OF_STATEMENTS and any(name in holder for name in STATEMENTS))
        or (node.attr in OF_ERRORS and any(name in holder for name in ERRORS))
    )


def readings(source: str) -> Iterator[str]:
    """Places where words decide something: compared, searched or cut."""
    for node in ast.walk(ast.parse(source)):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READERS:
            parts = [node.func.value, *node.args]
        if any(map(holds_words, parts)):
            yield ast.unparse(node)


def test_no_code_reads_words_back() -> None:
    root = Path(dpadmm.__file__).parent
    found = {
        path.relative_to(root).as_posix(): list(readings(path.read_text(encoding="utf-8")))
        for path in root.rglob("*.py")
    }
    reading = {name: places for name, places in found.items() if places and name not in KNOWN}
    assert reading == {}


@pytest.mark.parametrize(
    "source",
    [
        'law = " ".join(statement.mechanisms[:1]); statement.mechanisms[0].removeprefix("a private search over ")',
        'note = statement.proof_status.split(" (")[0]',
        'EXPLANATION.sub("", model.privacy_.assumptions[0])',
        'wrong = problem.given.startswith("a ledger in which")',
        "same = statement.mechanisms == restated.mechanisms",
        'private = "differentially private" in str(model.privacy_)',
        "same = sentence.query(one) == sentence.query(other)",
        "right = recipe.solver.name == model.privacy_.solver",
    ],
)
def test_the_scan_sees_what_was_there_once(source: str) -> None:
    assert list(readings(source))
