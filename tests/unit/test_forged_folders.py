"""Files that repeat a model's promise must repeat it: a folder with an edited one is refused by every command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_cli_tables import fit_arguments, write_inputs

from dpadmm import load_model
from dpadmm.cli.app import run
from dpadmm.cli.model_folder import read_model
from dpadmm.errors import FileProblem
from dpadmm.estimators.loading import checksum
from dpadmm.privacy.selection import plan_from_dict
from dpadmm.privacy.wording import EARLIER

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


def test_a_folder_in_the_digits_of_earlier_versions_opens_as_it_was(model: Path, capsys) -> None:
    """They rounded to the nearest; whoever writes other digits is still refused."""
    description = json.loads((model / "model.json").read_text())
    privacy = read_model(model).privacy_
    earlier = privacy.worded(EARLIER)
    assert earlier != privacy.text
    description["privacy"]["statement"] = earlier
    description.pop("checksum")
    (model / "model.json").write_text(json.dumps({**description, "checksum": checksum(description)}, indent=2))
    forge_json(model / "statement.json", statement=earlier)
    (model / "statement.txt").write_text(earlier + "\n", encoding="utf-8")
    assert read_model(model).privacy_ == privacy
    (model / "statement.txt").write_text(earlier.replace("0.9", "0.8") + "\n", encoding="utf-8")
    with pytest.raises(FileProblem, match=r"statement\.txt"):
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
            {"mechanisms": ["nothing"]},
            {"unit": "one person, whatever rows they have"},
            {"arithmetic": ""},
            {"arithmetic_name": "exact"},
            {"budget_split": ["100% for training"]},
            {"outlook": "Expect the best."},
            {"subject": "transformer"},
        ],
    )
    def test_no_part_of_a_statement_may_differ(self, model: Path, said: dict[str, object]) -> None:
        self.rewrite(model, {}, **said)
        with pytest.raises(FileProblem, match=f"differ in {next(iter(said))}"):
            load_model(model)
        assert run(["statement", str(model)]) == 4

    @pytest.mark.parametrize("lowered", [{"epsilon": 0.01, "epsilon_achieved": 0.01}, {"delta": 1e-9}])
    def test_a_smaller_promise_than_the_queries_keep_is_refused(
        self, model: Path, lowered: dict[str, object], capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.rewrite(model, lowered, **lowered)
        with pytest.raises(FileProblem, match="plan does not hold"):
            load_model(model)
        assert run(["statement", str(model)]) == 4
        assert capsys.readouterr().out == ""


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
