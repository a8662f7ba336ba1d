"""Places for ledgers in tests: a file, and a database of a real PostgreSQL server started for the tests."""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dpadmm import Budget
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.plan import Plan, Request
from dpadmm.privacy.questions import ClippedGradient
from dpadmm.privacy.sampling import Everything, Sampler


def plan(epsilon: float = 0.5, sampler: Sampler | None = None, delta: float = 1e-6, relation="replace-one", steps=10):
    requests = [Request("gradient", steps, ClippedGradient(1.0))]
    return calibrate(Budget(epsilon, delta, relation), requests, sampler or Everything(), 1000)


SMALL: Plan = plan(0.01)


class PostgresServer:
    """A server on loopback that can be killed and started again."""

    def __init__(self, tools: Path, home: Path) -> None:
        self.home, self._tools, self.port = home, tools, _free_port()
        self.as_user = {"user": _server_user(), "env": {**os.environ, "LC_ALL": "C"}, "cwd": home}
        self.address = f"postgresql://owner@127.0.0.1:{self.port}/"
        made = [str(tools / "initdb"), "-D", str(home / "data"), "-U", "owner", "-A", "trust", "-E", "UTF8"]
        subprocess.run(made, check=True, capture_output=True, **self.as_user)

    def start(self) -> None:
        options = ["-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={self.home}"]
        started = [str(self._tools / "postgres"), "-D", str(self.home / "data"), "-p", str(self.port), *options]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(started, **quiet, **self.as_user)
        _wait(self.address, self._process)

    def die(self) -> None:
        """Without writing anything more: all that is left is what was flushed. Nothing here needs to last."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(30)


@contextmanager
def postgres_process() -> Iterator[PostgresServer]:
    """A server that lives as long as the block, or a skip that says why there is none."""
    pytest.importorskip("psycopg", reason="PostgreSQL ledgers need psycopg: pip install 'dpadmm[postgres]'")
    tools = _tools()
    if tools is None:
        pytest.skip("no PostgreSQL server found (initdb and postgres, e.g. from Debian's package postgresql)")
    home = Path(tempfile.mkdtemp(prefix="dpadmm-pg-"))
    if (user := _server_user()) is not None:
        shutil.chown(home, user)
    try:
        server = PostgresServer(tools, home)
        server.start()
        try:
            yield server
        finally:
            server.die()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"PostgreSQL could not be set up: {error.stderr.decode(errors='replace')[-200:]}")
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def postgres_server() -> Iterator[str]:
    """The address of such a server."""
    with postgres_process() as server:
        yield server.address


def new_database(address: str) -> str:
    """The address of a fresh database on a server."""
    import psycopg

    name = f"ledger_{uuid.uuid4().hex}"
    with psycopg.connect(address + "postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return address + name


def _tools() -> Path | None:
    folders = [Path(name) for name in sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)]
    if found := shutil.which("initdb"):
        folders.append(Path(found).resolve().parent)
    return next((folder for folder in folders if (folder / "postgres").exists()), None)


def _server_user() -> str | None:
    """PostgreSQL does not run as root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    return None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(address: str, server: subprocess.Popen[bytes]) -> None:
    import psycopg

    for _ in range(150):
        if server.poll() is not None:
            pytest.skip("PostgreSQL ended right after its start")
        try:
            psycopg.connect(address + "postgres", connect_timeout=2).close()
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return
    pytest.skip("PostgreSQL did not answer within fifteen seconds")
