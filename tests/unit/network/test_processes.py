"""Silos in processes of their own behind TLS: the same model as in one process, through crashes, and no stranger."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from dpadmm.errors import FileProblem, InvalidParameter
from dpadmm.network.cards import Card, parsed_address
from dpadmm.network.certificates import TlsFiles, client_context, make_certificate
from dpadmm.network.coordinator import SilosMissing
from dpadmm.network.encoding import digest
from dpadmm.network.messages import REFUSED
from dpadmm.network.silo_home import SiloHome, SiloSettings
from dpadmm.network.simulated_silos import simulated_silos
from dpadmm.network.transports.sockets import SiloServer, SocketTransport
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.ledger import Ledger
from tests.unit.network.parties import Parties, small_model, split, table


def keys(folder: Path, name: str) -> tuple[TlsFiles, str]:
    key, certificate = make_certificate(name)
    files = TlsFiles(folder / f"{name}.key", folder / f"{name}.crt")
    files.key.write_bytes(key)
    files.certificate.write_bytes(certificate)
    return files, certificate.decode()


@pytest.fixture
def ends(tmp_path):
    """A server that answers everything twice over, and who may call it."""
    silo, silo_certificate = keys(tmp_path, "silo")
    caller, caller_certificate = keys(tmp_path, "caller")
    server = SiloServer("127.0.0.1:0", silo, caller_certificate, lambda raw: raw + raw, reply_every=0.0)
    threading.Thread(target=server.serve, daemon=True).start()
    card = Card("silo", "00" * 32, silo_certificate, server.address)
    yield card, caller, tmp_path
    server.close()


def test_messages_of_any_length_go_there_and_back(ends):
    card, caller, _ = ends
    ways = SocketTransport({"silo": card}, caller)
    for size in (0, 1, 100_000, 3_000_000):
        assert ways.exchange({"silo": b"x" * size}, 20.0) == {"silo": b"x" * 2 * size}
    ways.close()


def test_another_caller_gets_no_answer(ends):
    card, _, folder = ends
    stranger, _ = keys(folder, "stranger")
    ways = SocketTransport({"silo": card}, stranger)
    assert ways.exchange({"silo": b"x"}, 0.5) == {}
    ways.close()


def test_another_server_is_not_told_anything(ends):
    card, caller, folder = ends
    _, other = keys(folder, "other")
    ways = SocketTransport({"silo": Card("silo", card.key, other, card.address)}, caller)
    assert ways.exchange({"silo": b"x"}, 0.5) == {}
    ways.close()


def test_no_older_tls_is_spoken(ends):
    card, caller, _ = ends
    context = client_context(caller, card.certificate)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    host, port = parsed_address(card.address)
    with socket.create_connection((host, port)) as plain, pytest.raises((ssl.SSLError, OSError)):
        context.wrap_socket(plain).sendall(b"x")


@pytest.mark.parametrize("address", ["", "host", ":1", "host:", "host:99999", "host:x"])
def test_addresses_that_are_none_are_refused(address):
    with pytest.raises(InvalidParameter, match="HOST:PORT"):
        parsed_address(address)


def test_a_home_is_made_once_and_its_keys_are_its_own(tmp_path):
    home = SiloHome.make(tmp_path / "north", SiloSettings("north", "rows.csv"), "127.0.0.1:1")
    for name in ("signing.key", "tls.key"):
        assert (tmp_path / "north" / name).stat().st_mode & 0o077 == 0
    with pytest.raises(FileProblem, match="not empty"):
        SiloHome.make(tmp_path / "north", SiloSettings("north", "rows.csv"), "127.0.0.1:1")
    with pytest.raises(FileProblem, match="holds no silo"):
        SiloHome(tmp_path)
    secret = (tmp_path / "north" / "signing.key").read_bytes()
    assert secret.hex() not in (tmp_path / "north" / "card.json").read_text()
    assert home.card == Card.read(tmp_path / "north" / "card.json")


def seeded_keys(monkeypatch):
    """The same signing keys in every run: masks and noise are bound to the roster."""
    from dpadmm.network import silo_home
    from dpadmm.network.signing import Signer

    made = iter(range(10**6))
    monkeypatch.setattr(silo_home.Signer, "generate", classmethod(lambda cls: Signer(digest("test", next(made)))))


def test_processes_give_the_model_of_one_process_to_the_last_bit(monkeypatch):
    tables = split(*table(), 2)
    seeded_keys(monkeypatch)
    with simulated_silos(small_model(), tables, 1, seed=5) as silos:
        proposal = silos.run.proposal
        found = proposal.estimator.fit(silos.run.federation(1, 60.0, lambda exchanged: None))
        parties = Parties(tables=tables, seed=5)
        parties.proposal = proposal
        parties.signers = {name: _signer(home) for name, home in silos.homes.items()}
        parties.signers["coordinator"] = _signer_in(silos.run.folder)
        parties.silos = {name: parties.start(name) for name in tables}
        from tests.privacy.test_federated_faults import trained

        assert np.array_equal(found.weights_, trained(parties))


def _signer(home):
    return _signer_in(home.folder)


def _signer_in(folder):
    from dpadmm.network.silo_home import signer_in

    return signer_in(folder)


def survives_deaths(tmp_path, deaths: int, seed: int) -> None:
    """Kill -9 of one silo at some moments of a run; it is started again each time."""
    ledger = Ledger.create(tmp_path / f"ledger-{seed}.db")
    ledger.set_limit("rows", Budget(2.0, 1e-3), owner="Ada")
    tables, rng, left = split(*table(), 2), np.random.default_rng(seed), [deaths]
    pays = {"silo-001": (ledger.place, "rows")}
    with simulated_silos(small_model(), tables, 1, pays) as silos:

        def disturb(exchanged) -> None:
            if left[0] and rng.random() < 0.5:
                left[0] -= 1
                silos.kill("silo-001")
                threading.Timer(rng.uniform(0, 0.3), silos.start, ("silo-001",)).start()

        model = silos.run.proposal.estimator.fit(silos.run.federation(1, 120.0, disturb))
        state = silos.homes["silo-001"].state
    assert np.isfinite(model.coef_).all()
    assert len(ledger.account("rows").fits) == 1
    (run,) = state.runs.values()
    assert {asked for asked, _ in run.gate["queries"].values()} == {
        query.count for query in silos.run.proposal.plan.queries
    }


def test_a_silo_that_is_killed_goes_on(tmp_path):
    survives_deaths(tmp_path, 2, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 100))
def test_silos_that_are_killed_go_on(seed, tmp_path):
    survives_deaths(tmp_path, 1 + seed % 3, seed)


def test_a_run_pauses_where_a_silo_is_away_and_resumes(tmp_path):
    tables = split(*table(), 2)
    with simulated_silos(small_model(), tables, 1) as silos:
        fit = silos.run.proposal.estimator.fit

        def stop_at_three(exchanged) -> None:
            if exchanged.number == 3:
                silos.kill("silo-002")

        with pytest.raises(SilosMissing, match=r"'ask' from silo-002 .* Run again when they are back"):
            fit(silos.run.federation(1, 2.0, stop_at_three))
        assert silos.run.answered == 3
        silos.start("silo-002")
        again = []
        fit(silos.run.federation(1, 60.0, again.append))
    assert [each.number for each in again if each.name == "ask"] == [4, 5, 6]


@pytest.mark.slow
def test_a_second_process_on_one_home_is_refused(tmp_path):
    with simulated_silos(small_model(), split(*table(), 2), 1) as silos:
        home, card = silos.homes["silo-001"].folder, silos.run.folder / "card.json"
        command = [sys.executable, "-m", "dpadmm", "silo", "serve", str(home), "--coordinator", str(card)]
        second = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert second.returncode == 4
    assert "another process holds" in second.stderr


def test_replies_leave_in_whole_steps(tmp_path):
    import time

    silo, certificate = keys(tmp_path, "silo")
    caller, caller_certificate = keys(tmp_path, "caller")
    server = SiloServer("127.0.0.1:0", silo, caller_certificate, lambda raw: REFUSED, reply_every=0.2)
    threading.Thread(target=server.serve, daemon=True).start()
    ways = SocketTransport({"silo": Card("silo", "00" * 32, certificate, server.address)}, caller)
    ways.exchange({"silo": b"x"}, 10.0)
    began = time.monotonic()
    ways.exchange({"silo": b"x"}, 10.0)
    assert time.monotonic() - began >= 0.2
    ways.close()
    server.close()


def test_cards_are_read_with_care(tmp_path):
    place = tmp_path / "card.json"
    for content in ("{}", "[]", "x", json.dumps({"name": 1, "key": "", "certificate": "", "address": ""})):
        place.write_text(content)
        with pytest.raises(FileProblem):
            Card.read(place)
    with pytest.raises(FileProblem, match="cannot be read"):
        Card.read(tmp_path / "none.json")
