"""The engine: what is measured once is kept, an interrupted run goes on, and what is written says how it was made."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from dpadmm.errors import FileProblem
from dpadmm.reproduce import Campaign, MeasurementStore, exhibit_names, find_exhibit
from dpadmm.reproduce.campaign import require_tables
from dpadmm.reproduce.exhibit import PlottedExhibit
from dpadmm.reproduce.exhibit_pages import Reproduced, section
from dpadmm.reproduce.measurement_store import measurement_key
from dpadmm.reproduce.numbers_file import ExhibitNumbers
from dpadmm.reproduce.papers import PAPERS

TOY = str(Path(__file__).parent / "toy_exhibit.py")
QUICK_CELLS = 2 * (2 * 2 + 1)


@pytest.fixture
def counted(tmp_path, monkeypatch):
    counter = tmp_path / "counted"
    monkeypatch.setenv("TOY_COUNT", str(counter))
    return lambda: len(counter.read_text()) if counter.exists() else 0


def run(tmp_path: Path, **options) -> Campaign:
    return Campaign((TOY,), tmp_path / "out", quick=True, **options)


def store(tmp_path: Path) -> MeasurementStore:
    return MeasurementStore(tmp_path / "measurements.jsonl")


def test_numbers_pictures_and_tables_are_written(tmp_path):
    run(tmp_path).carry_out(store(tmp_path))
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"toy.json", "toy.csv", "toy.svg", "toy.png", "index.md"} <= written
    assert "## Fig. 0: toy" in (tmp_path / "out" / "liu2022.md").read_text()
    numbers = json.loads((tmp_path / "out" / "toy.json").read_text())
    assert numbers["complete"]
    assert numbers["quick"]
    assert len(numbers["cells"]) == QUICK_CELLS
    rows = list(csv.DictReader((tmp_path / "out" / "toy.csv").open()))
    assert float(rows[0]["value"]) == 2.0


def test_resume_measures_nothing_again_and_without_it_everything(tmp_path, counted):
    run(tmp_path).carry_out(store(tmp_path))
    assert counted() == QUICK_CELLS
    run(tmp_path, resume=True).carry_out(store(tmp_path))
    assert counted() == QUICK_CELLS
    run(tmp_path).carry_out(store(tmp_path))
    assert counted() == 2 * QUICK_CELLS


def test_an_interrupted_run_goes_on_where_it_was(tmp_path, counted, monkeypatch):
    monkeypatch.setenv("TOY_STOP", "1")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path).carry_out(store(tmp_path))
    before = counted()
    assert 0 < len(store(tmp_path)._known) < QUICK_CELLS
    monkeypatch.delenv("TOY_STOP")
    run(tmp_path, resume=True).carry_out(store(tmp_path))
    # Only the measurement that was cut off is made twice.
    assert counted() == QUICK_CELLS + 1
    assert before >= 1


def test_what_an_interrupted_run_has_is_written_as_not_complete(tmp_path, monkeypatch):
    monkeypatch.setenv("TOY_STOP", "1")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path).carry_out(store(tmp_path))
    run(tmp_path).draw(store(tmp_path))
    numbers = json.loads((tmp_path / "out" / "toy.json").read_text())
    assert not numbers["complete"]
    assert 0 < len(numbers["cells"]) < QUICK_CELLS


def test_drawing_uses_the_numbers_in_the_folder(tmp_path, counted):
    run(tmp_path).carry_out(store(tmp_path))
    (tmp_path / "out" / "toy.svg").unlink()
    run(tmp_path).draw(MeasurementStore(tmp_path / "another.jsonl"))
    assert (tmp_path / "out" / "toy.svg").exists()
    assert counted() == QUICK_CELLS


def test_a_line_cut_in_two_is_passed_over(tmp_path):
    run(tmp_path).carry_out(store(tmp_path))
    path = tmp_path / "measurements.jsonl"
    path.write_text(path.read_text()[:-20])
    assert len(store(tmp_path)._known) == QUICK_CELLS - 1


def test_a_plan_that_nobody_certifies_is_a_result(tmp_path, monkeypatch):
    monkeypatch.setenv("TOY_REFUSE", "1")
    run(tmp_path).carry_out(store(tmp_path))
    numbers = json.loads((tmp_path / "out" / "toy.json").read_text())
    assert numbers["complete"]
    assert {cell["values"].get("refused") for cell in numbers["cells"] if cell["x"] == 3.0} == {"too fine a lattice"}
    page = section(Reproduced(find_exhibit(TOY), ExhibitNumbers.read(tmp_path / "out", "toy")))
    assert "- steep, left, at 3. too fine a lattice" in page


def test_two_processes_measure_the_same(tmp_path):
    run(tmp_path).carry_out(store(tmp_path))
    alone = json.loads((tmp_path / "out" / "toy.json").read_text())["cells"]
    run(tmp_path, jobs=2).carry_out(MeasurementStore(tmp_path / "another.jsonl"))
    together = json.loads((tmp_path / "out" / "toy.json").read_text())["cells"]
    assert [cell["values"]["value"] for cell in alone] == [cell["values"]["value"] for cell in together]


def test_a_key_follows_every_setting():
    exhibit = find_exhibit(TOY)
    assert isinstance(exhibit, PlottedExhibit)
    keys = {measurement_key(*exhibit.case(cell, quick)) for quick in (False, True) for cell in exhibit.cells(quick)}
    assert len(keys) == sum(1 for quick in (False, True) for _ in exhibit.cells(quick))
    steeper = replace(exhibit, curves=(replace(exhibit.curves[0], algorithm=type(exhibit.curves[0].algorithm)(3.0)),))
    cell = next(iter(steeper.cells(True)))
    assert measurement_key(*steeper.case(cell, True)) not in keys
    # The figure's name is not a setting: figures share measurements.
    renamed = replace(exhibit, name="other")
    assert measurement_key(*renamed.case(cell, True)) in keys


def test_a_key_follows_the_code(tmp_path):
    copy = tmp_path / "toy_copy.py"
    text = Path(TOY).read_text()
    copy.write_text(text)
    cell = next(iter(find_exhibit(str(copy)).cells(True)))
    before = measurement_key(*find_exhibit(str(copy)).case(cell, True))
    other = tmp_path / "changed" / "toy_copy.py"
    other.parent.mkdir()
    other.write_text(text.replace("self.slope * case.x", "self.slope + case.x"))
    assert measurement_key(*find_exhibit(str(other)).case(cell, True)) != before


def test_missing_data_are_listed_before_anything_is_computed(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("DPADMM_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DPADMM_CACHE", str(tmp_path / "cache"))
    with pytest.raises(FileProblem, match=r"bio_train, covtype, mushrooms, w8a.*nothing is fetched"):
        require_tables([find_exhibit("liu2022-fig2")])


@pytest.mark.parametrize("name", exhibit_names())
def test_every_exhibit_is_whole(name):
    exhibit = find_exhibit(name)
    assert exhibit.name == name
    assert exhibit.paper in PAPERS
    assert all((exhibit.shows, exhibit.privacy, exhibit.setting, exhibit.number, exhibit.title))
    assert list(exhibit.cells(quick=True))
    if isinstance(exhibit, PlottedExhibit):
        labels = {curve.label for curve in exhibit.curves}
        metrics = {metric.key for metric in exhibit.metrics}
        asked = [check for claim in exhibit.claims for check in (claim.check, claim.tuned) if check is not None]
        assert len(labels) == len(exhibit.curves)
        assert {metric.above for metric in exhibit.metrics} <= {"", *labels}
        assert all({check.this, check.that} <= labels and check.metric in metrics for check in asked)
        assert not exhibit.best or (exhibit.best[0] in labels and set(exhibit.best[1:]) <= metrics)
        keys = [measurement_key(*exhibit.case(cell, True)) for cell in exhibit.cells(quick=True)]
        assert len(keys) == len(set(keys))


def test_every_published_setting_has_five_seeds_at_least():
    for name in exhibit_names():
        exhibit = find_exhibit(name)
        if isinstance(exhibit, PlottedExhibit) and any(metric.key != "divergence" for metric in exhibit.metrics):
            assert exhibit.seeds >= 5, name
