"""What tests of programs that talk to models need: scripted models, a rule checker, a strict server."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cantle_ai.testing.chaos import ChaosModel
    from cantle_ai.testing.checker import RuleChecker, RuleViolation, check_events, checked, checked_function
    from cantle_ai.testing.echo import EchoModel
    from cantle_ai.testing.response import Response
    from cantle_ai.testing.script_file import load_script
    from cantle_ai.testing.scripted import ScriptedModel, StepClock
    from cantle_ai.testing.server.server import StrictServer

__all__ = [
    "ChaosModel",
    "EchoModel",
    "Response",
    "RuleChecker",
    "RuleViolation",
    "ScriptedModel",
    "StepClock",
    "StrictServer",
    "check_events",
    "checked",
    "checked_function",
    "load_script",
]

_HOMES = {
    "ChaosModel": "cantle_ai.testing.chaos",
    "EchoModel": "cantle_ai.testing.echo",
    "Response": "cantle_ai.testing.response",
    "RuleChecker": "cantle_ai.testing.checker",
    "RuleViolation": "cantle_ai.testing.checker",
    "ScriptedModel": "cantle_ai.testing.scripted",
    "StepClock": "cantle_ai.testing.scripted",
    "StrictServer": "cantle_ai.testing.server.server",
    "check_events": "cantle_ai.testing.checker",
    "checked": "cantle_ai.testing.checker",
    "checked_function": "cantle_ai.testing.checker",
    "load_script": "cantle_ai.testing.script_file",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
