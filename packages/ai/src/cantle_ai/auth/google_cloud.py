"""Google Cloud's Application Default Credentials, as access tokens for Vertex AI.

Looked for in this order, by the variables that Google's own tools know:

    GOOGLE_APPLICATION_CREDENTIALS                      a file: a service account's key, federation, impersonation
    $CLOUDSDK_CONFIG/application_default_credentials.json   what `gcloud auth application-default login` has left
    GCE_METADATA_HOST, metadata.google.internal         the metadata server of a machine in Google's cloud

Files are read by `google-auth` (the extra `vertex`), which signs and asks in a thread; every request that it makes
goes out over the transport of the model's own request, with its proxies and certificates. A token is kept until
shortly before it ends, and never longer than the process runs.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any, Protocol

from msgspec import Struct

from cantle_ai.auth.ambient import google_default_file
from cantle_ai.codec import JsonObject, decode_object
from cantle_ai.errors import ConfigurationError, ProviderError
from cantle_ai.transport.port import HttpRequest, Transport, TransportError

__all__ = ["AccessToken", "GoogleCloudTokens"]

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_SECONDS = 30.0
"""For each request of a credential, and for all of one refresh twice as long."""
_DETECTION_SECONDS = 3.0
"""For the metadata server, which is near or not there at all."""
_MARGIN = 225.0
"""Seconds before its end from which a token is not used any more; what google-auth allows for clocks."""
_LONGEST_ANSWER = 256 * 1024
_NO_EXTRA = (
    "Google Cloud's credentials need the package google-auth, which is not installed: "
    "pip install 'cantle[vertex]', or give an API key in GOOGLE_CLOUD_API_KEY"
)
_NONE_FOUND = (
    "There are no Google Cloud credentials: run `gcloud auth application-default login`, or name a key file in "
    "GOOGLE_APPLICATION_CREDENTIALS, or give an API key in GOOGLE_CLOUD_API_KEY"
)


class AccessToken(Struct, frozen=True, kw_only=True):
    """A token and what goes with it. Never shown, never stored."""

    value: str
    project: str | None = None
    """The project that the credentials belong to, where they name one."""
    quota_project: str | None = None
    """The project that is charged, which a request names in `x-goog-user-project`."""

    def __repr__(self) -> str:
        return f"AccessToken(value=…, project={self.project!r}, quota_project={self.quota_project!r})"


class GoogleCloudTokens:
    """Gives tokens, and keeps what it has got. Serves any number of requests at once, and any event loop."""

    def __init__(self) -> None:
        self._sources: dict[tuple[object, ...], _Source] = {}

    async def token(self, environ: Mapping[str, str], transport: Transport) -> AccessToken:
        """A token that is good for the next minutes. Of the credentials of a file one refresh is on its way at a time.

        Raises :class:`ConfigurationError` when there are no credentials or they cannot be used, and
        :class:`ProviderError` when the one who gives tokens refuses or is not heard.
        """
        return await self._source(environ).token(transport)

    def forget(self, environ: Mapping[str, str], token: AccessToken) -> None:
        """Do not use `token` again: it was refused. One that has taken its place since stays."""
        self._source(environ).forget(token)

    def _source(self, environ: Mapping[str, str]) -> _Source:
        path = _credential_file(environ)
        key: tuple[object, ...] = ("metadata", _metadata_host(environ))
        if path is not None:
            written = path.stat()
            key = ("file", path, written.st_mtime_ns, written.st_size)
        source = self._sources.get(key)
        if source is None:
            source = _MetadataServer(_metadata_host(environ)) if path is None else _CredentialFile(path)
            self._sources[key] = source
        return source


class _Source(Protocol):
    async def token(self, transport: Transport) -> AccessToken: ...
    def forget(self, token: AccessToken) -> None: ...


def _credential_file(environ: Mapping[str, str]) -> Path | None:
    named = environ.get("GOOGLE_APPLICATION_CREDENTIALS", "").strip()
    if named:
        if not Path(named).is_file():
            raise ConfigurationError(
                named,
                "this file, which GOOGLE_APPLICATION_CREDENTIALS names, is not there; correct the variable",
            )
        return Path(named)
    default = google_default_file(environ)
    return default if default.is_file() else None


# --- files


class _CredentialFile:
    """The credentials of one file. Its work is done in one thread: who comes second finds the token of the first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="google-cloud-token")
        self._credentials: Any = None
        self._project: str | None = None
        self._token: AccessToken | None = None

    def forget(self, token: AccessToken) -> None:
        if self._token is token:
            self._token = None

    async def token(self, transport: Transport) -> AccessToken:
        token = self._token
        if token is not None and self._credentials.valid:
            return token
        loop = asyncio.get_running_loop()
        requests = _Requests(transport, loop)
        try:
            return await loop.run_in_executor(self._thread, self._refresh, requests)
        except asyncio.CancelledError:
            requests.give_up()
            raise

    def _refresh(self, request: _Requests) -> AccessToken:
        """Load the file if need be, and get a token unless who came first has. In the thread."""
        try:
            from google.auth.exceptions import GoogleAuthError
            from google.auth.exceptions import TransportError as NotHeard
        except ModuleNotFoundError:
            raise ConfigurationError(None, _NO_EXTRA) from None
        try:
            if self._credentials is None:
                self._credentials, self._project = _loaded(self._path, request)
            token = self._token
            if token is None or not self._credentials.valid:
                self._credentials.refresh(request)
                token = self._token = AccessToken(
                    value=self._credentials.token,
                    project=self._project,
                    quota_project=getattr(self._credentials, "quota_project_id", None),
                )
            return token
        except NotHeard as error:
            raise ProviderError(f"Google Cloud gave no access token: {error}", kind="network") from None
        except GoogleAuthError as error:
            raise _refused(self._path, error) from None


def _loaded(path: Path, request: _Requests) -> tuple[Any, str | None]:
    """The credentials of a file, and their project. Raises google-auth's errors, or ConfigurationError."""
    try:
        raw: Any = decode_object(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigurationError(path, f"these Google Cloud credentials cannot be read: {error}") from None
    try:
        match raw.get("type"):
            case "authorized_user":
                from google.oauth2.credentials import Credentials

                return Credentials.from_authorized_user_info(raw), None
            case "service_account":
                from google.oauth2.service_account import Credentials as ServiceAccount

                return (
                    ServiceAccount.from_service_account_info(raw, scopes=[_SCOPE]),
                    raw.get("project_id"),
                )
            case _:
                return _other(raw, request)
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(path, f"these Google Cloud credentials are incomplete: {error}") from None


def _other(raw: JsonObject, request: _Requests) -> tuple[Any, str | None]:
    """Federation, impersonation and the like. The user has named the file, so the warning of its kind is not for us."""
    import google.auth
    from google.auth.credentials import with_scopes_if_required

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        # The scopes come later: with them a project would be looked up, which the environment names anyway.
        credentials, project = google.auth.load_credentials_from_dict(raw, request=request)
    return with_scopes_if_required(credentials, [_SCOPE]), project


def _refused(path: Path, error: Exception) -> Exception:
    """What google-auth says, as a sentence. `error.args` may hold an answer's body; it has no secret of ours."""
    said = str(error.args[0]) if error.args else type(error).__name__
    if getattr(error, "retryable", False):
        return ProviderError(f"Google Cloud gave no access token: {said}", kind="network")
    return ConfigurationError(
        path,
        f"Google Cloud gave no access token for these credentials: {said}. Log in again with "
        "`gcloud auth application-default login`, or name another file in GOOGLE_APPLICATION_CREDENTIALS",
    )


class _Answer:
    """An answer as google-auth reads it."""

    def __init__(self, status: int, headers: Mapping[str, str], data: bytes) -> None:
        self.status = status
        self.headers = headers
        self.data = data


class _Requests:
    """What google-auth calls in its thread to make a request: it goes to the event loop's transport."""

    def __init__(self, transport: Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._open: Future[_Answer] | None = None
        self._given_up = Event()

    def give_up(self) -> None:
        """Let go of the request that is on its way, and make no other: nobody waits for the token any more."""
        self._given_up.set()
        if self._open is not None:
            self._open.cancel()

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **_: object,
    ) -> _Answer:
        from google.auth.exceptions import TransportError as NotHeard

        data = body.encode() if isinstance(body, str) else body or b""
        plain = {name.lower(): value for name, value in (headers or {}).items()}
        request = HttpRequest(method, url, plain, data, min(timeout or _SECONDS, _SECONDS))
        if self._given_up.is_set():
            raise NotHeard("the request was given up")
        self._open = answer = asyncio.run_coroutine_threadsafe(_answer(self._transport, request), self._loop)
        if self._given_up.is_set():  # meanwhile
            answer.cancel()
        try:
            return answer.result(2 * _SECONDS)
        except TransportError as error:
            raise NotHeard(str(error)) from None
        except CancelledError:
            raise NotHeard("the request was given up") from None
        except TimeoutError:
            answer.cancel()
            raise NotHeard("no answer came in time") from None


async def _answer(transport: Transport, request: HttpRequest) -> _Answer:
    response = await transport.send(request)
    try:
        return _Answer(response.status, response.headers, await response.read(_LONGEST_ANSWER))
    finally:
        await response.aclose()


# --- the metadata server


def _metadata_host(environ: Mapping[str, str]) -> str:
    named = environ.get("GCE_METADATA_HOST") or environ.get("GCE_METADATA_ROOT")
    return named or "metadata.google.internal"


class _MetadataServer:
    """The service account of the machine that this runs on. Needs no library."""

    def __init__(self, host: str) -> None:
        self._root = f"http://{host}/computeMetadata/v1"
        self._token: AccessToken | None = None
        self._until = 0.0

    def forget(self, token: AccessToken) -> None:
        if self._token is token:
            self._until = 0.0

    async def token(self, transport: Transport) -> AccessToken:
        if self._token is None or time.monotonic() >= self._until - _MARGIN:
            said = await self._get(transport, "instance/service-accounts/default/token")
            project = self._token.project if self._token is not None else None
            if project is None:
                project = (
                    (await self._get(transport, "project/project-id")).decode("utf-8", "replace").strip()
                )
            self._keep(said, project or None)
        assert self._token is not None
        return self._token

    def _keep(self, said: bytes, project: str | None) -> None:
        try:
            raw = decode_object(said)
        except ValueError:
            raw = {}
        value, seconds = raw.get("access_token"), raw.get("expires_in")
        if not isinstance(value, str) or not value or not isinstance(seconds, int | float):
            raise ProviderError("Google Cloud's metadata server gave no access token", kind="protocol")
        self._token = AccessToken(value=value, project=project)
        self._until = time.monotonic() + seconds

    async def _get(self, transport: Transport, path: str) -> bytes:
        headers = {"metadata-flavor": "Google", "accept": "*/*"}
        request = HttpRequest("GET", f"{self._root}/{path}", headers, b"", _DETECTION_SECONDS)
        try:
            answer = await _answer(transport, request)
        except TransportError:
            raise ConfigurationError(None, _NONE_FOUND) from None
        if answer.headers.get("metadata-flavor") != "Google":
            raise ConfigurationError(None, _NONE_FOUND)
        if answer.status != 200:
            kind = "this machine has no service account" if answer.status == 404 else "ask again later"
            raise ProviderError(
                f"{answer.status} Google Cloud's metadata server gave no {path.rpartition('/')[2]}: {kind}",
                status=answer.status,
            )
        return answer.data
