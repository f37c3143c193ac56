"""Kimi Code."""

from __future__ import annotations

from cantle_ai.auth.oauth.tokens import TokenLogin

__all__ = ["LOGIN"]

LOGIN = TokenLogin(
    name="Kimi Code",
    client_id="17e5f671-d194-4dfb-9706-5516cb48c098",
    device_url="https://auth.kimi.com/api/oauth/device_authorization",
    token_url="https://auth.kimi.com/api/oauth/token",
    kind="bearer",
)
