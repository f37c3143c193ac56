"""OpenRouter: the login makes a key, which does not expire."""

from __future__ import annotations

from collections.abc import Mapping

from cantle_ai.auth.credentials import OAuthCredential
from cantle_ai.auth.login import LoginError
from cantle_ai.auth.oauth.browser import CodePage
from cantle_ai.auth.oauth.client import OAuthAnswer, OAuthClient
from cantle_ai.auth.oauth.pkce import Attempt
from cantle_ai.auth.oauth.redirect import Redirect
from cantle_ai.auth.oauth.tokens import TokenLogin

__all__ = ["LOGIN", "OpenRouterLogin"]

_NEVER = 2**53 - 1
"""The largest `expires` that the reference can write."""


class OpenRouterLogin(TokenLogin):
    """It knows no client ids and repeats no state, so that the address to come back to is the secret."""

    def address_fields(self, attempt: Attempt) -> Mapping[str, str]:
        return {
            "callback_url": attempt.redirect,
            "code_challenge": attempt.challenge,
            "code_challenge_method": "S256",
        }

    def exchange_fields(self, attempt: Attempt, redirect: Redirect) -> Mapping[str, str]:
        return {
            "code": redirect.code,
            "code_verifier": attempt.verifier,
            "code_challenge_method": "S256",
        }

    async def renew(self, credential: OAuthCredential, client: OAuthClient) -> OAuthCredential:
        raise LoginError(f"The login to {self.name} cannot be renewed")

    def credential(
        self, answer: OAuthAnswer, client: OAuthClient, old: OAuthCredential | None = None
    ) -> OAuthCredential:
        return OAuthCredential(access=answer.text("key"), expires=_NEVER)


LOGIN = OpenRouterLogin(
    name="OpenRouter",
    client_id="",
    authorize_url="https://openrouter.ai/auth",
    token_url="https://openrouter.ai/api/v1/auth/keys",
    body="json",
    page=CodePage(host="127.0.0.1", port=0, path="/oauth/callback", secret_path=True),
    kind="key",
)
