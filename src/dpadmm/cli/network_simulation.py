"""Owners that this machine plays: to see what a federation costs, and how it looks."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpadmm.cli.outputs import new_folder
from dpadmm.cli.screen import print_json, print_pairs, working
from dpadmm.errors import InvalidParameter
from dpadmm.privacy.wording import rounded_up

if TYPE_CHECKING:
    from dpadmm.cli.network_requests import NetworkRunRequest
    from dpadmm.network.coordinator import Exchanged
    from dpadmm.network.proposal import Proposal

Tables = Mapping[str, tuple[Any, Any]]
HOSPITALS = ("north", "east", "south", "west")
SHARES = (0.4, 0.3, 0.2)
"""Of the rows with the first three hospitals; the last has the rest."""
PATIENCE = 60.0
PAGE = "network.html"
TRANSPORTS = ("embedded", "process")
SPLIT_SEED = 0
"""Of the public division of a public data set: no row is private here."""


def simulate(request: NetworkRunRequest) -> None:
    """Divide public data among owners, train, and say how good the model is."""
    from dpadmm.cli.network_command import plain_model

    if request.transport not in TRANSPORTS:
        raise InvalidParameter(f"--transport {request.transport}", " or ".join(TRANSPORTS), "choose one of these")
    if request.out is not None:
        raise InvalidParameter("--out with --data", "no --out: a simulation is measured, not kept", "drop --out")
    train, test, classes = _divided(request)
    if request.algorithm != "sums":
        _decentralised(request, train, test, classes)
        return
    model = plain_model(request, classes)
    began = time.monotonic()
    with working("training", visible=not (request.json or request.quiet)):
        exchanges: list[Exchanged] = []
        fitted, proposal = _fitted(request, model, train, exchanges)
    outcome = {
        "accuracy": float(np.mean(fitted.predict(test[0]) == test[1])),
        "epsilon": proposal.plan.budget.epsilon,
        "epsilon_if_all_collude": proposal.epsilon_if_all_collude,
        "rounds": sum(each.name == "ask" for each in exchanges),
        "silos": proposal.roster.size,
        "colluding": proposal.roster.colluding,
        "seconds": time.monotonic() - began,
        "bytes_from_a_silo": sum(max(each.received.values(), default=0) for each in exchanges),
    }
    if request.json:
        print_json({**outcome, "privacy": fitted.privacy_.to_dict()})
    elif not request.quiet:
        print_pairs("A simulated federation", _told(outcome, proposal))


def _decentralised(request: NetworkRunRequest, tables: Tables, test: tuple[Any, Any], classes: list[Any]) -> None:
    """Nodes that send each other noised iterates: each promises for its own rows, whoever else colludes."""
    from dpadmm.network.decentralised import train_decentralised

    rounds: list[object] = []
    model = train_decentralised(
        list(tables.values()),
        request.epsilon,
        request.delta,
        random_state=request.seed,
        observers=(rounds.append,),
        algorithm=request.algorithm,
        graph=request.topology,
        classes=classes,
    )
    outcome = {
        "accuracy": float(np.mean(model.predict(test[0]) == test[1])),
        "epsilon": request.epsilon if model.private else None,
        "epsilon_if_all_collude": request.epsilon if model.private else None,
        "rounds": len(rounds),
        "silos": len(tables),
    }
    if request.json:
        print_json(outcome)
    elif not request.quiet:
        promised = rounded_up(request.epsilon) if model.private else "none: this algorithm has no proof, or a seed"
        pairs = [("accuracy", f"{outcome['accuracy']:.1%}"), ("ε of each owner, whoever else colludes", promised)]
        print_pairs(f"{request.algorithm} among {len(tables)} owners", [*pairs, ("rounds", str(len(rounds)))])


def demonstrate(epsilon: float, delta: float, out: Path, json: bool) -> None:
    """Four processes with TLS between them; the report is one page."""
    from dpadmm.datasets import make_demo
    from dpadmm.estimators import DPLogisticRegression
    from dpadmm.network.simulated_silos import simulated_silos
    from dpadmm.network.traffic_page import traffic_page

    train, test = make_demo(), make_demo(n_rows=10_000, random_state=1)
    places = np.split(np.arange(len(train.y)), (len(train.y) * np.cumsum(SHARES)).astype(int))
    tables = {name: (train.X[place], train.y[place]) for name, place in zip(HOSPITALS, places, strict=True)}
    model = DPLogisticRegression(
        epsilon, delta, penalty="l1", alpha=5e-3, row_norm=10.0, fit_intercept=False, classes=[-1, 1], steps=10
    )
    exchanges: list[Exchanged] = []
    began = time.monotonic()
    with (
        working("four hospitals start their silos, and answer", visible=not json),
        simulated_silos(model, tables, colluding=1) as silos,
    ):
        proposal = silos.run.proposal
        fitted = proposal.estimator.fit(silos.run.federation(1, PATIENCE, exchanges.append))
    seconds = time.monotonic() - began
    accuracy = float(np.mean(fitted.predict(test.X) == test.y))
    relevant = {int(i) for i in train.extras["relevant"]}
    largest = np.argsort(-np.abs(np.ravel(fitted.coef_)))[: len(relevant)]
    cards = [
        ("accuracy on test rows", f"{accuracy:.1%}"),
        ("relevant features found", f"{len(relevant.intersection(largest.tolist()))} of {len(relevant)}"),
    ]
    page = traffic_page("Four hospitals, one model", proposal, exchanges, str(fitted.privacy_), cards)
    with new_folder(out, (PAGE,), force=True) as folder:
        (folder / PAGE).write_text(page, encoding="utf-8")
    outcome = {
        "accuracy": accuracy,
        "epsilon": proposal.plan.budget.epsilon,
        "epsilon_if_all_collude": proposal.epsilon_if_all_collude,
        "rounds": sum(each.name == "ask" for each in exchanges),
        "silos": proposal.roster.size,
        "seconds": seconds,
        "out": str(out / PAGE),
    }
    if json:
        print_json(outcome)
    else:
        print_pairs("Four hospitals, one model", [*_told(outcome, proposal), ("report", str(out / PAGE))])


def _fitted(request: NetworkRunRequest, model: Any, tables: Tables, exchanges: list[Exchanged]) -> tuple[Any, Proposal]:
    if request.transport == "process":
        from dpadmm.network.simulated_silos import simulated_silos

        with simulated_silos(model, tables, request.colluding, seed=request.seed) as silos:
            federation = silos.run.federation(1, request.patience, exchanges.append)
            return silos.run.proposal.estimator.fit(federation), silos.run.proposal
    from dpadmm.network import Federation

    federation = Federation.embedded(tables, request.colluding, seed=request.seed, observe=exchanges.append)
    fitted = model.fit(federation)
    assert federation.proposal is not None
    return fitted, federation.proposal


def _divided(request: NetworkRunRequest) -> tuple[Tables, tuple[Any, Any], list[Any]]:
    """Tables by owner, test rows, and the classes: all public."""
    names = request.data or []
    if len(names) == 1 and request.schema is None:
        return _of_data_set(names[0], 4 if request.silos is None else request.silos)
    return _of_tables(request, [Path(name) for name in names])


def _of_data_set(name: str, silos: int) -> tuple[Tables, tuple[Any, Any], list[Any]]:
    from dpadmm.datasets import load

    data = load(name)
    order = np.random.default_rng(SPLIT_SEED).permutation(data.X.shape[0])
    parts = np.array_split(order, silos)
    tables = {f"silo-{place + 1}": (data.X[part], data.y[part]) for place, part in enumerate(parts)}
    test = (data.X, data.y) if data.X_test is None else (data.X_test, data.y_test)
    return tables, test, sorted({each.item() for each in np.unique(data.y)})


def _of_tables(request: NetworkRunRequest, places: Sequence[Path]) -> tuple[Tables, tuple[Any, Any], list[Any]]:
    from dpadmm.tables import Schema, encode, read_table

    if request.schema is None or len(places) < 2 or request.silos not in (None, len(places)):
        raise InvalidParameter(
            "--data with files",
            "--schema, and one --data FILE for each owner",
            "name a public data set instead, or give a schema and at least two tables",
        )
    schema = Schema.read(request.schema)
    schema = schema if request.target is None else schema.with_target(request.target)
    classes = (schema.target.classes if schema.target else None) or ()
    if not classes:
        raise InvalidParameter("a target that has no classes", "classes", "simulate a classification")
    read = {f"silo-{k + 1}": encode(read_table(place), schema, with_target=True) for k, place in enumerate(places)}
    tables = {name: (each.X, each.y) for name, each in read.items()}
    everything = np.concatenate([X for X, _ in tables.values()]), np.concatenate([y for _, y in tables.values()])
    return tables, everything, list(classes)


def _told(outcome: Mapping[str, Any], proposal: Proposal) -> list[tuple[str, str]]:
    return [
        ("accuracy", f"{outcome['accuracy']:.1%}"),
        ("ε towards the coordinator and colluding owners", rounded_up(outcome["epsilon"])),
        ("ε if all other owners collude", rounded_up(outcome["epsilon_if_all_collude"])),
        ("owners, of whom may collude", f"{outcome['silos']}, {proposal.roster.colluding}"),
        ("questions", str(outcome["rounds"])),
        ("seconds", f"{outcome['seconds']:.1f}"),
    ]
