"""docs/algorithms.md: every solver has a section, and every registered name is documented with its class."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpadmm.declare.penalties import PENALTIES
from dpadmm.privacy.accountants import ACCOUNTANTS
from dpadmm.privacy.sampling import REFUSED, SAMPLERS
from dpadmm.problem import LOSSES, REGULARIZERS, SMOOTHERS
from dpadmm.solvers import SOLVERS

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "algorithms.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", TEXT, flags=re.MULTILINE | re.DOTALL))

HOMES = {
    "Losses": LOSSES,
    "Penalties of the estimators": PENALTIES,
    "Regularisers": REGULARIZERS,
    "Smoothers": SMOOTHERS,
    "Samplers": SAMPLERS,
    "Accountants": ACCOUNTANTS,
}
NAMES = [(title, name) for title, registry in HOMES.items() for name in registry]


@pytest.mark.parametrize("name", SOLVERS.names())
def test_every_solver_has_a_section(name: str) -> None:
    section = SECTIONS[name]
    kind = SOLVERS[name]
    assert f"`{kind.__module__}.{kind.__qualname__}`" in section
    for word in ("*Asks.*", "*Defaults.*", "*When.*"):
        assert word in section


@pytest.mark.parametrize("name", SOLVERS.names())
def test_every_solver_is_in_the_table(name: str) -> None:
    assert re.search(rf"^\| `{name}` \|", TEXT, flags=re.MULTILINE)


@pytest.mark.parametrize(("title", "name"), NAMES)
def test_every_registered_name_is_documented(title: str, name: str) -> None:
    assert f"`{name}`" in SECTIONS[title]


@pytest.mark.parametrize("title", ["Losses", "Smoothers", "Samplers", "Accountants"])
def test_tables_name_no_unknown_part(title: str) -> None:
    first = re.findall(r"^\| `([\w-]+)` \|", SECTIONS[title], flags=re.MULTILINE)
    assert set(first) == set(HOMES[title].names())


@pytest.mark.parametrize("beta", ["full-admm 0.1", "dp-sadmm 0.1", "dp-vradmm 0.1", "ssadmm 0.25", "mpadmm 0.5"])
def test_documented_beta_is_the_default(beta: str) -> None:
    name, value = beta.split()
    assert f"`beta` {value}" in SECTIONS[name]
    assert SOLVERS[name].beta == float(value)  # type: ignore[attr-defined]


def test_refused_samplers_are_in_the_limitations() -> None:
    text = (DOCS / "limitations.md").read_text(encoding="utf-8")
    assert {"shuffle", "with-replacement", "stratified"} <= set(REFUSED)
    for words in ("shuffled epochs", "with replacement", "stratified sampling"):
        assert re.search(words.replace(" ", r"\s+"), text), words
