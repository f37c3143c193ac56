"""Bytes out of the base64 that tools and programs give, which is not always what providers call base64."""

from __future__ import annotations

import binascii

__all__ = ["image_data"]


def image_data(text: str) -> bytes | None:
    """The bytes; None when it is no base64.

    White space, a missing end (`=`), the alphabet for addresses and the head of a data URL are understood.
    """
    if text[:5].lower() == "data:":
        head, _, text = text.partition(",")
        if not head.lower().endswith(";base64"):
            return None
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        pass
    mended = "".join(text.split()).rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return binascii.a2b_base64(mended + "=" * (-len(mended) % 4), strict_mode=True)
    except ValueError:
        return None
