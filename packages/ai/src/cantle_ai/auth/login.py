"""What a login is: a way to sign in to an account, to renew what that gave, and to authorise requests with it.

    login = find_login("anthropic")
    credential = await login.sign_in("browser", dialogue, OAuthClient(transport))

A login shows nothing and stores nothing itself: a :class:`Dialogue` speaks with the person, and whoever calls
saves the credential.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from msgspec import Struct

from cantle_ai.auth.credentials import OAuthCredential
from cantle_ai.errors import CantleAIError
from cantle_ai.model import AuthKind

if TYPE_CHECKING:
    from cantle_ai.auth.oauth.client import OAuthClient

__all__ = ["Dialogue", "Login", "LoginAuth", "LoginError", "LoginMethod"]

LoginMethod: TypeAlias = Literal["browser", "paste", "device"]
"""How a person signs in: in a browser on this machine, which comes back by itself; in any browser, pasting back
the address or code that it ends with; or in any browser, where a short code is typed in."""


class LoginError(CantleAIError):
    """A login, or the renewal of one, came to nothing. `str()` says why and what to do, without a full stop."""


class LoginAuth(Struct, frozen=True, kw_only=True):
    """What a login puts into a request."""

    api_key: str
    kind: AuthKind = "oauth"
    headers: Mapping[str, str] = {}
    base_url: str | None = None
    """Instead of the model's, where the account decides about it."""

    def __repr__(self) -> str:
        return f"LoginAuth(api_key=…, kind={self.kind!r}, base_url={self.base_url!r})"


class Dialogue(Protocol):
    """The person who signs in. All texts are for showing only, and any may hold what a server sent."""

    @property
    def can_paste(self) -> bool:
        """Whether somebody may paste something while a browser is waited for."""
        ...

    def show_address(self, url: str) -> None:
        """Have this page opened. It begins with https://, or http:// on this machine."""
        ...

    def show_code(self, code: str, url: str) -> None:
        """Have this code typed in at that page."""
        ...

    def tell(self, text: str) -> None:
        """Say how it goes on, in a sentence."""
        ...

    async def ask(self, question: str) -> str:
        """What the person types, a line. Raises :class:`LoginError` when nobody can be asked."""
        ...


class Login(Protocol):
    """One way to sign in. Values are resolved by name: :data:`cantle_ai.auth.logins.LOGINS`."""

    @property
    def name(self) -> str:
        """What is signed in to, for a person: `Claude Pro or Max`."""
        ...

    @property
    def methods(self) -> tuple[LoginMethod, ...]:
        """The ways that it has, the most convenient first."""
        ...

    async def sign_in(
        self, method: LoginMethod, dialogue: Dialogue, client: OAuthClient, options: Mapping[str, str]
    ) -> OAuthCredential:
        """Sign in. `options` are the login's own, such as `host`.

        Raises :class:`LoginError` when it was denied, took too long or is not possible, and
        :class:`cantle_ai.errors.ProviderError` when the server failed.
        """
        ...

    async def renew(self, credential: OAuthCredential, client: OAuthClient) -> OAuthCredential:
        """A new credential for one that has expired. The old one may be of no use from then on.

        Raises :class:`LoginError` when the server refuses for good.
        """
        ...

    def authorise(self, credential: OAuthCredential) -> LoginAuth:
        """What requests carry."""
        ...
