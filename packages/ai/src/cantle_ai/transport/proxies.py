"""Which proxy a request goes through, by the environment's rules.

`HTTP_PROXY`, `HTTPS_PROXY` and `ALL_PROXY` name a proxy by the scheme of the request; lower-case names come
first. `NO_PROXY` lists what is reached directly, separated by commas or spaces:

    *                       everything
    example.com             that host and every host below it; `.example.com` and `*.example.com` say the same
    192.0.2.7  2001:db8::1  that address, however it is written
    192.0.2.0/24            the addresses of that network
    example.com:8080        any of these, for that port alone; IPv6 addresses then need brackets

These are curl's rules. Names are not resolved in order to compare them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import SplitResult, unquote, urlsplit

from msgspec import Struct

from cantle_ai.errors import ConfigurationError

__all__ = ["Proxy", "proxy_for"]

_PORTS = {"http": 80, "https": 443}


class Proxy(Struct, frozen=True):
    """Where a proxy listens. `authorization` is the value of its `Proxy-Authorization` header."""

    scheme: str
    host: str
    port: int
    authorization: str | None = None


def proxy_for(scheme: str, host: str, port: int, environ: Mapping[str, str]) -> Proxy | None:
    """The proxy for a request to `scheme://host:port`; None when it goes there directly.

    Raises :class:`ConfigurationError` for a proxy that cannot be used.
    """
    name, value = _configured(scheme, environ)
    if not value or _direct(host, port, environ):
        return None
    return _parse(name, value)


def _configured(scheme: str, environ: Mapping[str, str]) -> tuple[str, str]:
    names = [f"{scheme}_proxy", f"{scheme}_proxy".upper(), "all_proxy", "ALL_PROXY"]
    if "REQUEST_METHOD" in environ:
        # In a CGI process HTTP_PROXY is a header that the client sent (CVE-2016-5385).
        names.remove(f"{scheme}_proxy".upper())
    return next(((name, environ[name].strip()) for name in names if environ.get(name, "").strip()), ("", ""))


def _parse(name: str, value: str) -> Proxy:
    url = urlsplit(value if "://" in value else f"http://{value}")
    try:
        port = url.port
    except ValueError:
        port = -1
    if url.scheme not in _PORTS:
        hint = "use an http:// or https:// proxy, or list the host in NO_PROXY"
        raise ConfigurationError(
            None, f"{name} names a {url.scheme}:// proxy, which is not supported; {hint}"
        )
    if not url.hostname or port == -1:
        raise ConfigurationError(
            None, f"{name} is not a proxy's address; write it like http://proxy.example.com:3128"
        )
    return Proxy(url.scheme, url.hostname, port or _PORTS[url.scheme], _authorization(url))


def _authorization(url: SplitResult) -> str | None:
    if url.username is None:
        return None
    from base64 import b64encode

    credentials = f"{unquote(url.username)}:{unquote(url.password or '')}"
    return "Basic " + b64encode(credentials.encode()).decode("ascii")


def _direct(host: str, port: int, environ: Mapping[str, str]) -> bool:
    rules = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    host = host.strip("[]").rstrip(".").lower()
    return any(_matches(rule, host, port) for rule in re.split(r"[,\s]+", rules.lower()) if rule)


def _matches(rule: str, host: str, port: int) -> bool:
    if rule == "*":
        return True
    name, rule_port = _split_port(rule)
    if rule_port is not None and rule_port != port:
        return False
    if host[-1:].isdigit() or ":" in host:
        return _matches_address(name, host)
    name = name.removeprefix("*").strip(".")
    return name != "" and (host == name or host.endswith(f".{name}"))


def _split_port(rule: str) -> tuple[str, int | None]:
    if rule.startswith("["):
        name, _, rest = rule[1:].partition("]")
        number = rest.removeprefix(":")
    elif rule.count(":") == 1:
        name, _, number = rule.partition(":")
    else:
        name, number = rule, ""
    return (name, int(number)) if number.isdecimal() else (name, None)


def _matches_address(name: str, host: str) -> bool:
    import ipaddress

    try:
        address = ipaddress.ip_address(host)
        network = ipaddress.ip_network(name, strict=False)
    except ValueError:
        return name == host
    return address in network
