"""The tool behind `make mutants`: what mistakes it makes, how it names them, and that its lists speak of this code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants.places import mutants_of
from tests.mutants.sample import ROOT, SOURCES, all_mutants, by_hand, guard_of, guards, harmless, sampled

SOURCE = '''"""Text with a number: 1."""

LIMIT = 2.0


def charge(shift: float, slack: float = 0.5) -> float:
    """Not a number: 3."""
    if shift < 0 and not slack:
        raise InvalidParameter("a shift below 0", "4", "correct it")
    total = max(shift, slack)
    for part in (shift, slack):
        total += part
    return total * 7
'''
EXPECTED = {
    ("LIMIT = 2.0", "LIMIT = 4.0"),
    ("LIMIT = 2.0", "LIMIT = 1.94"),
    ("if shift < 0 and not slack:", "if shift <= 0 and not slack:"),
    ("if shift < 0 and not slack:", "if shift > 0 and not slack:"),
    ("if shift < 0 and not slack:", "if (shift < 0) or (not slack):"),
    ("if shift < 0 and not slack:", "if (shift < 0):"),
    ("if shift < 0 and not slack:", "if shift < 0 and (slack):"),
    ("if shift < 0 and not slack:", "if (not (shift < 0 and not slack)):"),
    ('raise InvalidParameter("a shift below 0", "4", "correct it")', "pass"),
    ("total = max(shift, slack)", "total = min(shift, slack)"),
    ("total = max(shift, slack)", "total = (shift)"),
    ("for part in (shift, slack):", "for part in list((shift, slack))[:1]:"),
    ("total += part", "pass"),
    ("total += part", "total -= part"),
    ("return total * 7", "return (total)"),
    ("return total * 7", "return total * 8"),
    ("return total * 7", "return (total * 7) * 0.97"),
}


def test_the_mistakes_of_a_function():
    made = {(mutant.before, mutant.after) for mutant in mutants_of("x.py", SOURCE)}
    assert made >= EXPECTED
    assert not any('"4"' in before and after != "pass" for before, after in made), "words decide nothing"
    assert not any("Text" in before or "Not a number" in before for before, _ in made)


def test_each_is_one_change_in_a_file_that_can_be_read():
    for mutant in mutants_of("x.py", SOURCE):
        assert mutant.function == ("" if mutant.line == 3 else "charge")
        assert mutant.before in " ".join(SOURCE.split())
        assert mutant.after in " ".join(mutant.source.split())
        ast.parse(mutant.source)


def test_letters_beyond_ascii_do_not_shift_the_change():
    (mutant,) = [m for m in mutants_of("x.py", 'µ = "‖A‖"; x = 3\n') if m.after.endswith("4")]
    assert mutant.source == 'µ = "‖A‖"; x = 4\n'


def test_a_sample_is_seeded_and_a_larger_one_holds_a_smaller_one():
    small, large = sampled(8, 1, quick=True), sampled(12, 1, quick=True)
    assert len(small) == 8
    assert [m.name for m in large[:8]] == [m.name for m in small]
    assert [m.name for m in sampled(8, 2, quick=True)] != [m.name for m in small]
    assert len({(m.file, m.line) for m in large}) == 12
    assert all(m.is_another_program for m in large)


def test_every_guarded_file_and_every_guard_is_there():
    for guard in guards():
        for test in guard.tests:
            assert (ROOT / test.split("::")[0]).is_file(), test
        for file in guard.files:
            assert (SOURCES / file).is_file(), file
            assert guard_of(file) == guard, f"{file} stands twice"
            assert guard.mutants_of(file), f"no mistake can be made in {file}"


def test_mistakes_written_by_hand_fit_the_code_as_it_is():
    """`by_hand` refuses what stands nowhere, or twice."""
    written = by_hand()
    assert len(written) >= 25
    assert all(mutant.is_another_program for mutant in written)
    assert len({mutant.name for mutant in written}) == len(written)


@pytest.fixture(scope="module")
def names():
    return {mutant.name for mutant in all_mutants()}


def test_harmless_mistakes_fit_the_code_and_say_why(names):
    for name, why in harmless().items():
        assert name in names, f"harmless.toml speaks of code that is no longer there: {name}"
        assert len(why) > 20


def test_the_page_that_explains_it_names_every_file():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for path in Path(ROOT / "tests" / "mutants").glob("[a-z]*.*"):
        assert f"`{path.name}`" in text, path.name
