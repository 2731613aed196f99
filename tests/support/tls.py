"""A certificate authority for one test: a TLS server on loopback that is good for any name a test asks for."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def server_context(
    folder: Path, names: Sequence[str], *, valid_for: timedelta = timedelta(days=1)
) -> tuple[ssl.SSLContext, str]:
    """The server's side of TLS for these host names, and the path of the bundle that a client has to trust.

    A negative ``valid_for`` makes a server certificate that has expired.
    """
    authority_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
    authority = _signed(issuer, authority_key, issuer, authority_key, x509.BasicConstraints(ca=True, path_length=0), [])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test server")])
    server = _signed(
        subject,
        server_key,
        issuer,
        authority_key,
        x509.BasicConstraints(ca=False, path_length=None),
        names,
        valid_for=valid_for,
    )
    chain, bundle = folder / "server.pem", folder / "authority.pem"
    chain.write_bytes(
        server.public_bytes(serialization.Encoding.PEM)
        + server_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    bundle.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    return context, str(bundle)


def _signed(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    constraints: x509.BasicConstraints,
    names: Sequence[str],
    *,
    valid_for: timedelta = timedelta(days=1),
) -> x509.Certificate:
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=9))
        .not_valid_after(now + valid_for)
        .add_extension(constraints, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
        .add_extension(
            x509.KeyUsage(
                digital_signature=True, key_cert_sign=constraints.ca, crl_sign=constraints.ca,
                content_commitment=False, key_encipherment=False, data_encipherment=False, key_agreement=False,
                encipher_only=False, decipher_only=False,
            ),
            critical=True,
        )
    )  # fmt: skip
    if names:
        built = built.add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
    return built.sign(issuer_key, hashes.SHA256())
