"""GitHub Copilot: the login gives a token for GitHub, which is exchanged for a short one that says where to ask."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cantle_ai.auth.credentials import OAuthCredential
from cantle_ai.auth.login import Dialogue, LoginAuth, LoginError, LoginMethod
from cantle_ai.auth.oauth.client import OAuthClient
from cantle_ai.auth.oauth.device import authorised_device
from cantle_ai.codec import JsonObject

if TYPE_CHECKING:
    from cantle_ai.auth.login import Login

__all__ = ["LOGIN", "CopilotLogin"]

_CLIENT = "Iv1.b507a08c87ecfe98"
_AGENT = {"User-Agent": "GitHubCopilotChat/0.35.0"}
_EDITOR = {
    **_AGENT,
    "Editor-Version": "vscode/1.107.0",
    "Editor-Plugin-Version": "copilot-chat/0.35.0",
    "Copilot-Integration-Id": "vscode-chat",
}
"""The service answers only those that call themselves an editor that it knows."""

_MARGIN_MS = 300_000


class CopilotLogin:
    """`refresh` is the token for GitHub, which does not expire; `access` the short one. Option: `host`."""

    def __init__(self, scheme: str = "https") -> None:
        """`scheme` is for a server on this machine."""
        self.name = "GitHub Copilot"
        self.methods: tuple[LoginMethod, ...] = ("device",)
        self._scheme = scheme

    async def sign_in(
        self, method: LoginMethod, dialogue: Dialogue, client: OAuthClient, options: Mapping[str, str]
    ) -> OAuthCredential:
        enterprise = _host(options.get("host", ""))
        web = f"{self._scheme}://{enterprise or 'github.com'}"
        answer = await authorised_device(
            client,
            dialogue,
            device_url=f"{web}/login/device/code",
            token_url=f"{web}/login/oauth/access_token",
            client_id=_CLIENT,
            fields={"scope": "read:user"},
            headers=_AGENT,
        )
        extra: JsonObject = {"enterpriseUrl": enterprise} if enterprise else {}
        signed_in = OAuthCredential(access="", refresh=answer.text("access_token"), expires=0, extra=extra)
        return await self.renew(signed_in, client)

    async def renew(self, credential: OAuthCredential, client: OAuthClient) -> OAuthCredential:
        if not credential.refresh:
            raise LoginError(f"The login to {self.name} cannot be renewed")
        url = f"{self._api(credential)}/copilot_internal/v2/token"
        answer = await client.get(url, {"Authorization": f"Bearer {credential.refresh}", **_EDITOR})
        if not answer.ok:
            raise answer.refused("a token for Copilot")
        ends = answer.seconds("expires_at")
        expires = client.expiry(None) if ends is None else round(ends * 1000) - _MARGIN_MS
        return OAuthCredential(
            access=answer.text("token"),
            refresh=credential.refresh,
            expires=expires,
            extra=credential.extra,
        )

    def authorise(self, credential: OAuthCredential) -> LoginAuth:
        return LoginAuth(api_key=credential.access, kind="bearer", base_url=_base_url(credential))

    def _api(self, credential: OAuthCredential) -> str:
        enterprise = credential.text("enterpriseUrl")
        if self._scheme == "http":
            return f"http://{enterprise}"
        return f"https://api.{enterprise or 'github.com'}"


def _base_url(credential: OAuthCredential) -> str:
    """Where the short token may be used: it says so itself, in a field for proxies."""
    found = re.search(r"(?:^|;)proxy-ep=proxy\.([a-z0-9.-]+)(?:;|$)", credential.access)
    if found:
        return f"https://api.{found[1]}"
    enterprise = credential.text("enterpriseUrl")
    return f"https://copilot-api.{enterprise}" if enterprise else "https://api.individual.githubcopilot.com"


def _host(text: str) -> str:
    """The host of an enterprise, from its address or name; empty for github.com."""
    text = text.strip()
    parts = urlsplit(text if "://" in text else f"https://{text}")
    host = parts.netloc.rpartition("@")[2].lower()
    if text and not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?", host):
        raise LoginError("The host of the enterprise cannot be read. Write it like company.ghe.com")
    return "" if host == "github.com" else host


LOGIN = CopilotLogin()

if TYPE_CHECKING:
    _proof: type[Login] = CopilotLogin
