"""Sessions for the tests of exports: one that a person could have had, long ones, and ones that mean harm."""

from __future__ import annotations

import base64
import random
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

from cantle_ai.codec import JsonObject
from cantle_session.entries import Entry, SessionHeader, entry_from_json
from cantle_session.lines import encode_entry, encode_header
from cantle_session.stamps import iso_time

BEGIN = 1_772_360_430_000
"""2026-03-01 10:20:30 UTC."""

HEADER = SessionHeader(
    id="0197a3d2-6a10-7c44-9b1e-5d2f0c8a7e61", timestamp=iso_time(BEGIN), cwd="/home/ann/tidepool"
)


def write_session(file: Path, entries: Sequence[Entry]) -> Path:
    """A session file of these entries."""
    lines = [encode_header(HEADER), *map(encode_entry, entries)]
    file.write_bytes(b"\n".join(lines) + b"\n")
    return file


def picture(width: int, height: int) -> str:
    """A PNG image with a slope of colours, as base64."""
    rows = b"".join(
        b"\0" + b"".join(bytes((40 + 180 * x // width, 90 + 90 * y // height, 150)) for x in range(width))
        for y in range(height)
    )
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    chunks = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    ]
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(chunks)).decode()


class Story:
    """Entries that follow one another; `at` moves where the next one goes."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.leaf: str | None = None
        self.now = BEGIN
        self._context = 4_000

    def add(self, type: str, /, **fields: object) -> str:
        """An entry of this type behind the last one; `entry_id` in `fields` is its id."""
        entry_id = str(fields.pop("entry_id", f"{len(self.entries) + 0xA1B2C300:08x}"))
        raw: JsonObject = {
            "type": type,
            "id": entry_id,
            "parentId": self.leaf,
            "timestamp": iso_time(self.now),
        }
        self.entries.append(entry_from_json({**raw, **fields}))  # type: ignore[dict-item]
        self.leaf = entry_id
        self.now += 4_000
        return entry_id

    def at(self, entry_id: str | None) -> None:
        """Go on from there."""
        self.leaf = entry_id

    def message(self, **message: object) -> str:
        return self.add("message", message={**message, "timestamp": self.now})

    def user(self, text: str, *blocks: JsonObject) -> str:
        self.now += 40_000
        return self.message(
            role="user", content=[{"type": "text", "text": text}, *blocks] if blocks else text
        )

    def answer(self, *blocks: JsonObject | str, **fields: object) -> str:
        content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
        cached, fresh, out = self._context, 700 + 13 * len(self.entries) % 900, 60 + len(str(content)) // 4
        self._context += fresh + out
        usage = {
            "input": fresh, "output": out, "cacheRead": cached, "cacheWrite": 0, "totalTokens": cached + fresh + out,
            "cost": {"input": fresh * 3e-6, "output": out * 15e-6, "cacheRead": cached * 3e-7, "cacheWrite": 0,
                     "total": fresh * 3e-6 + out * 15e-6 + cached * 3e-7},
        }  # fmt: skip
        stop = "toolUse" if any(block.get("type") == "toolCall" for block in content) else "stop"
        facts: dict[str, object] = {
            "api": "anthropic-messages", "provider": "anthropic", "model": "claude-sonnet-4-5", "usage": usage,
            "stopReason": stop, "durationMs": 2_400 + out * 8,
        }  # fmt: skip
        return self.message(role="assistant", content=content, **{**facts, **fields})

    def result(
        self, call: JsonObject, *content: JsonObject | str, error: bool = False, **fields: object
    ) -> str:
        blocks = [{"type": "text", "text": block} if isinstance(block, str) else block for block in content]
        return self.message(
            role="toolResult",
            toolCallId=call["id"],
            toolName=call["name"],
            content=blocks,
            isError=error,
            **fields,
        )

    def compact(self, summary: str, **fields: object) -> str:
        before, self._context = self._context, 9_000
        return self.add(
            "compaction", summary=summary, firstKeptEntryId=self.leaf, tokensBefore=before, **fields
        )


def call(name: str, number: int, **arguments: object) -> JsonObject:
    return {"type": "toolCall", "id": f"call_{number}", "name": name, "arguments": arguments}  # type: ignore[dict-item]


def thought(text: str) -> JsonObject:
    return {"type": "thinking", "thinking": text}


TIDES = '''\
"""Tides from harmonic constants."""

from dataclasses import dataclass
from math import cos, tau


@dataclass(frozen=True)
class Constituent:
    name: str
    speed: float  # degrees an hour
    amplitude: float
    phase: float


def height(constituents: list[Constituent], hours: float) -> float:
    """The height above chart datum, in metres."""
    return sum(c.amplitude * cos(tau * (c.speed * hours - c.phase)) for c in constituents)
'''
DIFF = '''\
 13 def height(constituents: list[Constituent], hours: float) -> float:
 14     """The height above chart datum, in metres."""
-15     return sum(c.amplitude * cos(tau * (c.speed * hours - c.phase)) for c in constituents)
+15     return sum(
+16         c.amplitude * cos(radians(c.speed * hours - c.phase)) for c in constituents
+17     )
    ...'''


def tidepool() -> Story:
    """A session with two branches that were left, a compaction, and everything that an entry can be."""
    story = Story()
    story.add("session_info", name="The tides are half a day off")
    story.add("model_change", provider="anthropic", modelId="claude-sonnet-4-5")
    story.add("thinking_level_change", thinkingLevel="medium")
    story.user(
        "The heights that `tidepool` gives for Brest are wrong: high water comes half a day late.\n\n"
        "Here is what I see:\n```python\n>>> height(BREST, 6.2)\n-1.84\n```\nThe almanac says **+2.9 m**. Find out why."
    )
    look = call("read", 1, path="src/tidepool/harmonics.py")
    find = call("bash", 2, command="grep -rn 'tau\\|radians' src tests | head -20")
    story.answer(
        thought("High water at the wrong time with a plausible range smells like a unit error in the phase. "
                "I should look at where the angle is formed before I guess."),
        "I'll look at how the angle is formed, and at who else uses it.", look, find,
    )  # fmt: skip
    story.result(look, TIDES)
    story.result(find, "\x1b[35msrc/tidepool/harmonics.py\x1b[m:4:from math import cos, tau\n"
                       "\x1b[35msrc/tidepool/harmonics.py\x1b[m:19:    cos(tau * (c.speed * hours - c.phase))\n", durationMs=1_240)  # fmt: skip
    asked = story.answer(
        "Found it. The speeds are **degrees an hour**, and the sum multiplies them by `tau`, as if they were turns.\n\n"
        "| constituent | speed | read as | off by |\n|:--|--:|--:|--:|\n"
        "| M2 | 28.984°/h | 28.984 turns/h | ×360 |\n| S2 | 30.000°/h | 30.000 turns/h | ×360 |\n\n"
        "There are two ways to mend it:\n\n1. convert in `height`, with `radians`;\n2. keep speeds as turns, and convert once when the "
        "constants are read.\n\nThe first one changes a single line. Shall I?"
    )
    story.user("Try the second one.")
    write = call(
        "write",
        3,
        path="src/tidepool/units.ts",
        content="export const TURN = 360;\n\nexport function turns(degrees: number): number {\n  return degrees / TURN;\n}\n",
    )
    story.answer(thought("They want the conversion at the edge."), write)
    story.result(write, "Wrote 6 lines to src/tidepool/units.ts.")
    run = call("bash", 4, command="npm test -- --run units\n# and the types\nnpx tsc --noEmit", timeout=60)
    story.answer(run)
    story.result(
        run,
        "FAIL  units.test.ts > turns\nAssertionError: expected 0.0805 to be close to 28.984\n\nCommand exited with code 1",
        error=True,
        details={"exitCode": 1},
        durationMs=8_310,
    )
    story.answer(
        "That breaks every table that was stored in degrees, so it is *not* the small change that it seemed."
    )
    left = story.leaf
    story.at(asked)
    story.add(
        "branch_summary", fromId=left,
        summary="## What was tried\n\nConverting to turns when the constants are read. **It breaks stored tables**, "
                "which are in degrees.\n\n- `src/tidepool/units.ts` was written and is not needed",
        details={"readFiles": [], "modifiedFiles": ["src/tidepool/units.ts"]},
    )  # fmt: skip
    prompt = story.user("Then the first one, please. And show me the curve for a day.")
    story.add("label", targetId=prompt, label="the fix")
    story.at(story.leaf)
    edit = call("edit", 5, path="src/tidepool/harmonics.py", edits=[{"oldText": "a", "newText": "b"}])
    story.answer(edit)
    story.result(
        edit, "Changed 1 place in src/tidepool/harmonics.py.", details={"diff": DIFF, "firstChangedLine": 15}
    )
    plot = call("bash", 6, command="python -m tidepool plot BREST --day 2026-03-01 --out day.png")
    see = call("read", 7, path="day.png")
    story.answer(plot, see)
    story.result(plot, "wrote day.png (2 high waters, 2 low waters)")
    story.result(see, {"type": "image", "data": picture(420, 180), "mimeType": "image/png"})
    story.answer(
        "High water is now at **06:12** with 2.91 m, which agrees with the almanac:\n\n```python\n"
        "assert abs(height(BREST, 6.2) - 2.91) < 0.005  # metres\n```\n\n> The range is unchanged, as it should be: only the phase was wrong.\n\n"
        "- [x] one line changed\n- [x] checked against the almanac\n- [ ] no test covers the units yet"
    )
    story.message(role="bashExecution", command="git diff --stat", output=" src/tidepool/harmonics.py | 4 +++-\n 1 file changed, 3 insertions(+), 1 deletion(-)\n",
                  exitCode=0, cancelled=False, truncated=False)  # fmt: skip
    story.now += 86_400_000 // 2
    story.user("Good. Add a test for the units, then we are done.")
    test = call(
        "write",
        8,
        path="tests/test_units.py",
        content="from tidepool import height\n\n\ndef test_speeds_are_degrees_an_hour():\n    assert height([M2], 12.42) == pytest.approx(M2.amplitude, abs=0.01)\n",
    )
    check = call("bash", 9, command="pytest -q tests/test_units.py")
    story.answer("", test)
    story.result(test, "Wrote 5 lines to tests/test_units.py.")
    story.answer(check, stopReason="toolUse")
    failed = story.result(
        check,
        "E   NameError: name 'pytest' is not defined\n\nCommand exited with code 1",
        error=True,
        details={"exitCode": 1},
    )
    story.add("context_edit", targetId=failed, replacement=None)
    story.answer("", stopReason="error", errorMessage="overloaded_error: the service is busy")
    story.compact(
        "## Goal\nTides for Brest at the right time, with a test for the units.\n\n## Progress\n- [x] `height` uses `radians`\n- [x] test written\n\n"
        "## Next steps\n1. import `pytest` in the test",
        details={"readFiles": ["src/tidepool/harmonics.py", "day.png"], "modifiedFiles": ["src/tidepool/harmonics.py", "tests/test_units.py"]},
        usage={"input": 9_000, "output": 400, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 9_400, "cost": {"total": 0.033}},
    )  # fmt: skip
    mend = call(
        "edit",
        10,
        path="tests/test_units.py",
        edits=[
            {
                "oldText": "from tidepool import height\n",
                "newText": "import pytest\n\nfrom tidepool import height\n",
            }
        ],
    )
    story.answer(mend)
    story.result(mend, "Changed 1 place in tests/test_units.py.")
    again = call("bash", 11, command="pytest -q tests/test_units.py")
    story.answer(again)
    story.result(again, "1 passed in 0.04s")
    done = story.answer(
        "Done: the test passes, and it would have failed with the old line. `1 passed in 0.04s`"
    )
    story.add(
        "usage",
        kind="cache_warm",
        provider="anthropic",
        model="claude-sonnet-4-5",
        usage={"cacheRead": 9_000, "totalTokens": 9_000, "cost": {"total": 0.0027}},
    )
    story.add("custom", customType="todo-list", data={"open": [], "done": ["units", "test"]})
    story.add(
        "custom_message",
        customType="reviewer",
        content="The commit message should name the port.",
        display=True,
    )
    story.user("Thanks! Write the commit message.")
    story.answer(
        "```\nTides are in phase again\n\nSpeeds are degrees an hour; `height` read them as turns. Brest, checked against the almanac.\n```"
    )
    end = story.leaf
    story.at(done)
    story.user("Could we also have currents?")
    story.answer("Yes, with the same constituents: a current is the same sum with other constants.")
    story.at(end)
    story.add("label", targetId=end, label="to be merged")
    return story


def long_session(entries: int, seed: int = 1) -> Story:
    """A session of so many entries, with branches here and there."""
    chance = random.Random(seed)
    story = Story()
    story.add("session_info", name=f"A session of {entries:,} entries")
    turning: list[str] = []
    number = 0
    while len(story.entries) < entries:
        if turning and chance.random() < 0.04:
            story.at(chance.choice(turning[-40:]))
        turning.append(story.user(f"Step {number}: {chance.choice(_WISHES)}"))
        for _ in range(chance.randrange(1, 6)):
            number += 1
            what = call("bash", number, command=f"make step-{number}")
            story.answer(thought("One thing after the other. " * 4), what)
            story.result(
                what, "\n".join(f"step {number}, line {line}: ok" for line in range(chance.randrange(2, 30)))
            )
        story.answer(
            f"Step {number} is done.\n\n- it took *{number}* tries\n- `make step-{number}` passes\n\n```python\nprint({number})\n```"
        )
        if len(story.entries) % 400 < 12:
            story.compact("## Goal\nMany steps.\n\n## Progress\n- some are done")
    del story.entries[entries:]
    return story


_WISHES = (
    "make the parser accept trailing commas",
    "find out why the build is slow on the second run",
    "rename `Widget` to `Panel` everywhere",
    "write the chapter on storage",
    "why does this test pass alone and fail with the others?",
)
