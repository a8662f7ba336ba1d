"""Flower as a postman: its apps carry sealed bytes between the coordinator and each owner's silo, and see nothing else.

The code that Flower pushes to a node holds no row, no key of a silo and no ledger: these are in `dpadmm silo serve`, a
process of the owner. What arrives from Flower is believed no more than what arrives from any network.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpadmm.network.cards import Card
from dpadmm.network.certificates import TlsFiles
from dpadmm.network.transports.sockets import SocketTransport

RECORD, WHO, RAW = "dpadmm", "who", "raw"
PAUSE = 0.1
"""Seconds between two looks for replies."""
PATIENCE = 30.0
"""Seconds for a relay to reach the silo beside it; the coordinator asks again."""


def relayed(message: Any, context: Any) -> Any:
    """What a ClientApp does with a query: hand it to the silo of its owner, and the answer back.

    The owner's node configuration names `card`, the card of the silo, and `relay`, a folder with the TLS files of a
    caller that the silo was told of (`dpadmm silo serve --coordinator RELAY/card.json`).
    """
    from flwr.app import ConfigRecord, Message, RecordDict

    card = Card.read(Path(str(context.node_config["card"])))
    said: dict[str, Any] = {WHO: card.name}
    raw = message.content[RECORD].get(RAW)
    if raw is not None:
        said[RAW] = _asked(card, Path(str(context.node_config["relay"])), bytes(raw))
    return Message(RecordDict({RECORD: ConfigRecord(said)}), reply_to=message)


def _asked(card: Card, relay: Path, raw: bytes) -> bytes:
    ways = SocketTransport({card.name: card}, TlsFiles(relay / "tls.key", relay / "tls.crt"))
    try:
        return ways.exchange({card.name: raw}, PATIENCE).get(card.name, b"")
    finally:
        ways.close()


class FlowerTransport:
    """Sends through the grid of a ServerApp.

    Parameters
    ----------
    grid : flwr.serverapp.Grid
        Of the ServerApp.
    silos : sequence of str
        Who has to be there.
    patience : float
        Seconds to wait for all nodes to say which silo they stand for.
    """

    def __init__(self, grid: Any, silos: tuple[str, ...], patience: float = 300.0) -> None:
        self._grid, self._silos = grid, silos
        self._nodes: dict[str, int] = {}
        end = time.monotonic() + patience
        while set(silos) - set(self._nodes) and time.monotonic() < end:
            # The name is not believed: an answer is only taken with the signature of its silo.
            found = self._round({node: {} for node in grid.get_node_ids()}, end)
            self._nodes = {str(said[WHO]): node for node, said in found.items()}
            time.sleep(PAUSE)

    def exchange(self, messages: Mapping[str, bytes], patience: float) -> dict[str, bytes]:
        end = time.monotonic() + patience
        wanted = {self._nodes[name]: {RAW: raw} for name, raw in messages.items() if name in self._nodes}
        names = {node: name for name, node in self._nodes.items()}
        found: dict[str, bytes] = {}
        while wanted and time.monotonic() < end:
            for node, said in self._round(wanted, end).items():
                if said.get(RAW):
                    found[names[node]] = bytes(said[RAW])
                    del wanted[node]
        return found

    def close(self) -> None:
        """The grid belongs to the ServerApp."""

    def _round(self, contents: Mapping[int, dict[str, Any]], end: float) -> dict[int, Any]:
        """Send one message to each node, and wait until each has answered or failed."""
        from flwr.app import ConfigRecord, Message, MessageType, RecordDict

        sent = [
            Message(RecordDict({RECORD: ConfigRecord(content)}), dst_node_id=node, message_type=MessageType.QUERY)
            for node, content in contents.items()
        ]
        # Of a failed message the reply names the wrong node: the message that it answers is what tells.
        waiting = dict(zip(self._grid.push_messages(sent), contents, strict=True))
        found: dict[int, Any] = {}
        while waiting and time.monotonic() < end:
            for reply in self._grid.pull_messages(list(waiting)):
                node = waiting.pop(reply.metadata.reply_to_message_id, None)
                if node is not None and not reply.has_error():
                    found[node] = reply.content[RECORD]
            time.sleep(PAUSE)
        return found
