"""Keys and certificates of TLS: each party signs its own, and the others take exactly that one."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

VALID_DAYS = 3650


class TlsFiles(NamedTuple):
    """Where a party keeps its private key and its certificate."""

    key: Path
    certificate: Path


def make_certificate(name: str) -> tuple[bytes, bytes]:
    """A fresh private key and a certificate signed with it, both as PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # A clock that is behind by a day does not refuse it.
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private, made.public_bytes(Encoding.PEM)


def server_context(own: TlsFiles, client: str) -> ssl.SSLContext:
    """Accepts one client: the holder of this certificate."""
    return _context(ssl.PROTOCOL_TLS_SERVER, own, client)


def client_context(own: TlsFiles, server: str) -> ssl.SSLContext:
    """Connects to one server: the holder of this certificate, whatever its address."""
    return _context(ssl.PROTOCOL_TLS_CLIENT, own, server)


def _context(kind: int, own: TlsFiles, peer: str) -> ssl.SSLContext:
    context = ssl.SSLContext(kind)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # The certificate itself is the name that is checked: it is the only one that is trusted.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=peer)
    context.load_cert_chain(own.certificate, own.key)
    return context
