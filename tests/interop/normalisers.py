"""What is left out of a comparison, as a list of named rules, each with its reason.

A rule takes the view of a run and changes it. Whatever no rule takes out is compared as it is, so that a rule
is as narrow as it can be: what a user or a program could notice belongs into the ledger and not here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import partial
from itertools import takewhile
from typing import Any

from tests.interop.case import Case, Run

__all__ = ["RULES", "Normaliser", "View", "plain_summary", "raw_view", "view"]

View = dict[str, Any]
"""`exit`, `stdout`, `stderr`, `events`, `requests`, `sessions` and `files` of a run."""


@dataclass(frozen=True)
class Normaliser:
    """One thing that is not compared. `row` is the row of the ledger that says why the programs differ in it."""

    name: str
    reason: str
    apply: Callable[[View, Case, Run], None]
    row: str | None = None


def view(case: Case, run: Run) -> View:
    """A run as it is compared."""
    found = raw_view(run)
    for rule in RULES:
        rule.apply(found, case, run)
    return found


def raw_view(run: Run) -> View:
    """A run before any rule. It shares nothing with the run."""
    shown = asdict(run)
    return {
        "exit": [step.code for step in run.steps],
        "stdout": [[] if step.records else step.stdout.splitlines() for step in run.steps],
        "stderr": [step.stderr for step in run.steps],
        "events": [record for step in shown["steps"] for record in step["records"]],
        "requests": shown["requests"],
        "sessions": shown["sessions"],
        "files": shown["files"],
    }


# --- places, ids, times ------------------------------------------------------------------------


def _places(found: View, case: Case, run: Run) -> None:
    def rewrite(text: str) -> str:
        for name, path in run.places.items():
            text = text.replace(path, f"<{name}>")
        return text

    _texts(found, rewrite)


def _ids(found: View, case: Case, run: Run) -> None:
    names: dict[str, str] = {}
    for number, entries in enumerate(found["sessions"], 1):
        for place, entry in enumerate(entries):
            if isinstance(entry.get("id"), str):
                name = f"<session {number}>" if place == 0 else f"<entry {number}.{place}>"
                names.setdefault(entry["id"], name)
    if found["events"] and found["events"][0]["type"] == "session":
        names.setdefault(found["events"][0]["id"], "<session>")
    _texts(found, lambda text: names.get(text, text))


_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def _times(found: View, case: Case, run: Run) -> None:
    for node in _objects(found):
        stamp = node.get("timestamp")
        if isinstance(stamp, int) and stamp > 1_600_000_000_000:
            node["timestamp"] = "<milliseconds>"
        elif isinstance(stamp, str) and _ISO.fullmatch(stamp):
            node["timestamp"] = "<ISO time>"
        if isinstance(node.get("durationMs"), int | float):
            node["durationMs"] = "<milliseconds>"


def _volatile(found: View, case: Case, run: Run) -> None:
    for pattern in case.volatile:
        _texts(found, partial(re.sub, pattern, "<volatile>"))


def _sums(found: View, case: Case, run: Run) -> None:
    for node in _objects(found):
        if isinstance(node.get("cost"), dict):
            node["cost"] = {
                name: round(value, 12) if isinstance(value, float) else value
                for name, value in node["cost"].items()
            }


# --- each program's own words ------------------------------------------------------------------


def _prompt(found: View, case: Case, run: Run) -> None:
    for request in found["requests"]:
        for field in _PROMPTS & request["body"].keys():
            request["body"][field] = _own_words(request["body"][field])
    for message in _sent(found):
        if message.get("role") in ("system", "developer"):
            content = message["content"]
            words = content if isinstance(content, str) else "".join(part["text"] for part in content)
            if isinstance(content, list):
                message["content"] = [{**part, "text": "<own words>"} for part in content]
            else:
                message["content"] = "<own words>"
            message["holds"] = sorted((mark for mark in case.marks if mark in words), key=words.index)


_PROMPTS = {"system", "instructions", "systemInstruction"}
"""Where APIs have the system prompt that keep it out of the messages."""


def _own_words(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: "<own words>" if name == "text" else _own_words(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_own_words(one) for one in value]
    return "<own words>" if isinstance(value, str) and len(value) > 40 else value


def _summaries(found: View, case: Case, run: Run) -> None:
    """What is summed up, what is carried on and what is asked for in particular are compared, wrapped in one way."""
    for message in _sent(found):
        if isinstance(message.get("content"), str) and message["role"] == "user":
            message["content"] = _summary_request(message["content"], case) or message["content"]
    _texts(found, plain_summary)


def _summary_request(text: str, case: Case) -> dict[str, Any] | None:
    asked = _CONVERSATION.match(text)
    if asked is None:
        return None
    rest = text[asked.end() :]
    earlier = _EARLIER.search(rest)
    return {
        "conversation": asked[1] if asked[2] is None else asked[2],
        "earlier": earlier and earlier[1],
        "marks": [mark for mark in case.marks if mark in rest],
    }


def plain_summary(text: str) -> str:
    """A summary as a model is told it, without the words that each program puts around it."""
    return _WRAPPED.sub(r"<summary>\2", _TURN.sub("<turn> ", text))


_CONVERSATION = re.compile(
    r"<conversation>\n(.*)\n</conversation>\n|# Conversation\n(.*)\n\n# Instructions\n", re.DOTALL
)
_EARLIER = re.compile(r"<previous-summary>\n(.*)\n</previous-summary>", re.DOTALL)
_TURN = re.compile(
    r"(No prior history\.\n\n---\n\n)?(\*\*Turn Context \(split turn\):\*\*"
    r"|## The turn that was under way when this was written)\n\n"
)
_WRAPPED = re.compile(r"\A[^<\n]+:\n\n<(summary|history-summary|branch-summary)>\n(.*?)\s*</\1>\Z", re.DOTALL)


def _checkpoints(found: View, case: Case, run: Run) -> None:
    for node in _objects(found["sessions"]):
        if node.get("type") == "compaction":
            node.pop("systemMessage", None)


def _versions(found: View, case: Case, run: Run) -> None:
    if "--version" in case.words:
        found["stdout"] = [[_VERSION.sub("<version>", line) for line in lines] for lines in found["stdout"]]


_VERSION = re.compile(r"\d+\.\d+\.\d+\S*")


def _descriptions(found: View, case: Case, run: Run) -> None:
    for request in found["requests"]:
        body = request["body"]
        for node in [*_objects(body.get("tools")), *_objects(body.get("toolConfig"))]:
            if isinstance(node.get("description"), str):
                node["description"] = "<own words>"


def _complaints(found: View, case: Case, run: Run) -> None:
    found["stderr"] = [{"speaks": bool(text.strip())} for text in found["stderr"]]


_CLIENT = frozenset(
    {"accept", "accept-encoding", "accept-language", "connection", "content-length", "host", "sec-fetch-mode"}
)


def _headers(found: View, case: Case, run: Run) -> None:
    for request in found["requests"]:
        request["headers"] = {
            name: "<own words>" if name == "user-agent" else value
            for name, value in request["headers"].items()
            if name not in _CLIENT and not name.startswith("x-stainless-")
        }


def _made_ids(found: View, case: Case, run: Run) -> None:
    told = {
        one["toolCallId"] for one in _objects([found["events"], found["sessions"]]) if "toolCallId" in one
    }
    for request in found["requests"]:
        names: dict[str, str] = {}
        for node in _objects(_conversation(request["body"])):
            called = "function" in node or node.get("type") in ("tool_use", "function_call")
            for field in ("id", *_CALL_IDS) if called else _CALL_IDS:
                made = node.get(field)
                if isinstance(made, str) and not any(made in one for one in told):
                    node[field] = names.setdefault(made, f"<made id {len(names) + 1}>")


_CALL_IDS = ("tool_call_id", "tool_use_id", "toolUseId", "call_id")


# --- what one side has by its design -----------------------------------------------------------


def _system_messages(found: View, case: Case, run: Run) -> None:
    found["events"] = [record for record in found["events"] if not _of_the_system(record)]
    for record in found["events"]:
        if "messages" in record:
            record["messages"] = [one for one in record["messages"] if one.get("role") != "system"]
    for entries in found["sessions"]:
        parents = {entry["id"]: entry["parentId"] for entry in entries if _of_the_system(entry)}
        entries[:] = [entry for entry in entries if not _of_the_system(entry)]
        for entry in entries:
            while entry.get("parentId") in parents:
                entry["parentId"] = parents[entry["parentId"]]


def _of_the_system(record: dict[str, Any]) -> bool:
    message = record.get("message")
    return isinstance(message, dict) and message.get("role") == "system"


def _parts(found: View, case: Case, run: Run) -> None:
    for message in _sent(found):
        match message.get("content"):
            case [{"type": "text", "text": str() as words, **more}] if not more:
                message["content"] = words


def _progress(found: View, case: Case, run: Run) -> None:
    found["events"] = [one for one in found["events"] if one["type"] != "tool_execution_update"]


# --- what would be told many times -------------------------------------------------------------


def _deltas(found: View, case: Case, run: Run) -> None:
    joined: list[dict[str, Any]] = []
    for record in found["events"]:
        event = record.get("assistantMessageEvent", {})
        last = joined[-1].get("assistantMessageEvent", {}) if joined else {}
        same = all(event.get(name) == last.get(name) for name in ("type", "contentIndex"))
        if event.get("type", "").endswith("_delta") and same:
            last["delta"] += event["delta"]
        else:
            joined.append(record)
    found["events"] = joined


def _repeats(found: View, case: Case, run: Run) -> None:
    ended = _events_once(found["events"])
    for entries in found["sessions"]:
        for entry in entries:
            if "message" in entry:
                told = _told(entry["message"], ended)
                ended.append(entry["message"])
                entry["message"] = told
    results = {one["toolCallId"]: one for one in ended if one.get("role") == "toolResult"}
    for record in found["events"]:
        if record["type"] == "tool_execution_end":
            _result_once(record, results[record["toolCallId"]])
    _requests_once(found["requests"], results)


def _events_once(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Shorten what is told again. Returns the messages as they were told."""
    ended: list[dict[str, Any]] = []
    for record in events:
        if record["type"] == "message_end":
            ended.append(record["message"])
        elif record["type"] == "message_start" and record["message"].get("role") != "assistant":
            ended.append(record["message"])
            record["message"] = {"role": record["message"]["role"]}
        elif record["type"] == "turn_end":
            record["message"] = _told(record["message"], ended)
            record["toolResults"] = [_told(one, ended) for one in record["toolResults"]]
        elif record["type"] == "agent_end":
            record["messages"] = [_told(one, ended) for one in record["messages"]]
        elif record["type"] == "message_update":
            del record["usage"]
    return ended


def _result_once(record: dict[str, Any], message: dict[str, Any]) -> None:
    for name in ("content", "details"):
        if name in message and record["result"].get(name) == message[name]:
            del record["result"][name]


def _requests_once(requests: list[dict[str, Any]], results: dict[str, dict[str, Any]]) -> None:
    before: dict[str, list[Any]] = {}
    declared: dict[str, Any] = {}
    for request in requests:
        messages = _conversation(request["body"])
        last = before.get(request["path"], [])
        same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(last, messages, strict=False))))
        before[request["path"]] = deepcopy(messages)
        for place, message in enumerate(messages):
            if place < same:
                messages[place] = "<as before>"
            elif message.get("role") == "tool":
                told = results.get(message["tool_call_id"])  # none where the id was made to fit
                if told is not None and message["content"] == _words(told):
                    message["content"] = "<told>"
        tools = request["body"].get("tools")
        if tools and declared.setdefault(request["path"], tools) is not tools:
            if tools == declared[request["path"]]:
                request["body"]["tools"] = "<as before>"


def _words(message: dict[str, Any]) -> str:
    return "\n".join(part.get("text", "") for part in message["content"])


def _told(message: Any, ended: list[Any]) -> Any:
    return {"role": message["role"], "as": "<told>"} if message in ended else message


# --- the shape in which differences read well --------------------------------------------------


def _kinds(found: View, case: Case, run: Run) -> None:
    found["events"] = _by_kind(found["events"])
    found["sessions"] = [_by_kind(entries) for entries in found["sessions"]]


def _by_kind(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Records of one kind in a list of their own, and the kinds in their order."""
    if not records:
        return {}
    kinds: dict[str, Any] = {"order": [_kind(record) for record in records]}
    for record in records:
        kinds.setdefault(_kind(record), []).append(record)
    ended = kinds.get("tool_execution_end", [])
    ended.sort(key=lambda record: str(record["toolCallId"]))  # they end as they finish
    return kinds


def _kind(record: dict[str, Any]) -> str:
    inner = record.get("assistantMessageEvent", {}).get("type", "")
    message = record.get("message")
    role = message.get("role", "") if isinstance(message, dict) else ""
    return " ".join(word for word in (record["type"], role, inner) if word)


RULES = (
    Normaliser("places", "each program has folders and a server of its own", _places),
    Normaliser(
        "system messages",
        "the reference keeps its prompt in the transcript",
        _system_messages,
        row="messages.no-system-role",
    ),
    Normaliser("ids", "ids are drawn; that they refer to each other is compared", _ids),
    Normaliser(
        "made ids", "ids of calls that are made to fit an API; that results have them is compared", _made_ids
    ),
    Normaliser("times", "no two runs have the same; their form is compared", _times),
    Normaliser("volatile", "what the case says that no two runs have the same", _volatile),
    Normaliser("sums", "prices are compared to a millionth of a millionth, however they were added", _sums),
    Normaliser("prompt", "each program has its own; what the user puts into it is looked for", _prompt),
    Normaliser(
        "parts",
        "one text is sent as text or as a list of one part",
        _parts,
        row="completions.one-text",
    ),
    Normaliser(
        "summaries",
        "each program has its own words to ask for a summary, and to put around it",
        _summaries,
        row="compaction.words",
    ),
    Normaliser(
        "checkpoints",
        "the reference keeps its prompt beside the summary",
        _checkpoints,
        row="compaction.checkpoint",
    ),
    Normaliser("versions", "each program has its own", _versions),
    Normaliser("descriptions", "the words that describe a tool are each program's own", _descriptions),
    Normaliser("complaints", "stderr speaks to people; whether it speaks is compared", _complaints),
    Normaliser("headers", "what an HTTP client sends by itself", _headers),
    Normaliser(
        "progress",
        "how often a command tells what it printed so far depends on time",
        _progress,
        row="tools.bash-progress",
    ),
    Normaliser("deltas", "how many deltas an answer is told in depends on how its bytes arrive", _deltas),
    Normaliser("repeats", "a message that was told whole is compared once", _repeats),
    Normaliser("kinds", "records of one kind are compared with each other, and the order by itself", _kinds),
)


def _sent(found: View) -> list[dict[str, Any]]:
    return [message for request in found["requests"] for message in _conversation(request["body"])]


def _conversation(body: dict[str, Any]) -> list[Any]:
    """The messages of a request, whatever its API calls them."""
    found: list[Any] = next((body[name] for name in ("messages", "input", "contents") if name in body), [])
    return found


def _objects(value: Any) -> list[dict[str, Any]]:
    """Every JSON object inside a value."""
    if isinstance(value, dict):
        return [value, *(found for inner in value.values() for found in _objects(inner))]
    if isinstance(value, list):
        return [found for inner in value for found in _objects(inner)]
    return []


def _texts(value: Any, rewrite: Callable[[str], str]) -> None:
    """Rewrite every text inside a value, in place."""
    for name, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        if isinstance(inner, str):
            value[name] = rewrite(inner)
        elif isinstance(inner, dict | list):
            _texts(inner, rewrite)
