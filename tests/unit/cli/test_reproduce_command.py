"""`dpadmm reproduce`: the list, names that are not known, and a sample of the engine."""

from __future__ import annotations

import json

import pytest

from dpadmm.cli.app import run
from dpadmm.reproduce import exhibit_names


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DPADMM_CACHE", str(tmp_path / "cache"))


def test_the_list_names_every_exhibit(capsys):
    assert run(["reproduce", "list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in exhibit_names())


def test_a_name_that_is_not_known_is_refused_with_those_that_are(capsys):
    assert run(["reproduce", "fig7"]) == 2
    assert "chen2020-fig1" in capsys.readouterr().err


def test_missing_data_are_listed(tmp_path, monkeypatch, capsys):
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("DPADMM_DATA", str(tmp_path / "data"))
    assert run(["reproduce", "liu2022-fig4", "--quick", "--out", str(tmp_path / "out")]) == 4
    told = capsys.readouterr().err
    assert all(name in told for name in ("covtype.npz", "w8a.npz", "bio_train.npz", "mushrooms.npz"))
    assert not (tmp_path / "out").exists()


def test_a_sample_from_the_command_line(tmp_path, capsys):
    out = tmp_path / "out"
    assert run(["reproduce", "chan2024-amplification", "--quick", "--jobs", "1", "--out", str(out)]) == 0
    assert {"chan2024-amplification.svg", "chan2024-amplification.csv", "chan2024.md", "index.md"} <= {
        path.name for path in out.iterdir()
    }
    page = (out / "chan2024.md").read_text()
    assert "*The paper shows:*" in page
    assert "*Its privacy claim (valid):*" in page
    assert "Quick mode" in page
    assert "| The paper's bound holds |" in page
    assert json.loads((out / "chan2024-amplification.json").read_text())["complete"]
    assert run(["reproduce", "chan2024-amplification", "--quick", "--draw-only", "--out", str(out)]) == 0


def test_a_paper_is_all_its_exhibits():
    from dpadmm.cli.reproduce_command import chosen

    assert set(chosen("huang2020")) == {name for name in exhibit_names() if name.startswith("huang2020")}
    assert chosen("all") == exhibit_names()
