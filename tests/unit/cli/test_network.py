"""`dpadmm silo` and `dpadmm network`, from cards to a model, as owners and a coordinator use them."""

from __future__ import annotations

import json
import threading

import numpy as np
import pandas as pd
import pytest

from dpadmm import load_model
from dpadmm.cli.app import run
from dpadmm.network.cards import Card
from dpadmm.network.silo_home import SiloHome
from dpadmm.network.transports.sockets import SiloServer

SCHEMA = """
[columns.age]
kind = "numeric"
lower = 0
upper = 100

[columns.work]
kind = "categorical"
categories = ["a", "b"]

[target]
column = "ill"
kind = "classes"
classes = ["no", "yes"]
"""
MODEL = ["--epsilon", "1", "--delta", "1e-4", "--steps", "4", "--rows", "400"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Two owners' tables, in a folder with a short name for its sockets."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "patients.toml").write_text(SCHEMA)
    rng = np.random.default_rng(0)
    for name, rows in (("north", 250), ("south", 150)):
        age = rng.uniform(0, 100, rows)
        frame = pd.DataFrame({"age": age, "work": rng.choice(["a", "b"], rows)})
        frame["ill"] = np.where(age > 50, "yes", "no")
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


def said(capsys):
    return json.loads(capsys.readouterr().out)


def made(place, capsys, name, address="127.0.0.1:1"):
    arguments = ["silo", "init", name, "--name", name, "--table", f"{name}.csv", "--address", address, "--json"]
    assert run(arguments) == 0
    return said(capsys)


def proposed(place, capsys, *more):
    cards = ["--card", "north/card.json", "--card", "south/card.json"]
    code = run(["network", "plan", *cards, "--schema", "patients.toml", *MODEL, "--out", "run", "--json", *more])
    return code, capsys.readouterr()


def serving(place, name):
    """The server of a silo in a thread; its address goes into the coordinator's copy of its card."""
    home, caller = SiloHome(place / name), Card.read(place / "run" / "card.json")
    silo, vault = home.silo(lambda step: None)
    server = SiloServer("127.0.0.1:0", home.tls, caller.certificate, silo.answer, 0.0)
    threading.Thread(target=server.serve, daemon=True).start()
    card = home.card
    Card(card.name, card.key, card.certificate, server.address).write(place / "run" / "cards" / f"{name}.json")
    return server, vault


def test_from_cards_to_a_model(place, capsys):
    for name in ("north", "south"):
        assert made(place, capsys, name)["key"] == Card.read(place / name / "card.json").key
    code, printed = proposed(place, capsys)
    assert code == 0
    plan = json.loads(printed.out)
    assert plan["epsilon"] == 1.0
    assert plan["rounds"] == 4
    assert run(["network", "run", "run", "--out", "model", "--patience", "0.2", "--json"]) == 4
    assert "no answer" in said(capsys)["error"]["message"].lower()
    for name in ("north", "south"):
        assert run(["silo", "approve", name, "run/proposal.json", "--yes", "--json"]) == 0
        assert said(capsys)["proposal digest"] == plan["proposal_digest"]
    servers = [serving(place, name) for name in ("north", "south")]
    assert run(["network", "run", "run", "--out", "model", "--json"]) == 0
    outcome = said(capsys)
    assert outcome["silos"] == 2
    assert outcome["epsilon_if_all_collude"] == pytest.approx(1.0, rel=1e-3)
    for server, vault in servers:
        server.close()
        vault.release()
    assert load_model(place / "model").n_features_in_ == 3
    assert run(["evaluate", "model", "north.csv", "--public-or-test", "--json"]) == 0
    assert said(capsys)["accuracy"] > 0.7
    assert run(["silo", "status", "north", "--json"]) == 0
    assert said(capsys)["questions answered in it"] == 4
    assert run(["network", "status", "run", "--json"]) == 0
    assert said(capsys)["answered"] == "4 of 4 questions"
    # All totals are in the journal: no silo is needed to write the model again.
    assert run(["network", "run", "run", "--out", "again", "--patience", "0.2", "--json"]) == 0
    assert np.array_equal(load_model(place / "again").weights_, load_model(place / "model").weights_)


def test_a_run_goes_on_without_a_silo_that_left(place, capsys):
    pd.read_csv("north.csv").to_csv("west.csv", index=False)
    for name in ("north", "south", "west"):
        made(place, capsys, name)
    code, _ = proposed(place, capsys, "--card", "west/card.json", "--spares", "1", "--rows", "650")
    assert code == 0
    before = json.loads((place / "run" / "proposal.json").read_text())
    assert run(["network", "drop", "run", "--silo", "east", "--json"]) == 2
    assert "roster knows nothing" in said(capsys)["error"]["message"]
    assert run(["network", "drop", "run", "--silo", "west", "--json"]) == 0
    facts = said(capsys)
    after = json.loads((place / "run" / "proposal.json").read_text())
    assert facts["silos"] == 2
    assert set(after["roster"]["silos"]) == {"north", "south"}
    assert after["plan_digest"] == before["plan_digest"]
    assert after["continues"]
    assert run(["silo", "approve", "north", "run/proposal.json", "--epoch", "2", "--yes", "--json"]) == 3
    assert "took no part" in said(capsys)["error"]["message"]


def test_an_owner_sees_both_epsilons_and_may_refuse(place, capsys, monkeypatch):
    for name in ("north", "south"):
        made(place, capsys, name)
    proposed(place, capsys)
    monkeypatch.setattr("typer.confirm", lambda *words, **more: False)
    assert run(["silo", "approve", "north", "run/proposal.json"]) == 2
    shown = capsys.readouterr()
    for words in ("epsilon if all others collude", "roster digest", "may collude (c)", "Compare the roster digest"):
        assert words in shown.out
    assert "nothing was approved or charged" in shown.err.lower()
    assert not (place / "north" / "approvals").exists()


def test_a_table_that_does_not_fit_is_told_to_its_owner_alone(place, capsys):
    for name in ("north", "south"):
        made(place, capsys, name)
    proposed(place, capsys)
    (place / "south.csv").write_text("age,work,ill\n77,a,perhaps\n")
    assert run(["silo", "approve", "south", "run/proposal.json", "--yes", "--json"]) in (2, 3)
    assert "perhaps" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--colluding", "0"], "every silo knows its own share"),
        (["--colluding", "2"], "1 to 1"),
        (["--silos", "3"], "one card of each silo"),
        (["--solver", "dp-sadmm"], "reads all rows"),
        (["--private-graph", "0.2", "--penalty", "graph"], "cannot be written down"),
    ],
    ids=str,
)
def test_plans_that_are_not_true_are_refused(place, capsys, more, words):
    for name in ("north", "south"):
        made(place, capsys, name)
    code, printed = proposed(place, capsys, *more)
    assert code in (2, 3)
    assert words in json.loads(printed.out)["error"]["message"]


def test_a_plan_without_owners_tells_both_epsilons(capsys):
    shared = ["network", "plan", "--silos", "4", "--colluding", "1", "--features", "104", "--rows", "30162", "--json"]
    assert run([*shared, "--epsilon", "1", "--delta", "1e-5"]) == 0
    assert said(capsys)["epsilon_if_all_collude"] == pytest.approx(1.84, abs=0.01)


def test_a_simulation_prints_what_was_asked_for(capsys, monkeypatch):
    monkeypatch.setattr("dpadmm.datasets.load", small_set)
    assert run(["network", "run", "--data", "demo", "--silos", "3", "--steps", "3", "--delta", "1e-4", "--json"]) == 0
    found = said(capsys)
    assert {"accuracy", "epsilon", "epsilon_if_all_collude", "rounds", "silos"} <= set(found)
    assert (found["rounds"], found["silos"]) == (3, 3)


def test_a_decentralised_algorithm_is_simulated_too(capsys, monkeypatch):
    monkeypatch.setattr("dpadmm.datasets.load", small_set)
    shared = ["network", "run", "--data", "demo", "--silos", "4", "--delta", "1e-4", "--json"]
    assert run([*shared, "--algorithm", "ipadmm", "--topology", "ring"]) == 0
    found = said(capsys)
    assert {"accuracy", "epsilon", "epsilon_if_all_collude", "rounds", "silos"} <= set(found)
    assert found["silos"] == 4


def small_set(name):
    from dpadmm.datasets import make_demo

    return make_demo(n_rows=900)


@pytest.mark.parametrize(
    "arguments",
    [
        ["network", "run"],
        ["network", "run", "nowhere", "--data", "demo"],
        ["network", "run", "nowhere", "--out", "x"],
        ["network", "status", "nowhere"],
        ["network", "run", "--data", "demo", "--transport", "pigeon"],
        ["silo", "status", "nowhere"],
        ["silo", "init", "x", "--name", "x", "--table", "none.csv", "--address", "h:1"],
        ["silo", "init", "x", "--name", "a/b", "--table", "north.csv", "--address", "h:1"],
        ["silo", "init", "x", "--name", "x", "--table", "north.csv", "--address", "nowhere"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_is_refused_in_words(place, capsys, arguments):
    assert run([*arguments, "--json"]) in (2, 3, 4)
    message = said(capsys)["error"]["message"]
    assert message.startswith("Got ")
    assert "Expected " in message
