"""Silos behind sockets: TCP between machines, Unix sockets on one, TLS with pinned certificates on both."""

from __future__ import annotations

import math
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from dpadmm.errors import FileProblem
from dpadmm.files import why
from dpadmm.network.cards import Card, parsed_address
from dpadmm.network.certificates import TlsFiles, client_context, server_context
from dpadmm.network.encoding import MOST_BYTES

LENGTH = struct.Struct(">Q")
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
"""Seconds between two attempts to reach a silo: each pause is twice the last."""
LONGEST_SILENCE = 30.0
"""Seconds after which a peer that says nothing in the middle of a message is let go."""
MOST_CALLERS = 8
"""Connections a silo holds at a time: it has one coordinator, whose lost connections may linger."""

Address = tuple[str, int] | str


class SocketTransport:
    """Calls each silo at the address on its card.

    Parameters
    ----------
    cards : mapping of str to Card
        Of all silos.
    own : TlsFiles
        Of the coordinator.
    """

    def __init__(self, cards: Mapping[str, Card], own: TlsFiles) -> None:
        self._lines = {name: _Line(card, own) for name, card in cards.items()}
        self._pool = ThreadPoolExecutor(max_workers=max(1, len(cards)), thread_name_prefix="silo")

    def exchange(self, messages: Mapping[str, bytes], patience: float) -> dict[str, bytes]:
        end = time.monotonic() + patience
        calls = {name: self._pool.submit(self._lines[name].call, raw, end) for name, raw in messages.items()}
        try:
            replies = {name: call.result() for name, call in calls.items()}
        except BaseException:
            # Ctrl-C: whoever waits for a silo is let go, so that the program can end.
            for line in self._lines.values():
                line.give_up()
            raise
        return {name: reply for name, reply in replies.items() if reply is not None}

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        for line in self._lines.values():
            line.hang_up()


class _Line:
    """One connection to one silo, made again when it breaks."""

    def __init__(self, card: Card, own: TlsFiles) -> None:
        self._address = parsed_address(card.address)
        self._context = client_context(own, card.certificate)
        self._socket: ssl.SSLSocket | None = None
        self._wanted = True

    def call(self, message: bytes, end: float) -> bytes | None:
        """The reply, tried for until then; None if there is none."""
        pause = FIRST_PAUSE
        while self._wanted and (left := end - time.monotonic()) > 0:
            try:
                line = self._connected(left)
                line.settimeout(left)
                _send(line, message)
                return _received(line)
            except (OSError, EOFError):
                self.hang_up()
                time.sleep(min(pause, max(0.0, end - time.monotonic())))
                pause = min(2 * pause, LONGEST_PAUSE)
        return None

    def give_up(self) -> None:
        """Try no longer, in whatever thread it is tried."""
        self._wanted = False
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def hang_up(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                self._socket.close()
        self._socket = None

    def _connected(self, patience: float) -> ssl.SSLSocket:
        if self._socket is None:
            plain = _dialled(self._address, min(patience, LONGEST_SILENCE))
            try:
                self._socket = self._context.wrap_socket(plain)
            except BaseException:
                plain.close()
                raise
        return self._socket


class SiloServer:
    """Waits for the coordinator and answers it, one message at a time.

    Parameters
    ----------
    address : str
        Where to listen.
    own : TlsFiles
        Of the silo.
    caller : str
        The certificate of the coordinator, as PEM: nobody else gets as far as a message.
    answer : callable
        What is answered.
    reply_every : float
        Replies leave this many seconds, or a multiple of them, after the message came: how long a sum took, which may
        depend on the number of rows, shows in whole steps only.
    """

    def __init__(
        self, address: str, own: TlsFiles, caller: str, answer: Callable[[bytes], bytes], reply_every: float = 0.25
    ) -> None:
        self._context = server_context(own, caller)
        self._answer, self._step = answer, reply_every
        self._callers = threading.BoundedSemaphore(MOST_CALLERS)
        self._listener = _listening(parsed_address(address))

    @property
    def address(self) -> str:
        """Where it listens: with port 0 the system has chosen one."""
        found = self._listener.getsockname()
        return f"{found[0]}:{found[1]}" if isinstance(found, tuple) else f"unix:{found}"

    def serve(self) -> None:
        """Until `close`, or an interruption."""
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            if not self._callers.acquire(blocking=False):
                plain.close()
                continue
            threading.Thread(target=self._attend, args=(plain,), daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _attend(self, plain: socket.socket) -> None:
        try:
            plain.settimeout(LONGEST_SILENCE)
            with suppress(OSError, EOFError), self._context.wrap_socket(plain, server_side=True) as line:
                line.settimeout(None)
                while True:
                    message = _received(line)
                    came = time.monotonic()
                    reply = self._answer(message)
                    self._wait(came)
                    _send(line, reply)
        finally:
            with suppress(OSError):
                plain.close()
            self._callers.release()

    def _wait(self, came: float) -> None:
        if self._step > 0:
            steps = max(1, math.ceil((time.monotonic() - came) / self._step))
            time.sleep(max(0.0, came + steps * self._step - time.monotonic()))


def _dialled(address: Address, patience: float) -> socket.socket:
    if isinstance(address, tuple):
        return socket.create_connection(address, timeout=patience)
    plain = socket.socket(socket.AF_UNIX)
    plain.settimeout(patience)
    try:
        plain.connect(address)
    except OSError:
        plain.close()
        raise
    return plain


def _listening(address: Address) -> socket.socket:
    with _told(address):
        if isinstance(address, tuple):
            return socket.create_server(address)
        Path(address).unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(address)
        listener.listen()
        return listener


@contextmanager
def _told(address: Address) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        place = f"{address[0]}:{address[1]}" if isinstance(address, tuple) else address
        raise FileProblem(
            f"{place}, where nothing can listen ({why(problem)})",
            "an address of this machine that is free",
            "choose another port, or stop what uses this one",
        ) from None


def _send(line: socket.socket, content: bytes) -> None:
    line.sendall(LENGTH.pack(len(content)) + content)


def _received(line: socket.socket) -> bytes:
    (size,) = LENGTH.unpack(_exactly(line, LENGTH.size))
    if size > MOST_BYTES:
        raise EOFError("a message too long to be one")
    return _exactly(line, size)


def _exactly(line: socket.socket, size: int) -> bytes:
    content = bytearray()
    while len(content) < size:
        part = line.recv(min(size - len(content), 1 << 20))
        if not part:
            raise EOFError("a connection that ended")
        content += part
    return bytes(content)
