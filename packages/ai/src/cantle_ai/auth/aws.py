"""AWS credentials, and requests signed with them (Signature Version 4).

`botocore` (the extra `bedrock`) finds the credentials, in the order that AWS's own tools have: static keys of the
environment, a role to assume, a web identity (`AWS_WEB_IDENTITY_TOKEN_FILE`, as in Kubernetes), a profile with SSO,
keys, or a command, a container's credentials, and those of an EC2 machine. It also renews them, and signs. All of
that happens in a thread: it may read files, run a command or ask a server, and an event loop must not wait for it.

Variables are read from the environment that a request is given, which may hold more than the process's.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from cantle_ai.errors import ConfigurationError, ProviderError
from cantle_ai.transport.port import HttpRequest

__all__ = ["AwsCredentials"]

_T = TypeVar("_T")

_MOST_SESSIONS = 8
_SIGNED = ("content-type", "accept")
"""Beside the host. What else a request carries may be changed by what lies between."""
_NO_EXTRA = (
    "AWS credentials need the package botocore, which is not installed: pip install 'cantle[bedrock]', "
    "or set AWS_BEARER_TOKEN_BEDROCK to an API key of Bedrock, which needs no package"
)
_NONE_FOUND = (
    "There are no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
    "AWS_BEARER_TOKEN_BEDROCK, or log in with `aws sso login`"
)


class AwsCredentials:
    """Finds credentials and signs with them. Keeps what it has found, by the variables it was found with."""

    def __init__(self) -> None:
        self._sessions: dict[frozenset[tuple[str, str]], _Session] = {}

    async def region(self, environ: Mapping[str, str]) -> str | None:
        """The region that the profile names, or None.

        Raises :class:`ConfigurationError` when there is no such profile, or no botocore.
        """
        return await self._asked(environ, _Session.region)

    async def sign(
        self, request: HttpRequest, environ: Mapping[str, str], *, region: str, service: str = "bedrock"
    ) -> HttpRequest:
        """`request` with the headers that authorise it, for the next minutes.

        Raises :class:`ConfigurationError` when there are no credentials or they cannot be used, and
        :class:`ProviderError` when a server that gives them is not heard.
        """
        headers = await self._asked(environ, lambda session: session.signature(request, region, service))
        return msgspec.structs.replace(request, headers={**request.headers, **headers})

    def forget(self, environ: Mapping[str, str]) -> None:
        """Look for credentials anew: the present ones were refused."""
        self._sessions.pop(_key(environ), None)

    async def _asked(self, environ: Mapping[str, str], work: Callable[[_Session], _T]) -> _T:
        session = self._session(environ)
        try:
            return await _in_thread(lambda: work(session))
        except asyncio.CancelledError:
            # What was asked may never answer, and its thread holds the session: no other request waits behind it.
            if self._sessions.get(_key(environ)) is session:
                self.forget(environ)
            raise

    def _session(self, environ: Mapping[str, str]) -> _Session:
        key = _key(environ)
        session = self._sessions.get(key)
        if session is None:
            while len(self._sessions) >= _MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            session = self._sessions[key] = _Session(environ)
        return session


def _key(environ: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset((name, value) for name, value in environ.items() if name.startswith("AWS_"))


class _Session:
    """One session of botocore. Used in threads, by one at a time."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)
        if self._environ.get("AWS_PROFILE") == "default":
            del self._environ[
                "AWS_PROFILE"
            ]  # named, it would have to be in a file; a machine of EC2 has none
        self._lock = threading.Lock()
        self._session: Any = None
        self._credentials: Any = None

    def region(self) -> str | None:
        with self._lock, _Failures():
            region = self._opened().get_config_variable("region")
        return region if isinstance(region, str) else None

    def signature(self, request: HttpRequest, region: str, service: str) -> dict[str, str]:
        """The headers of a signature."""
        with self._lock, _Failures():
            session = self._opened()
            from botocore.auth import SigV4Auth
            from botocore.awsrequest import AWSRequest

            if self._credentials is None:
                self._credentials = _resolver(session, self._environ, region).load_credentials()
            if self._credentials is None:
                raise ConfigurationError(None, _NONE_FOUND)
            frozen = self._credentials.get_frozen_credentials()
            given = {name: request.headers[name] for name in _SIGNED if name in request.headers}
            signed = AWSRequest(request.method, request.url, headers=given, data=request.body)
            SigV4Auth(frozen, service, region).add_auth(signed)
            return {name.lower(): str(value) for name, value in signed.headers.items() if name not in given}

    def _opened(self) -> Any:
        if self._session is None:
            try:
                from botocore.configprovider import BOTOCORE_DEFAUT_SESSION_VARIABLES, ConfigChainFactory
                from botocore.session import Session
            except ModuleNotFoundError:
                raise ConfigurationError(None, _NO_EXTRA) from None
            session = Session()
            chains = ConfigChainFactory(session=session, environ=self._environ)
            store = session.get_component("config_store")
            for name, (key, variables, default, convert) in BOTOCORE_DEFAUT_SESSION_VARIABLES.items():
                chain = chains.create_config_chain(
                    instance_name=name,
                    env_var_names=variables,
                    config_property_names=key,
                    default=default,
                    conversion_func=convert,
                )
                store.set_config_provider(name, chain)
            self._session = session
        return self._session


def _resolver(session: Any, environ: Mapping[str, str], region: str) -> Any:
    """botocore's chain, whose links look into `environ` where they would look into the process's environment."""
    from botocore.credentials import (
        AssumeRoleWithWebIdentityProvider,
        ContainerProvider,
        EnvProvider,
        create_credential_resolver,
    )

    def config() -> Mapping[str, object]:
        token, role = environ.get("AWS_WEB_IDENTITY_TOKEN_FILE"), environ.get("AWS_ROLE_ARN")
        if not token:
            return {}
        named = {"web_identity_token_file": token, "role_arn": role}
        if (name := environ.get("AWS_ROLE_SESSION_NAME")) is not None:
            named["role_session_name"] = name
        return {"profiles": {"environment": named}}

    def client(service: str, **settings: Any) -> Any:
        return session.create_client(service, **{"region_name": region, **settings})

    resolver = create_credential_resolver(session, region_name=region)
    identity = AssumeRoleWithWebIdentityProvider(
        load_config=config, client_creator=client, profile_name="environment", disable_env_vars=True
    )
    ours = {
        EnvProvider.METHOD: EnvProvider(environ=environ),
        ContainerProvider.METHOD: ContainerProvider(environ=environ),
    }
    if environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        resolver.remove("iam-role")
    resolver.providers = [ours.get(link.METHOD, link) for link in resolver.providers]
    resolver.insert_before(AssumeRoleWithWebIdentityProvider.METHOD, identity)
    return resolver


class _Failures:
    """Around what botocore does: its errors as ours."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, ConfigurationError | ProviderError):
            return
        from botocore.exceptions import BotoCoreError, ClientError

        if isinstance(error, BotoCoreError | ClientError):
            raise _translated(error) from None


def _translated(error: Exception) -> Exception:
    """The error for a person. What a credential command printed, which botocore quotes, is left out."""
    from botocore import exceptions

    said = str(error).rstrip(". ")
    if isinstance(error, exceptions.HTTPClientError):
        return ProviderError(f"AWS gave no credentials: {said}", kind="network")
    if isinstance(error, exceptions.ClientError):
        code = str(error.response.get("Error", {}).get("Code", ""))
        if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= 500:
            return ProviderError(f"AWS gave no credentials: {said}", code=code)
        return ConfigurationError(None, f"AWS gave no credentials: {said}. Correct the role or log in again")
    if isinstance(error, exceptions.ProfileNotFound):
        return ConfigurationError(None, f"{said}. Correct AWS_PROFILE, or add the profile to the AWS config")
    if isinstance(error, exceptions.SSOError | exceptions.TokenRetrievalError):
        return ConfigurationError(None, f"The AWS login has ended: {said}. Run `aws sso login`")
    if isinstance(error, exceptions.CredentialRetrievalError):
        provider = error.kwargs.get("provider", "the profile")
        if provider == "container-role":
            return ProviderError("AWS gave no credentials: the container's server gave none", kind="network")
        return ConfigurationError(
            None, f"AWS gave no credentials by way of {provider}. Check it with `aws sts get-caller-identity`"
        )
    return ConfigurationError(None, f"The AWS configuration cannot be used: {said}")


async def _in_thread(work: Callable[[], _T]) -> _T:
    """What `work` gives. Its thread is a daemon: a server that does not answer keeps no program from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()

    def settle(result: _T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the one who waits has to have it
            failure = error
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, name="cantle-aws", daemon=True).start()
    return await future
