"""A headless Chromium, and pages in it that note whatever they should not do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["Visit", "chromium", "visited"]


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser of this machine."""
    from playwright.sync_api import sync_playwright

    root = hasattr(os, "geteuid") and os.geteuid() == 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"] if root else []
        )
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A page that was opened: what it said, asked for and loaded."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.said: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (self.said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: self.asked.append(request.url))

    def loaded(self) -> list[str]:
        """What was asked for beside images in the page itself."""
        return [url for url in self.asked if not url.startswith("data:image/")]

    def shown(self, selector: str) -> bool:
        """Whether the first element that fits has a place on the page."""
        return bool(self.page.locator(selector).first.is_visible())


@contextmanager
def visited(
    browser: Any, file: Path, *, place: str = "", phone: bool = False, **options: Any
) -> Iterator[Visit]:
    """The page `file`, opened at `place`; `options` are those of a browser's context."""
    size = {"width": 390, "height": 844} if phone else {"width": 1360, "height": 900}
    context = browser.new_context(viewport=size, **options)
    try:
        visit = Visit(context.new_page())
        visit.page.goto(file.as_uri() + place)
        yield visit
    finally:
        context.close()
