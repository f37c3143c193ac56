"""Logins that end with an access token and a refresh token: what most vendors have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlencode

from cantle_ai.auth.credentials import OAuthCredential
from cantle_ai.auth.login import Dialogue, LoginAuth, LoginError, LoginMethod
from cantle_ai.auth.oauth.browser import CodePage, code_from_browser
from cantle_ai.auth.oauth.client import OAuthAnswer, OAuthClient
from cantle_ai.auth.oauth.device import authorised_device
from cantle_ai.auth.oauth.pkce import Attempt
from cantle_ai.auth.oauth.redirect import Redirect
from cantle_ai.codec import JsonObject
from cantle_ai.model import AuthKind

if TYPE_CHECKING:
    from cantle_ai.auth.login import Login

__all__ = ["TokenLogin"]


class TokenLogin:
    """A login as its vendor describes it: addresses, a public client id and scopes. Vendors' own ways are in subclasses."""

    def __init__(
        self,
        *,
        name: str,
        client_id: str,
        token_url: str,
        scopes: tuple[str, ...] = (),
        authorize_url: str | None = None,
        page: CodePage | None = None,
        authorize_fields: Mapping[str, str] = {},
        body: Literal["form", "json"] = "form",
        device_url: str | None = None,
        kind: AuthKind = "oauth",
    ) -> None:
        """`authorize_url` and `page` make it a login by browser, `device_url` one by device code.

        `body` is how requests for tokens are written, and `kind` how the token travels.
        """
        self.name = name
        self.client_id = client_id
        self.token_url = token_url
        self.scopes = scopes
        self.authorize_url = authorize_url
        self.page = page
        self.authorize_fields = authorize_fields
        self.body = body
        self.device_url = device_url
        self.kind: AuthKind = kind

    @property
    def methods(self) -> tuple[LoginMethod, ...]:
        browser: tuple[LoginMethod, ...] = ("browser", "paste") if self.page is not None else ()
        return (*browser, "device") if self.device_url is not None else browser

    async def sign_in(
        self, method: LoginMethod, dialogue: Dialogue, client: OAuthClient, options: Mapping[str, str]
    ) -> OAuthCredential:
        if method == "device":
            return self.credential(await self.device_answer(dialogue, client), client)
        if self.page is None:
            raise LoginError(f"{self.name} is not signed in to in this way")
        attempt, redirect = await code_from_browser(self.page, method, dialogue, self._address)
        answer = await self.exchange(attempt, redirect, client)
        return self.credential(answer, client)

    async def renew(self, credential: OAuthCredential, client: OAuthClient) -> OAuthCredential:
        if not credential.refresh:
            raise LoginError(f"The login to {self.name} cannot be renewed")
        fields = {
            "grant_type": "refresh_token",
            "client_id": self.client_id,
            "refresh_token": credential.refresh,
        }
        answer = await self.post(client, {**fields, **self.renewal_fields(credential)})
        if not answer.ok:
            raise answer.refused("to renew the login")
        return self.credential(answer, client, credential)

    def authorise(self, credential: OAuthCredential) -> LoginAuth:
        return LoginAuth(api_key=credential.access, kind=self.kind)

    # --- what a vendor may do in its own way ---

    def address_fields(self, attempt: Attempt) -> Mapping[str, str]:
        """The query of the page that is opened."""
        return {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": attempt.redirect,
            "scope": " ".join(self.scopes),
            "code_challenge": attempt.challenge,
            "code_challenge_method": "S256",
            "state": attempt.state,
            **self.authorize_fields,
        }

    def exchange_fields(self, attempt: Attempt, redirect: Redirect) -> Mapping[str, str]:
        """What turns a code into tokens."""
        return {
            "grant_type": "authorization_code",
            "client_id": self.client_id,
            "code": redirect.code,
            "redirect_uri": attempt.redirect,
            "code_verifier": attempt.verifier,
        }

    def renewal_fields(self, credential: OAuthCredential) -> Mapping[str, str]:
        """What is sent for new tokens beside the usual."""
        return {}

    async def device_answer(self, dialogue: Dialogue, client: OAuthClient) -> OAuthAnswer:
        """The tokens of a login by device code."""
        if self.device_url is None:
            raise LoginError(f"{self.name} is not signed in to in this way")
        return await authorised_device(
            client,
            dialogue,
            device_url=self.device_url,
            token_url=self.token_url,
            client_id=self.client_id,
            fields={"scope": " ".join(self.scopes)} if self.scopes else {},
        )

    def kept_fields(self, answer: OAuthAnswer, old: OAuthCredential | None) -> JsonObject:
        """What is stored beside the tokens; of a renewed login, what was stored before as well."""
        return {} if old is None else dict(old.extra)

    # --- shared ---

    async def exchange(self, attempt: Attempt, redirect: Redirect, client: OAuthClient) -> OAuthAnswer:
        """The answer with the tokens for a code. Raises :class:`LoginError` when it is refused."""
        answer = await self.post(client, self.exchange_fields(attempt, redirect))
        if not answer.ok:
            raise answer.refused("the login")
        return answer

    async def post(self, client: OAuthClient, fields: Mapping[str, str]) -> OAuthAnswer:
        send = client.post_form if self.body == "form" else client.post_json
        return await send(self.token_url, fields)

    def credential(
        self, answer: OAuthAnswer, client: OAuthClient, old: OAuthCredential | None = None
    ) -> OAuthCredential:
        """The credential in an answer. A server that does not rotate the refresh token leaves it out."""
        refresh = answer.data.get("refresh_token")
        if not isinstance(refresh, str) or not refresh:
            refresh = old.refresh if old is not None else ""
        return OAuthCredential(
            access=answer.text("access_token"),
            refresh=refresh,
            expires=client.expiry(answer.seconds("expires_in")),
            extra=self.kept_fields(answer, old),
        )

    def _address(self, attempt: Attempt) -> str:
        return f"{self.authorize_url}?{urlencode(self.address_fields(attempt))}"


if TYPE_CHECKING:
    _proof: type[Login] = TokenLogin
