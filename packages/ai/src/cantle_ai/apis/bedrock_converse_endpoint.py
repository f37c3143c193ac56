"""Where a Converse request goes: the region, and the address of Bedrock in it.

An address that is set counts as it is: the provider's `base_url`, else `AWS_ENDPOINT_URL_BEDROCK_RUNTIME` or
`AWS_ENDPOINT_URL`. Without one it is the region's own. The region is the first of these that there is: that in an
address of AWS's form, also of a private endpoint, that of an ARN which stands for the model, `AWS_REGION`,
`AWS_DEFAULT_REGION`, the profile's, and `us-east-1`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote

from cantle_ai.model import Model

__all__ = ["DEFAULT_REGION", "converse_url", "named_region"]

DEFAULT_REGION = "us-east-1"

_ARN = re.compile(r"arn:aws[a-z0-9-]*:(?:bedrock|sagemaker):([a-z0-9-]+):")
_ADDRESS = re.compile(r"[/.]bedrock-runtime(?:-fips)?\.([a-z]{2,}(?:-[a-z0-9]+)+)\.")
_DOMAINS = (("cn-", "amazonaws.com.cn"), ("eusc-", "amazonaws.eu"))
"""Domains of AWS by the beginning of the region; all others are at `amazonaws.com`."""
_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL")


def named_region(model: Model, environ: Mapping[str, str]) -> str | None:
    """The region, as far as it can be told without a profile."""
    found = _ADDRESS.search(_set_address(model, environ)) or _ARN.match(model.id)
    if found is not None:
        return found[1]
    names = ("AWS_REGION", "AWS_DEFAULT_REGION")
    return next((value for name in names if (value := environ.get(name, "").strip())), None)


def converse_url(model: Model, environ: Mapping[str, str], region: str) -> str:
    """Where to send the request of `model`."""
    address = _set_address(model, environ)
    if not address:
        domain = next((domain for start, domain in _DOMAINS if region.startswith(start)), "amazonaws.com")
        fips = "-fips" if environ.get("AWS_USE_FIPS_ENDPOINT", "").lower() == "true" else ""
        address = f"https://bedrock-runtime{fips}.{region}.{domain}"
    return f"{address.rstrip('/')}/model/{quote(model.id, safe='')}/converse-stream"


def _set_address(model: Model, environ: Mapping[str, str]) -> str:
    if model.base_url:
        return model.base_url
    return next((value for name in _ENDPOINT_VARIABLES if (value := environ.get(name, "").strip())), "")
