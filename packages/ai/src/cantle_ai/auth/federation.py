"""Anthropic's workload identity federation: a platform's identity token is exchanged for a short access token.

The variables are the vendor's: `ANTHROPIC_FEDERATION_RULE_ID`, `ANTHROPIC_ORGANIZATION_ID` and
`ANTHROPIC_IDENTITY_TOKEN_FILE`; `ANTHROPIC_SERVICE_ACCOUNT_ID` and `ANTHROPIC_WORKSPACE_ID` go with them. The file
is read at each exchange, since platforms renew it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cantle_ai.auth.login import LoginError
from cantle_ai.auth.oauth.client import OAuthClient
from cantle_ai.errors import ConfigurationError
from cantle_ai.system_errors import reason_of

__all__ = ["federated_token"]

_URL = "https://api.anthropic.com"
_BETA = {"anthropic-beta": "oauth-2025-04-20,oidc-federation-2026-04-01"}
_FIELDS = {
    "federation_rule_id": "ANTHROPIC_FEDERATION_RULE_ID",
    "organization_id": "ANTHROPIC_ORGANIZATION_ID",
    "service_account_id": "ANTHROPIC_SERVICE_ACCOUNT_ID",
    "workspace_id": "ANTHROPIC_WORKSPACE_ID",
}


async def federated_token(environ: Mapping[str, str], client: OAuthClient) -> tuple[str, float]:
    """An access token, and when it ends, in seconds since 1970.

    Raises :class:`ConfigurationError` when the identity token cannot be read or is refused.
    """
    identity = _identity(Path(environ["ANTHROPIC_IDENTITY_TOKEN_FILE"]))
    fields = {name: value for name, variable in _FIELDS.items() if (value := environ.get(variable))}
    grant = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": identity, **fields}
    url = (environ.get("ANTHROPIC_BASE_URL") or _URL).rstrip("/")
    try:
        answer = await client.post_json(f"{url}/v1/oauth/token", grant, _BETA)
        if not answer.ok:
            raise answer.refused("the identity token")
        return answer.text("access_token"), client.expiry(answer.seconds("expires_in"), default=60) / 1000
    except LoginError as error:
        raise ConfigurationError(None, f"{error}. Check the federation rule and the identity token") from None


def _identity(path: Path) -> str:
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else "it is not text"
        raise ConfigurationError(
            path, f"the identity token cannot be read: {reason}. Check ANTHROPIC_IDENTITY_TOKEN_FILE"
        ) from None
    if not token:
        raise ConfigurationError(path, "holds no identity token. Check ANTHROPIC_IDENTITY_TOKEN_FILE")
    return token
