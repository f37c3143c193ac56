"""Credentials that a platform supplies by itself: what a provider's row may name, and how they are noticed.

A row says `ambient="aws"`. Such a provider counts as configured when its entry here names a source, which it does
by looking at variables and for files, never at the network and without the platform's library. A request then
carries no key: the wire API asks `auth/aws.py` or `auth/google_cloud.py`, except where the entry has a `token`
that stands for one.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from cantle_ai.auth.oauth.client import OAuthClient
    from cantle_ai.model import Provider

__all__ = ["AMBIENT", "Ambient", "ambient_settings", "google_default_file"]

_Exchange: TypeAlias = "Callable[[Mapping[str, str], OAuthClient], Awaitable[tuple[str, float]]]"


class Ambient(Struct, frozen=True):
    """One kind of ambient credentials."""

    source: Callable[[Mapping[str, str]], str | None]
    """Where the credentials would come from, as a phrase; None when the environment names nothing."""
    token: Callable[[], _Exchange] | None = None
    """Loads what exchanges them for a token, and its end in seconds since 1970, for those that are sent as one."""
    variables: tuple[str, ...] = ()
    """What such a token depends on."""
    named_by: str = ""
    """The variables that a person sets to use what the machine has, as a phrase."""
    rivals: tuple[str, ...] = ()
    """Variables that name credentials. A stored credential that brings one of them means that one: what the process
    has of the others, and of the provider's keys, does not count then."""


_AWS_FILES = (
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
_AWS = (
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_ROLE_ARN",
    *_AWS_FILES,
)


def _aws(environ: Mapping[str, str]) -> str | None:
    """What is named, in the order of AWS's own tools. The default profile of a machine says nothing about Bedrock:
    it counts where `AWS_PROFILE` names it."""
    if environ.get("AWS_BEDROCK_SKIP_AUTH") == "1":
        return "AWS_BEDROCK_SKIP_AUTH"
    if environ.get("AWS_ACCESS_KEY_ID") and environ.get("AWS_SECRET_ACCESS_KEY"):
        return "AWS_ACCESS_KEY_ID"
    if profile := environ.get("AWS_PROFILE"):
        return f"the AWS profile {profile}"
    return next((name for name in _AWS_FILES if environ.get(name)), None)


def _google_cloud(environ: Mapping[str, str]) -> str | None:
    """Application Default Credentials, of use only with a project and a location."""
    project = environ.get("GOOGLE_CLOUD_PROJECT") or environ.get("GCLOUD_PROJECT")
    if not project or not environ.get("GOOGLE_CLOUD_LOCATION"):
        return None
    named = environ.get("GOOGLE_APPLICATION_CREDENTIALS")
    if named:
        return "GOOGLE_APPLICATION_CREDENTIALS" if Path(named).is_file() else None
    if google_default_file(environ).is_file():
        return "gcloud's application default"
    if environ.get("GCE_METADATA_HOST") or environ.get("K_SERVICE") or _on_google_machine():
        return "the metadata server"
    return None


def _on_google_machine() -> bool:
    """Whether the firmware says so, which Google's own libraries go by. Elsewhere there is no such file."""
    try:
        return Path("/sys/class/dmi/id/product_name").read_text("utf-8").startswith("Google")
    except (OSError, ValueError):
        return False


def google_default_file(environ: Mapping[str, str]) -> Path:
    """Where `gcloud auth application-default login` leaves its credentials."""
    if folder := environ.get("CLOUDSDK_CONFIG"):
        home = Path(folder)
    elif os.name == "nt":
        home = Path(environ.get("APPDATA", "")) / "gcloud"
    else:
        home = Path(environ.get("HOME") or Path.home()) / ".config" / "gcloud"
    return home / "application_default_credentials.json"


_FEDERATION = ("ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_ORGANIZATION_ID", "ANTHROPIC_IDENTITY_TOKEN_FILE")


def _federation(environ: Mapping[str, str]) -> str | None:
    return "workload identity federation" if all(environ.get(name) for name in _FEDERATION) else None


def _federation_token() -> _Exchange:
    from cantle_ai.auth.federation import federated_token

    return federated_token


AMBIENT: Mapping[str, Ambient] = {
    "aws": Ambient(_aws, named_by="AWS_PROFILE", rivals=_AWS),
    "google-cloud": Ambient(
        _google_cloud,
        named_by="GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION",
        rivals=("GOOGLE_APPLICATION_CREDENTIALS",),
    ),
    "anthropic-federation": Ambient(
        _federation,
        _federation_token,
        (*_FEDERATION, "ANTHROPIC_SERVICE_ACCOUNT_ID", "ANTHROPIC_WORKSPACE_ID", "ANTHROPIC_BASE_URL"),
        rivals=_FEDERATION,
    ),
}
"""By the name that a provider's row gives."""


def ambient_settings(provider: Provider) -> tuple[str, ...]:
    """What a person can set, beside keys, so that a provider's requests are authorised: a phrase, or nothing."""
    named_by = "" if provider.ambient is None else AMBIENT[provider.ambient].named_by
    return (named_by,) if named_by else ()
