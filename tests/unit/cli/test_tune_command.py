"""`dpadmm tune`: the cost before the search, the winner after it, and refusals in words."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dpadmm import Ledger, load_model
from dpadmm.cli.app import run
from dpadmm.cli.model_folder import MODEL_FILES
from dpadmm.cli.tune_command import HELP, SEARCHABLE, read_space
from dpadmm.errors import InvalidParameter
from dpadmm.estimators import DPLogisticRegression
from dpadmm.privacy.wording import SPENT, rounded_up
from tests.unit.cli.made_up_tables import SECRET, fit_arguments, tree, write_inputs

SPACE = ["--try", "penalty=l1,l2", "--try", "alpha=1e-4,1e-2"]


def tune_arguments(folder: Path, *more: str) -> list[str]:
    fit = [word for word in fit_arguments(folder)[1:] if word != "--quiet"]
    return ["tune", *fit, "--solver", "dp-gd", "--steps", "5", *SPACE, "--mean-trials", "3", *more]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_inputs(tmp_path)
    return tmp_path


def test_a_search_tells_its_cost_then_writes_its_winner(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tune_arguments(folder)) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert shown.out.index("What this search costs") < shown.out.index("Model written to")
    for words in (
        "320 train, 80 score",
        "geometric with mean 3",
        "stays secret",
        "(1, 1e-05)-differentially private",
    ):
        assert words in " ".join(shown.out.split())
    model = folder / "model"
    assert tree(model) == set(MODEL_FILES)
    assert all(SECRET.encode() not in path.read_bytes() for path in model.iterdir())
    loaded = load_model(model)
    assert loaded.privacy_.epsilon == 1.0
    assert loaded.plan_.base_budget.epsilon < 1.0
    page = (model / "report.html").read_text()
    chosen = re.search("chosen (.*) noisy score ([0-9.]+), the best", " ".join(shown.out.split()))
    assert chosen is not None
    assert f"<td>chosen</td><td>{chosen[1]}</td>" in page
    assert f"<td>noisy score</td><td>{chosen[2]}, the best of several noisy ones</td>" in page
    assert run(["statement", str(model), "--verify"]) == 0
    assert "private search over 4 candidates" in capsys.readouterr().out


def test_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tune_arguments(folder, "--json", "--trials", "poisson", "--seed", "1")) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told["best_params"]) == {"penalty", "alpha"}
    assert told["cost"]["trials"] == {"law": "poisson", "mean": 3.0, "shape": None}
    assert 0.99 <= told["cost"]["epsilon_achieved"] <= told["privacy"]["epsilon"] == 1.0
    assert told["privacy"]["seeded"] is True


def test_the_cost_needs_no_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "train.csv").unlink()
    assert run(tune_arguments(folder, "--rows", "4000", "--dry-run", "--json")) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["training_rows"], told["validation_rows"]) == (3200, 800)
    assert told["base_epsilon"] < told["epsilon"] == 1.0
    assert run(tune_arguments(folder, "--rows", "4000", "--dry-run")) == 0
    assert "What this search costs" in capsys.readouterr().out
    assert not (folder / "model").exists()


def test_the_cost_needs_no_output_folder_and_a_search_does(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = tune_arguments(folder, "--rows", "4000")
    place = words.index("--out")
    without = [*words[:place], *words[place + 2 :]]
    assert run([*without, "--dry-run"]) == 0
    capsys.readouterr()
    assert run(without) != 0
    assert "no --out" in capsys.readouterr().err


def test_the_cost_says_what_the_ledger_will_count(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = folder / "ledger.db"
    assert run(["ledger", "init", str(place), "--dataset", "clinic", "--epsilon", "2", "--delta", "1e-4"]) == 0
    paid = ["--ledger", str(place), "--dataset", "clinic", "--rows", "400"]
    capsys.readouterr()
    assert run(tune_arguments(folder, *paid, "--dry-run", "--json")) == 0
    told = json.loads(capsys.readouterr().out)
    assert Ledger(place).spent("clinic") == (0.0, 0.0)
    assert run(tune_arguments(folder, *paid)) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"clinic will have spent ε = {rounded_up(told['dataset_spent'])}. {SPENT}" in shown
    assert Ledger(place).spent("clinic")[0] == told["dataset_spent"]
    for epsilon in ("1.9", "30"):
        capsys.readouterr()
        assert run(tune_arguments(folder, *paid, "--epsilon", epsilon, "--dry-run")) == 3
        shown = capsys.readouterr()
        assert "What this search costs" in shown.out
        assert "will have spent" not in shown.out
        assert "Got a search after which 'clinic' would have spent" in shown.err
        assert run(tune_arguments(folder, *paid, "--epsilon", epsilon, "--dry-run", "--json")) == 3
        assert "error" in json.loads(capsys.readouterr().out)


def test_quiet(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tune_arguments(folder, "--quiet")) == 0
    assert capsys.readouterr() == ("", "")


def test_the_ledger_is_charged_once_or_refuses_before_the_table_is_opened(folder: Path, capsys) -> None:
    place = folder / "ledger.db"
    limit = ["--dataset", "clinic", "--epsilon", "2", "--delta", "1e-4", "--owner", "Ada"]
    assert run(["ledger", "init", str(place), *limit]) == 0
    paid = ["--ledger", str(place), "--dataset", "clinic"]
    assert run(tune_arguments(folder, *paid)) == 0
    assert len(Ledger(place).account("clinic").fits) == 1
    assert run(["ledger", "verify", str(place), "--model", str(folder / "model")]) == 0
    assert run(["ledger", "show", str(place)]) == 0
    capsys.readouterr()
    (folder / "train.csv").unlink()
    assert run(tune_arguments(folder, *paid, "--epsilon", "1.9", "--force", "--json")) == 3
    assert "Nothing was charged" in json.loads(capsys.readouterr().out)["error"]["message"]
    assert len(Ledger(place).account("clinic").fits) == 1


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--try", "C=1"], "NAME=V1,V2"),
        (["--try", "alpha"], "NAME=V1,V2"),
        (["--try", "alpha=1"], "once a name"),
        (["--trials", "fixed"], "one of geometric"),
        (["--mean-trials", "1"], "mean"),
        (["--scoring", "auc"], "score"),
        (["--accountant", "pld"], "'profile' or 'rdp'"),
        (["--dry-run"], "--rows"),
        (["--validation", "2"], "share"),
        (["--epsilon", "0"], "epsilon"),
        (["--dataset", "clinic"], "ledger"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_input(folder: Path, more: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tune_arguments(folder, *more)) == 2
    assert words in capsys.readouterr().err
    assert run(tune_arguments(folder, *more, "--json")) == 2
    assert words in json.loads(capsys.readouterr().out)["error"]["message"]
    assert not (folder / "model").exists()


def test_a_search_over_nothing_is_refused_before_the_table_is_opened(folder: Path, capsys) -> None:
    (folder / "train.csv").unlink()
    words = [word for word in tune_arguments(folder) if word not in ("--try", *SPACE)]
    for more in (["--try", "alpha=1e-4,1e-3"], ["--penalty", "l1", "--try", "l1_ratio=0.1,0.9"]):
        for dry in ([], ["--rows", "400", "--dry-run"]):
            assert run([*words, *more, *dry]) == 2
            assert "paid for and change nothing" in capsys.readouterr().err


def test_the_examples_of_the_help_search_over_something(folder: Path) -> None:
    examples = HELP.split("Examples")[1].replace("\\\n", " ").splitlines()
    spaces = [line.split() for line in examples if "--try" in line]
    assert len(spaces) == 2
    for words in spaces:
        chosen = [word for word in words if "=" in word or word in ("--try", "--penalty", "l1")]
        assert run([*tune_arguments(folder)[: -len(SPACE) - 2], *chosen, "--rows", "4000", "--dry-run"]) == 0


def test_values_are_read_as_they_look() -> None:
    assert read_space(["steps=5,10", "clip_norm=null,0.5", "solver=auto"]) == {
        "steps": [5, 10],
        "clip_norm": [None, 0.5],
        "solver": ["auto"],
    }
    with pytest.raises(InvalidParameter, match="at least one"):
        read_space([])


def test_what_can_be_tried_are_parameters() -> None:
    assert set(SEARCHABLE) <= set(DPLogisticRegression().get_params())
