"""Sign in with ChatGPT: OpenAI issues a client of our own while a person signs in, which then uses the API itself."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import msgspec

from cantle_ai.auth.credentials import OAuthCredential
from cantle_ai.auth.login import Dialogue, LoginError, LoginMethod
from cantle_ai.auth.oauth.browser import CodePage, code_from_browser
from cantle_ai.auth.oauth.claims import claims_of
from cantle_ai.auth.oauth.client import OAuthAnswer, OAuthClient
from cantle_ai.auth.oauth.pkce import Attempt
from cantle_ai.auth.oauth.redirect import Redirect
from cantle_ai.auth.oauth.tokens import TokenLogin
from cantle_ai.codec import Json, JsonObject

__all__ = ["LOGIN", "ChatGptLogin"]

_RESOURCE = "https://api.openai.com/v1"
_NEEDED = "chatgpt.tokens.use.direct"


class ChatGptLogin(TokenLogin):
    """The redirect names the client that was issued; it is stored, since only it can renew the login."""

    def address_fields(self, attempt: Attempt) -> Mapping[str, str]:
        return {
            **super().address_fields(attempt),
            "agent_name_hint": "cantle",
            "ext_agent_host_id": f"urn:uuid:{uuid.uuid4()}",
            "resource": _RESOURCE,
            "nonce": attempt.nonce,
        }

    def exchange_fields(self, attempt: Attempt, redirect: Redirect) -> Mapping[str, str]:
        client_id = redirect.fields.get("client_id")
        if not client_id:
            raise LoginError(
                "OpenAI came back without a client for this login. Paste the whole address, or begin again"
            )
        fields = super().exchange_fields(attempt, redirect)
        return {**fields, "client_id": client_id, "resource": _RESOURCE}

    async def sign_in(
        self, method: LoginMethod, dialogue: Dialogue, client: OAuthClient, options: Mapping[str, str]
    ) -> OAuthCredential:
        assert self.page is not None
        attempt, redirect = await code_from_browser(self.page, method, dialogue, self._address)
        answer = await self.exchange(attempt, redirect, client)
        if claims_of(answer.data.get("id_token")).get("nonce") != attempt.nonce:
            raise LoginError("OpenAI's answer belongs to another attempt to sign in. Begin again")
        credential = self.credential(answer, client)
        issued = {**credential.extra, "clientId": redirect.fields["client_id"]}
        return msgspec.structs.replace(credential, extra=issued)

    def renewal_fields(self, credential: OAuthCredential) -> Mapping[str, str]:
        return {"client_id": credential.text("clientId") or self.client_id, "resource": _RESOURCE}

    def kept_fields(self, answer: OAuthAnswer, old: OAuthCredential | None) -> JsonObject:
        scope = answer.data.get("scope")
        if not isinstance(scope, str):
            return {} if old is None else dict(old.extra)
        if _NEEDED not in scope.split():
            raise LoginError("OpenAI did not let this login use the API. Sign in again, and allow that")
        return {**({} if old is None else old.extra), "scopes": list[Json](scope.split())}


LOGIN = ChatGptLogin(
    name="ChatGPT",
    client_id="dynamic_agent_client",
    authorize_url="https://auth.openai.com/api/accounts/authorize",
    token_url="https://auth.openai.com/api/accounts/oauth/token",
    scopes=("openid", "profile", "email", "offline_access", "resource.invoke", _NEEDED),
    page=CodePage(host="127.0.0.1", port=1455, path="/auth/callback"),
)
