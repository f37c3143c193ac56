"""ChatGPT Plus and Pro, for the address that Codex uses."""

from __future__ import annotations

from cantle_ai.auth.credentials import OAuthCredential
from cantle_ai.auth.login import Dialogue, LoginAuth, LoginError
from cantle_ai.auth.oauth.browser import CodePage
from cantle_ai.auth.oauth.claims import claims_of
from cantle_ai.auth.oauth.client import OAuthAnswer, OAuthClient
from cantle_ai.auth.oauth.device import polled
from cantle_ai.auth.oauth.tokens import TokenLogin
from cantle_ai.codec import JsonObject

__all__ = ["LOGIN", "CodexLogin"]

_SECONDS = 900.0


class CodexLogin(TokenLogin):
    """Requests name the account, which the token's claims hold. Its device flow is OpenAI's own."""

    def kept_fields(self, answer: OAuthAnswer, old: OAuthCredential | None) -> JsonObject:
        kept = super().kept_fields(answer, old)
        auth = claims_of(answer.data.get("access_token")).get("https://api.openai.com/auth")
        account = auth.get("chatgpt_account_id") if isinstance(auth, dict) else None
        if isinstance(account, str):
            return {**kept, "accountId": account}
        if "accountId" not in kept:
            raise LoginError("OpenAI's token names no account. Sign in with an account that has ChatGPT")
        return kept

    def authorise(self, credential: OAuthCredential) -> LoginAuth:
        account = credential.text("accountId")
        headers = {"chatgpt-account-id": account} if account else {}
        return LoginAuth(api_key=credential.access, headers=headers)

    async def device_answer(self, dialogue: Dialogue, client: OAuthClient) -> OAuthAnswer:
        assert self.device_url is not None
        started = await client.post_json(f"{self.device_url}/usercode", {"client_id": self.client_id})
        if not started.ok:
            raise started.refused("to begin a login")
        code, device = started.text("user_code"), started.text("device_auth_id")
        host = self.device_url.partition("/api/")[0]
        dialogue.show_code(code, f"{host}/codex/device")

        async def ask() -> OAuthAnswer:
            return await client.post_json(
                f"{self.device_url}/token", {"device_auth_id": device, "user_code": code}
            )

        granted = await polled(
            client,
            ask,
            interval=started.seconds("interval"),
            expires=_SECONDS,
            pending=lambda answer: answer.status in (403, 404),
        )
        answer = await self.post(
            client,
            {
                "grant_type": "authorization_code",
                "client_id": self.client_id,
                "code": granted.text("authorization_code"),
                "code_verifier": granted.text("code_verifier"),
                "redirect_uri": f"{host}/deviceauth/callback",
            },
        )
        if not answer.ok:
            raise answer.refused("the login")
        return answer


LOGIN = CodexLogin(
    name="ChatGPT Plus or Pro",
    client_id="app_EMoamEEZ73f0CkXaXp7hrann",
    authorize_url="https://auth.openai.com/oauth/authorize",
    token_url="https://auth.openai.com/oauth/token",
    device_url="https://auth.openai.com/api/accounts/deviceauth",
    scopes=("openid", "profile", "email", "offline_access"),
    page=CodePage(port=1455, path="/auth/callback"),
    authorize_fields={
        "id_token_add_organizations": "true",
        "codex_cli_simplified_flow": "true",
        "originator": "cantle",
    },
)
