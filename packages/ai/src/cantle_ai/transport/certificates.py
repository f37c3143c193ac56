"""Which certificate authorities a TLS connection trusts.

The system's, unless the environment says otherwise: `SSL_CERT_FILE` and `SSL_CERT_DIR` (OpenSSL's own
variables) or `REQUESTS_CA_BUNDLE` (a file or folder) replace them; `NODE_EXTRA_CA_CERTS` (a file) adds to
them, as companies use it for their own authority.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from pathlib import Path

from cantle_ai.errors import ConfigurationError

__all__ = ["client_context"]

_HASHED = re.compile(r"[0-9a-f]{8}\.\d+")


def client_context(environ: Mapping[str, str]) -> ssl.SSLContext:
    """A context for TLS clients that checks certificates and host names.

    Raises :class:`ConfigurationError` for a file or folder that is not there or holds no certificates.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    named = [name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if environ.get(name)]
    if not named and environ.get("REQUESTS_CA_BUNDLE"):
        named = ["REQUESTS_CA_BUNDLE"]
    for name in named:
        _load(context, name, environ[name])
    if not named:
        _load_system(context)
    if environ.get("NODE_EXTRA_CA_CERTS"):
        _load(context, "NODE_EXTRA_CA_CERTS", environ["NODE_EXTRA_CA_CERTS"])
    return context


def _load(context: ssl.SSLContext, name: str, value: str) -> None:
    path = Path(value)
    try:
        if path.is_dir():
            context.load_verify_locations(capath=path)
        else:
            context.load_verify_locations(cafile=path)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or "no certificates in PEM form"
        raise ConfigurationError(
            path, f"certificates cannot be read ({reason}); correct or unset {name}"
        ) from None


def _load_system(context: ssl.SSLContext) -> None:
    # Reading a bundle of all authorities takes 20 ms. A folder with one file for each, named by the hash of
    # its subject, is read on demand: OpenSSL opens the one it needs.
    folder = Path(ssl.get_default_verify_paths().openssl_capath)
    if folder.is_dir() and any(_HASHED.fullmatch(entry.name) for entry in folder.iterdir()):
        context.load_verify_locations(capath=folder)
    else:
        context.load_default_certs()
