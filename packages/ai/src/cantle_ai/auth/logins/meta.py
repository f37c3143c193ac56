"""Meta's subscription: the login gives a token with which a key for the API is fetched, good for a day."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cantle_ai.auth.credentials import OAuthCredential
from cantle_ai.auth.login import Dialogue, LoginError, LoginMethod
from cantle_ai.auth.oauth.client import OAuthClient
from cantle_ai.auth.oauth.tokens import TokenLogin

__all__ = ["LOGIN", "MetaLogin"]

_DAY = 86_400.0


class MetaLogin(TokenLogin):
    """`refresh` is the login's own token, `access` the key that it gives."""

    def __init__(self, *, key_url: str, client_id: str, device_url: str, token_url: str) -> None:
        super().__init__(
            name="Meta", client_id=client_id, device_url=device_url, token_url=token_url, kind="key"
        )
        self.key_url = key_url

    async def sign_in(
        self, method: LoginMethod, dialogue: Dialogue, client: OAuthClient, options: Mapping[str, str]
    ) -> OAuthCredential:
        signed_in = await super().sign_in(method, dialogue, client, options)
        return await self.renew(msgspec.structs.replace(signed_in, refresh=signed_in.access), client)

    async def renew(self, credential: OAuthCredential, client: OAuthClient) -> OAuthCredential:
        if not credential.refresh:
            raise LoginError(f"The login to {self.name} cannot be renewed")
        headers = {"Authorization": f"Bearer {credential.refresh}", "x-api-version": "1.0.0"}
        answer = await client.post_json(self.key_url, {}, headers)
        if not answer.ok:
            raise answer.refused("a key for the API")
        expires = round((client.clock() + _DAY) * 1000)
        return msgspec.structs.replace(credential, access=answer.text("api_key"), expires=expires)


LOGIN = MetaLogin(
    client_id="1031625952748946",
    device_url="https://auth.meta.com/oidc/device/authorization/",
    token_url="https://auth.meta.com/oidc/device/token/",
    key_url="https://api.meta.ai/muse-code/key",
)
