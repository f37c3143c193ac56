"""Images on their way into a session: made to fit the model, or a text that says why one is missing.

It is the one place where this is done, for prompts, queued messages and the results of whatever tool. Work on
images is done in a thread.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Final

from cantle.images.base64_data import image_data
from cantle.images.errors import UnusableImageError
from cantle.images.limits import MAX_SOURCE, ImageLimits, limits_of
from cantle.images.preparation import prepare
from cantle.tools.blocking import Check, run_blocking
from cantle_ai.abort import AbortSignal
from cantle_ai.content import ImageContent, TextContent, UserContent
from cantle_ai.model import Model

__all__ = ["admit_images"]

_LONGEST: Final = (MAX_SOURCE + 2) // 3 * 4 + 4096
"""Characters of base64, with some for line ends and the head of a data URL."""


async def admit_images(
    content: Sequence[UserContent], model: Model, signal: AbortSignal, *, shrink: bool
) -> list[UserContent]:
    """`content` as it enters the session of a run with `model`; what is told of an image stands before it.

    Images that are fit as they are stay the same objects. `shrink` is whether others may be made smaller.
    Raises :class:`cantle_agent.tool.ToolError` when `signal` is aborted meanwhile.
    """
    limits = limits_of(model, shrink=shrink)

    def work(check: Check) -> list[UserContent]:
        admitted: list[UserContent] = []
        for block in content:
            admitted.extend(_admitted(block, limits, check) if isinstance(block, ImageContent) else [block])
        return admitted

    return await run_blocking(work, signal)


def _admitted(block: ImageContent, limits: ImageLimits, check: Check) -> list[UserContent]:
    if len(block.data) > _LONGEST:
        return [_missing(f"it has {len(block.data):,} characters of data; at most {_LONGEST:,} are read.")]
    data = image_data(block.data)
    if data is None:
        return [_missing("its data are not base64.")]
    try:
        prepared = prepare(data, limits, check)
    except UnusableImageError as problem:
        return [_missing(f"it {problem}")]
    if prepared.data is not data or block.detected_type != block.mime_type:
        encoded = b64encode(prepared.data).decode("ascii")
        block = ImageContent(encoded, prepared.mime_type, extra=block.extra)
    return [TextContent(prepared.note), block] if prepared.note else [block]


def _missing(reason: str) -> TextContent:
    return TextContent(f"[An image was left out: {reason}]")
