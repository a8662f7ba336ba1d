"""Addresses of servers: how they are recognised, and how they are printed without a password."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

HIDDEN = "postgresql://…"
# What libpq calls the parts of an address.
KEYWORDS = (
    "host|hostaddr|port|dbname|user|password|passfile|service|servicefile|options|connect_timeout|client_encoding|"
    "application_name|fallback_application_name|keepalives\\w*|tcp_user_timeout|channel_binding|replication|krbsrvname|"
    "target_session_attrs|load_balance_hosts|ssl\\w*|gss\\w*|require\\w*|scram\\w*|oauth\\w*|(min|max)_protocol_version"
)
# What may be shown of an address, because nobody writes a password so: names of hosts and databases.
SHOWN = re.compile(r"[A-Za-z0-9_.,:\[\]-]*")
_POSTGRES = re.compile(r"\s*postgres(ql)?://", re.IGNORECASE)
_KEYWORDS = re.compile(rf"\s*({KEYWORDS})\s*=", re.IGNORECASE)
# Neither a file nor an address that is known, but perhaps one with a password in it.
_DOUBTFUL = re.compile(r"://|^\s*[a-z][a-z0-9+.-]+:/|(pass|pwd|token|secret|scram)\w*\s*[=:]|:[^/\\@]*@", re.IGNORECASE)


class Address(str):
    """An address of a server that prints without its password; `secret` is all of it."""

    __slots__ = ()

    @property
    def secret(self) -> str:
        """The address as it was given."""
        return str.__str__(self)

    def __str__(self) -> str:
        return HIDDEN

    def __repr__(self) -> str:
        return repr(HIDDEN)

    def __format__(self, form: str) -> str:
        return format(HIDDEN, form)


def is_address(place: object) -> bool:
    """Whether `place` is for PostgreSQL: postgresql://…, or the keywords of libpq."""
    return isinstance(place, str) and bool(_POSTGRES.match(place) or _KEYWORDS.match(place))


def is_doubtful(place: str | Path) -> bool:
    """Whether `place` looks like an address, malformed or of another kind, so that it must not be quoted."""
    words = place.secret if isinstance(place, Address) else str(place)
    return bool(_DOUBTFUL.search(words))


def hidden(place: Any) -> Any:
    """`place`, as an `Address` if it may hold a password; everything else as it is."""
    if isinstance(place, str) and not isinstance(place, Address) and (is_address(place) or is_doubtful(place)):
        return Address(place)
    return place


class PlaceParameter:
    """The parameter `ledger` of an estimator: kept as given, but printed by scikit-learn without a password."""

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        return self if model is None else model.__dict__["ledger"]

    def __set__(self, model: Any, place: Any) -> None:
        model.__dict__["ledger"] = hidden(place)
