"""Where a model of Azure is: the address of a resource, and the names of its deployments.

They are a user's own, so they come from variables: `AZURE_OPENAI_BASE_URL`, `AZURE_OPENAI_RESOURCE_NAME`,
`AZURE_OPENAI_DEPLOYMENT_NAME_MAP` and `AZURE_OPENAI_API_VERSION`, by the names that the reference gives them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit, urlunsplit

from cantle_ai.errors import ConfigurationError
from cantle_ai.model import Model

__all__ = ["azure_base_url", "azure_url", "deployment_name"]

_BASE_URL = "AZURE_OPENAI_BASE_URL"
_RESOURCE = "AZURE_OPENAI_RESOURCE_NAME"
_DEPLOYMENTS = "AZURE_OPENAI_DEPLOYMENT_NAME_MAP"
_VERSION = "AZURE_OPENAI_API_VERSION"
_DEFAULT_VERSION = "v1"
_API_PATH = "/openai/v1"
_REQUESTS = ("/responses", "/chat/completions")


def azure_base_url(model: Model, environ: Mapping[str, str]) -> str:
    """The address of the API, without a `/` at its end: the variables', else the model's.

    An address without a path, or with `/openai` alone, is that of a resource, whose API is below it; one that goes
    on to a request is cut there. Raises :class:`ConfigurationError` when there is none, or it is no address.
    """
    resource = environ.get(_RESOURCE, "").strip()
    given = environ.get(_BASE_URL, "").strip()
    if not given and resource:
        # Azure shows the address beside the name, and it is easily taken for it.
        given = resource if "." in resource or "/" in resource else f"{resource}.openai.azure.com"
    given = given or model.base_url
    if not given:
        raise ConfigurationError(
            None,
            f"The provider {model.provider} has no address. Set {_BASE_URL} to that of your resource, or "
            f"{_RESOURCE} to its name, or give the provider a baseUrl in models.json",
        )
    try:
        parts = urlsplit(given if "://" in given else f"https://{given}")
    except ValueError:
        raise ConfigurationError(
            None, f'"{given}" is not the address of a resource. Correct {_BASE_URL}'
        ) from None
    path = re.sub("/{2,}", "/", parts.path).rstrip("/")
    for request in _REQUESTS:
        path = path.removesuffix(request)
    if path in ("", "/openai"):
        path = _API_PATH
    return urlunsplit(parts._replace(path=path, fragment=""))


def azure_url(base_url: str, path: str, environ: Mapping[str, str] | None = None) -> str:
    """`path` below `base_url`; with `environ`, also the version of the API, unless the address has one itself."""
    parts = urlsplit(base_url)
    query = parts.query
    if environ is not None and "api-version=" not in query:
        version = urlencode({"api-version": environ.get(_VERSION, "").strip() or _DEFAULT_VERSION})
        query = f"{query}&{version}" if query else version
    return urlunsplit(parts._replace(path=f"{parts.path}{path}", query=query))


def deployment_name(model_id: str, environ: Mapping[str, str]) -> str:
    """What a model's deployment is called: its id, unless the map `id=name,id=name` says otherwise."""
    for entry in environ.get(_DEPLOYMENTS, "").split(","):
        id, _, name = entry.partition("=")
        if id.strip() == model_id and name.strip():
            return name.strip()
    return model_id
