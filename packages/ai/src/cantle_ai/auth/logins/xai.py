"""SuperGrok and X Premium."""

from __future__ import annotations

from cantle_ai.auth.oauth.tokens import TokenLogin

__all__ = ["LOGIN"]

LOGIN = TokenLogin(
    name="SuperGrok or X Premium",
    client_id="b1a00492-073a-47ea-816f-4c329264a828",
    device_url="https://auth.x.ai/oauth2/device/code",
    token_url="https://auth.x.ai/oauth2/token",
    scopes=("openid", "profile", "email", "offline_access", "grok-cli:access", "api:access"),
)
