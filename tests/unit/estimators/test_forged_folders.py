"""Files that repeat a model's promise must repeat it: a folder with an edited one is refused by every command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from dpadmm import load_model
from dpadmm.cli.app import run
from dpadmm.cli.model_folder import read_model
from dpadmm.errors import FileProblem
from dpadmm.estimators.loading import checksum
from dpadmm.privacy.selection import plan_from_dict
from dpadmm.report.folder import promise_texts
from tests.unit.cli.made_up_tables import fit_arguments, write_inputs

STORED = Path(__file__).parents[2] / "golden" / "stored"
PROMISES = ("statement.txt", "statement.json", "plan.json")


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("inputs")
    write_inputs(folder)
    assert run(fit_arguments(folder, "--steps", "2")) == 0
    return {path.name: path.read_bytes() for path in (folder / "model").iterdir()}


@pytest.fixture
def model(tmp_path: Path, honest: dict[str, bytes]) -> Path:
    for name, content in honest.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def forge_json(path: Path, **changes: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}, indent=2) + "\n")


def forge(path: Path) -> None:
    if path.suffix == ".txt":
        path.write_text(path.read_text(encoding="utf-8").replace("(1, 1e-05)", "(0.1, 1e-05)"), encoding="utf-8")
    else:
        forge_json(path, epsilon=0.1)


@pytest.mark.parametrize("name", PROMISES)
@pytest.mark.parametrize("command", [["statement"], ["statement", "--verify"], ["audit", "--runs", "200"]])
def test_an_edited_promise_is_refused(model: Path, name: str, command: list[str], capsys) -> None:
    forge(model / name)
    assert run([*command, str(model)]) == 4
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"{name} contradicts its model" in shown.err


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("statement.json", {"statement": "This model is (0.1, 1e-05)-differentially private."}),
        ("statement.json", {"seeded": True}),
        ("statement.json", {"note": "certified"}),
        ("plan.json", {"digest": "0" * 64}),
        ("plan.json", {"queries": []}),
    ],
)
def test_no_part_of_it_may_be_edited(model: Path, name: str, changes: dict[str, object]) -> None:
    forge_json(model / name, **changes)
    with pytest.raises(FileProblem, match=name):
        read_model(model)


@pytest.mark.parametrize("content", [b"", b"\xff", b"{"])
def test_damage_is_refused_in_words(model: Path, content: bytes) -> None:
    for name in PROMISES:
        (model / name).write_bytes(content)
    with pytest.raises(FileProblem, match=r"statement.txt and statement.json and plan.json contradict its"):
        read_model(model)


def test_absent_files_promise_nothing(model: Path) -> None:
    for name in PROMISES:
        (model / name).unlink()
    assert read_model(model).privacy_.epsilon == 1.0


class TestOtherVersions:
    """The wording may have changed since: `model.json` keeps the words that were chosen."""

    @staticmethod
    def age(model: Path) -> None:
        words = json.loads((model / "model.json").read_text())
        words["privacy"] |= {"library_version": "0.0.1", "statement": "Old words for (1, 1e-05)."}
        del words["checksum"]
        (model / "model.json").write_text(json.dumps({**words, "checksum": checksum(words)}, indent=2))
        (model / "statement.txt").write_text("Old words for (1, 1e-05).\n")
        (model / "statement.json").write_text(json.dumps(words["privacy"], indent=2) + "\n")

    def test_are_read(self, model: Path) -> None:
        self.age(model)
        assert read_model(model).privacy_.library_version == "0.0.1"

    @pytest.mark.parametrize("name", PROMISES)
    def test_and_checked(self, model: Path, name: str) -> None:
        self.age(model)
        forge(model / name)
        with pytest.raises(FileProblem, match=name):
            read_model(model)


class TestWhatFollowsFromThePlan:
    """`model.json` written anew with honest checksums, beside no other file that could contradict it."""

    @staticmethod
    def rewrite(model: Path, plan: dict[str, object], **privacy: object) -> None:
        words = json.loads((model / "model.json").read_text())
        words["plan"] |= plan
        if plan:
            words["plan"].pop("digest", None)
            privacy["plan_digest"] = plan_from_dict(words["plan"]).digest
        words["privacy"] |= privacy
        del words["checksum"]
        (model / "model.json").write_text(json.dumps({**words, "checksum": checksum(words)}, indent=2))
        for name in PROMISES:
            (model / name).unlink()

    @pytest.mark.parametrize(
        "said",
        [
            {"assumptions": []},
            {"queries": []},
            {"unit": {"kind": "row", "number": 7}},
            {"arithmetic": "exact"},
            {"split": [{"step": "training", "share": 1.0}]},
            {"outlook": {"signal": 7.0, "least": 8.0}},
            {"subject": "transformer"},
            {"proofs": []},
            {"accountant": "pld"},
        ],
    )
    def test_no_part_of_a_statement_may_differ(self, model: Path, said: dict[str, object]) -> None:
        self.rewrite(model, {}, **said)
        with pytest.raises(FileProblem, match=f"differ in {next(iter(said))}"):
            load_model(model)
        assert run(["statement", str(model)]) == 4

    @pytest.mark.parametrize(("name", "value"), [("clip", 0.001), ("multiplier", 1e9), ("count", 7), ("moves", 0.001)])
    def test_no_number_of_a_query_may_differ(self, model: Path, name: str, value: float) -> None:
        (first, *others) = json.loads((model / "model.json").read_text())["privacy"]["queries"]
        self.rewrite(model, {}, queries=[{**first, name: value}, *others])
        with pytest.raises(FileProblem, match="differ in queries"):
            load_model(model)

    @pytest.mark.parametrize(
        "said",
        [
            {"assumptions": [{"key": "nothing-to-fear"}]},
            {"assumptions": [{"key": "as-stored", "words": "nothing of this matters"}]},
            {"assumptions": [{"key": "at-most-times-the-rows"}]},
            {"unit": {"kind": "galaxy", "number": 60}},
            {"proofs": ["trust me"]},
            {"version": 3},
            {"note": "certified"},
        ],
    )
    def test_facts_without_words_are_refused(self, model: Path, said: dict[str, object]) -> None:
        self.rewrite(model, {}, **said)
        with pytest.raises(FileProblem, match="corrupt or of another version"):
            load_model(model)

    def test_a_paragraph_that_lies_is_not_printed(self, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Whoever edits it in every file can no longer be told from an earlier version: facts are printed instead."""
        lie = "This model is (0.001, 1e-05)-differentially private."
        self.rewrite(model, {}, statement=lie)
        assert run(["statement", str(model)]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert lie not in shown
        assert "(1, 1e-05)-differentially private" in shown
        assert "other words" in shown

    @pytest.mark.parametrize("lowered", [{"epsilon": 0.01, "epsilon_achieved": 0.01}, {"delta": 1e-9}])
    def test_a_smaller_promise_than_the_queries_keep_is_refused(
        self, model: Path, lowered: dict[str, object], capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.rewrite(model, lowered, **lowered)
        with pytest.raises(FileProblem, match="plan does not hold"):
            load_model(model)
        assert run(["statement", str(model)]) == 4
        assert capsys.readouterr().out == ""


class TestVersionOne:
    """Statements of version 1 stored sentences, which are quoted if they are what that version said, and only then."""

    @pytest.fixture
    def earlier(self, tmp_path: Path) -> Path:
        shutil.copytree(STORED / "batches", tmp_path / "earlier")
        self.repeat(tmp_path / "earlier")
        return tmp_path / "earlier"

    @staticmethod
    def repeat(folder: Path, **privacy: object) -> None:
        """Write the statement, changed or not, with honest checksums and into every file that repeats it."""
        words = json.loads((folder / "model.json").read_text())
        words["privacy"] |= privacy
        del words["checksum"]
        (folder / "model.json").write_text(json.dumps({**words, "checksum": checksum(words)}, indent=2))
        digest = plan_from_dict(words["plan"]).digest
        for name, text in promise_texts(words["privacy"], words["plan"], digest).items():
            (folder / name).write_text(text, encoding="utf-8")

    def test_opens_and_is_quoted(self, earlier: Path, capsys: pytest.CaptureFixture[str]) -> None:
        stored = json.loads((earlier / "model.json").read_text())["privacy"]
        privacy = read_model(earlier).privacy_
        assert json.loads(privacy.to_json()) == stored
        assert privacy.mechanisms == tuple(stored["mechanisms"])
        assert run(["statement", str(earlier)]) == 0
        shown = capsys.readouterr().out
        assert all(sentence in shown for sentence in (*stored["mechanisms"], *stored["assumptions"]))

    @pytest.mark.parametrize("name", PROMISES)
    def test_its_files_must_repeat_it(self, earlier: Path, name: str) -> None:
        text = (earlier / name).read_text(encoding="utf-8")
        (earlier / name).write_text(text.replace("2", "1"), encoding="utf-8")
        with pytest.raises(FileProblem, match=name):
            read_model(earlier)

    @pytest.mark.parametrize(
        "said",
        [
            {"mechanisms": ["nothing"]},
            {"assumptions": []},
            {"unit": "one person, whatever rows they have"},
            {"arithmetic": ""},
            {"arithmetic_name": "exact"},
            {"budget_split": ["100% for training"]},
            {"outlook": "Expect the best."},
            {"subject": "transformer"},
            {"proof_status": "trust me"},
            {"relation": "add-remove"},
            {"statement": "This model is (0.001, 1e-05)-differentially private."},
        ],
    )
    def test_a_sentence_that_lies_is_refused(
        self, earlier: Path, said: dict[str, object], capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.repeat(earlier, **said)
        with pytest.raises(FileProblem, match=f"differ in {next(iter(said))}"):
            load_model(earlier)
        assert run(["statement", str(earlier)]) == 4
        assert capsys.readouterr().out == ""

    @pytest.mark.parametrize("number", ["2", "two", "3000000"])
    def test_a_search_may_have_had_any_number_of_candidates(self, tmp_path: Path, number: str) -> None:
        shutil.copytree(STORED / "search", tmp_path / "search")
        law, *others = json.loads((tmp_path / "search" / "model.json").read_text())["privacy"]["mechanisms"]
        self.repeat(tmp_path / "search", mechanisms=[law.replace("over 2 cand", f"over {number} cand"), *others])
        if number == "2":
            assert load_model(tmp_path / "search").privacy_.mechanisms[0] == law
            return
        with pytest.raises(FileProblem, match="differ in mechanisms"):
            load_model(tmp_path / "search")


def test_a_smaller_epsilon_of_a_mini_batch_fit_is_never_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_inputs(tmp_path)
    assert run([*fit_arguments(tmp_path), "--solver", "dp-sgd", "--steps", "20", "--batch-size", "40"]) == 0
    capsys.readouterr()
    lowered = {"epsilon": 0.01, "epsilon_achieved": 0.01}
    TestWhatFollowsFromThePlan.rewrite(tmp_path / "model", lowered, **lowered)
    assert run(["statement", str(tmp_path / "model")]) != 0
    assert capsys.readouterr().out == ""
