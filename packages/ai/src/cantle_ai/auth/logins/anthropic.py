"""Claude Pro and Max."""

from __future__ import annotations

from collections.abc import Mapping

from cantle_ai.auth.oauth.browser import CodePage
from cantle_ai.auth.oauth.pkce import Attempt
from cantle_ai.auth.oauth.redirect import Redirect
from cantle_ai.auth.oauth.tokens import TokenLogin

__all__ = ["LOGIN", "AnthropicLogin"]


class AnthropicLogin(TokenLogin):
    """The exchange repeats the state."""

    def exchange_fields(self, attempt: Attempt, redirect: Redirect) -> Mapping[str, str]:
        return {**super().exchange_fields(attempt, redirect), "state": attempt.state}


LOGIN = AnthropicLogin(
    name="Claude Pro or Max",
    client_id="9d1c250a-e61b-44d9-88ed-5944d1962f5e",
    authorize_url="https://claude.ai/oauth/authorize",
    token_url="https://platform.claude.com/v1/oauth/token",
    body="json",
    scopes=(
        "org:create_api_key",
        "user:profile",
        "user:inference",
        "user:sessions:claude_code",
        "user:mcp_servers",
        "user:file_upload",
    ),
    page=CodePage(port=53692, path="/callback", copied="https://platform.claude.com/oauth/code/callback"),
    authorize_fields={"code": "true"},
)
