"""The way in: put a session together from what is configured, with any part given instead.

async with create_agent_session() as session:
    await session.prompt("What is in this folder?")
    print(session.last_answer.text)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from cantle.credentials import saved_credentials
from cantle.errors import ConfigurationFileError, SessionError, ToolSelectionError, WorkingDirectoryError
from cantle.hub.agent_session import AgentSession, SessionParts, session_variables
from cantle.hub.model_selection import (
    ModelChoice,
    choose_level,
    choose_model,
    explain_no_key,
    find_model,
    require_key,
    require_parts,
    server_of,
)
from cantle.hub.opening import opening
from cantle.hub.projection_notes import ProjectionNotes
from cantle.hub.recorder import Recorder
from cantle.hub.retry import Pause, pause
from cantle.hub.tool_selection import select_tools
from cantle.paths import (
    ConfigPaths,
    config_directory,
    documentation,
    is_folder,
    present,
    project_directory,
    working_directory,
)
from cantle.prompt.context_files import load_context_files, prompt_file
from cantle.prompt.system_prompt import PromptParts, build_system_prompt
from cantle.session_place import sessions_directory
from cantle.settings import Settings, load_settings
from cantle.tools.builtin import BUILTIN_TOOLS
from cantle.tools.environment import ToolEnvironment
from cantle.trust import decide_trust, needs_trust, saved_decision
from cantle_agent.agent import Agent
from cantle_agent.config import AdmitImages
from cantle_agent.errors import SchemaError
from cantle_agent.messages import AgentMessage
from cantle_agent.tool import Tool, not_a_tool
from cantle_ai.abort import AbortSignal
from cantle_ai.content import UserContent
from cantle_ai.context import Context
from cantle_ai.errors import ConfigurationError
from cantle_ai.messages import ThinkingLevel
from cantle_ai.model import THINKING_LEVELS, Model, StreamOptions
from cantle_ai.models import Models
from cantle_ai.retry_policy import RetryPolicy
from cantle_ai.stream import AssistantMessageStream, StreamFunction
from cantle_session.errors import SessionFileError
from cantle_session.projection import SessionContext
from cantle_session.session import Session

if TYPE_CHECKING:
    from cantle.hub.fallback import FallbackChooser

__all__ = ["configured_models", "create_agent_session"]

_T = TypeVar("_T")


@opening
async def create_agent_session(
    *,
    cwd: str | Path | None = None,
    config_dir: str | Path | None = None,
    models: Models | None = None,
    model: Model | str | None = None,
    provider: str | None = None,
    thinking_level: ThinkingLevel | None = None,
    fallback_model: Model | str | FallbackChooser | None = None,
    session: Session | None = None,
    settings: Settings | None = None,
    tools: Sequence[str | Tool] | None = None,
    exclude_tools: Sequence[str] = (),
    system_prompt: str | None = None,
    append_system_prompt: Sequence[str] = (),
    context_files: bool = True,
    api_key: str | None = None,
    project_trusted: bool | None = None,
    pause: Pause = pause,
) -> AgentSession:
    """A session that is ready for its first prompt. What is not given is found as the command line finds it.

    Await it, or enter it with `async with`, which closes it too. `cwd` is where tools work: the session's folder,
    or the process's. `config_dir` replaces `CANTLE_DIR`. `model` may be part of a name, with `:level` behind it;
    `provider` narrows it, or picks that provider's first model. `fallback_model` goes on when that one
    has failed for good, its retries spent or its account empty: a model, a pattern, or a function from the failed
    answer to a model; the user's setting counts where neither `models` nor this is given. `api_key` is used for the provider of the first model, and never stored. `session` continues one (`Session.open`) or keeps it in memory (`Session.in_memory`).
    `tools` are names and `*` patterns of built-in tools, `+name` and `-name`, or tools of your own;
    `exclude_tools` goes last. A single text stands for a list of one. `project_trusted` decides whether the
    project's `.cantle` is read; None means by what was saved and configured. `pause` waits before a retry; tests
    give one that does not.

    Raises a :class:`cantle.errors.UserError` for whatever the user can mend: a missing folder, a broken
    configuration file, an unknown model, provider or tool, no key; TypeError for what is neither a tool nor the
    name of one. No file is changed before the first prompt.
    """
    folder = _folder(cwd, session)
    paths = ConfigPaths(config_directory() if config_dir is None else Path(config_dir).absolute())
    warnings: list[str] = []
    apart = models is not None and settings is None  # a runtime that the user's settings know nothing of
    if settings is None:
        settings = load_settings(paths)
    trusted = _trusted(folder, paths, settings, project_trusted, warnings)
    if trusted:
        settings = settings.with_project(folder)
    runtime = models if models is not None else configured_models(paths, warnings, settings)
    if session is None:
        session = Session.create(folder, sessions_directory(folder, paths, settings))
    stored = _context(session)
    backup = fallback_model or (None if apart else settings.fallback_model)
    await _ask_servers(runtime, settings, stored, model=model, provider=provider, backup=backup)
    choice = choose_model(
        runtime,
        settings,
        paths=paths,
        explicit=model,
        provider=provider,
        from_session=stored.model,
        given_key=api_key is not None,
    )
    warnings.extend(choice.warnings)
    require_parts(choice.model)
    if api_key is None:
        require_key(runtime, choice.model, paths)
    chosen_level = thinking_level or choice.level
    # A very long session is not searched for what does not matter.
    stored_level = (
        stored.thinking_level if choice.model.reasoning and not chosen_level else stored.level_at_hand
    )
    fallback, fallback_level = _fallback(runtime, backup, paths)
    projections = ProjectionNotes()
    environment = ToolEnvironment(
        cwd=folder,
        variables=lambda: session_variables(session, agent),
        shell_path=settings.shell_path,
        command_prefix=settings.shell_command_prefix,
        shell_leftovers=settings.shell_leftovers,
    )
    active = _tools(environment, settings, tools, exclude_tools, warnings)
    prompt = _prompt(
        paths,
        environment.cwd,
        active,
        custom=system_prompt,
        appended=_listed(append_system_prompt),
        context_files=context_files,
        trusted=trusted,
    )
    agent = _agent(
        runtime,
        choice.model,
        choose_level(
            choice.model,
            settings,
            explicit=chosen_level,
            from_session=_known_level(stored_level),
        ),
        settings,
        system_prompt=prompt,
        tools=active,
        messages=stored.messages,
        api_key=api_key,
        session_id=session.id,
        projections=projections,
    )
    return AgentSession(
        SessionParts(
            agent=agent,
            session=session,
            recorder=Recorder(session, stored.model, stored_level),
            models=runtime,
            paths=paths,
            settings=settings,
            api_key_provider=None if api_key is None else choice.model.provider,
            retry=_retry_policy(settings),
            fallback=fallback,
            fallback_level=fallback_level,
            projections=projections,
            warnings=warnings,
            pause=pause,
            cleanup=(environment.close, runtime.aclose) if models is None else (environment.close,),
            left_running=lambda: environment.left_running,
        )
    )


def _folder(cwd: str | Path | None, session: Session | None) -> Path:
    if cwd is not None or session is None:
        return working_directory(cwd)
    try:
        return working_directory(session.header.cwd)
    except WorkingDirectoryError:
        raise WorkingDirectoryError(
            f"The session's working directory {session.header.cwd} is gone.",
            "Restore that folder, or start a new session elsewhere.",
        ) from None


def _trusted(
    cwd: Path, paths: ConfigPaths, settings: Settings, decision: bool | None, warnings: list[str]
) -> bool:
    if not needs_trust(cwd, paths.root):
        return False
    trusted = decide_trust(cwd, paths.trust, decision=decision, default=settings.default_project_trust)
    undecided = decision is None and settings.default_project_trust == "ask"
    local = project_directory(cwd)
    if not trusted and undecided and is_folder(local) and saved_decision(cwd, paths.trust) is None:
        warnings.append(f"{local} is not read, because this project is not trusted; --approve reads it.")
    return trusted


def configured_models(paths: ConfigPaths, warnings: list[str], settings: Settings | None = None) -> Models:
    """The model runtime with its catalog, what `models.json` adds, and the saved credentials. Adds to `warnings`.

    `settings` are the user's, which are read when they are not given. Raises :class:`ConfigurationFileError` when
    one of the files cannot be used.
    """
    credentials = saved_credentials(paths, settings or load_settings(paths))
    if (warning := credentials.warning()) is not None:
        warnings.append(warning)
    models = Models(
        credentials=credentials, weights_folders=[paths.weights], explain_no_key=explain_no_key(paths)
    )
    if not present(paths.models):
        return models
    from cantle_ai.models_file import load_models_file

    try:
        file = load_models_file(paths.models)
        models.apply(file)
    except ConfigurationError as error:
        raise ConfigurationFileError(f"{error}.") from None
    warnings.extend(file.warnings)
    return models


def _context(session: Session) -> SessionContext:
    try:
        return session.context()
    except SessionFileError as error:
        raise SessionError(f"The session cannot be read. {error}.") from error


def _prompt(
    paths: ConfigPaths,
    cwd: Path,
    tools: Sequence[Tool],
    *,
    custom: str | None,
    appended: Sequence[str],
    context_files: bool,
    trusted: bool,
) -> str:
    """The system prompt, with the configuration's own files where nothing is given instead."""
    if custom is None:
        custom = prompt_file("SYSTEM.md", cwd=cwd, config_dir=paths.root, trusted=trusted)
    return build_system_prompt(
        PromptParts(
            cwd=cwd,
            tools=tools,
            documentation=documentation(),
            custom=custom,
            appended=appended or _appended(cwd, paths, trusted),
            context_files=load_context_files(cwd, paths.root) if context_files else (),
        )
    )


def _agent(
    models: Models,
    model: Model,
    level: ThinkingLevel,
    settings: Settings,
    *,
    system_prompt: str,
    tools: Sequence[Tool],
    messages: Sequence[AgentMessage],
    api_key: str | None,
    session_id: str,
    projections: ProjectionNotes,
) -> Agent:
    """The agent. `api_key` is for the provider of `model` alone."""
    try:
        return Agent(
            stream=_patient(models, settings),
            model=model,
            thinking_level=level,
            system_prompt=system_prompt,
            tools=tools,
            messages=messages,
            get_api_key=lambda provider: api_key if provider == model.provider else None,
            steering_mode=settings.steering_mode,
            follow_up_mode=settings.follow_up_mode,
            admit_images=_admission(settings),
            options=StreamOptions(
                session_id=session_id,
                cache_retention=settings.cache_retention,
                thinking_budgets=settings.thinking_budgets,
                timeout=settings.http_timeout,
                images=not settings.block_images,
                on_projection=projections,
            ),
        )
    except SchemaError as error:
        raise ToolSelectionError(f"{error}") from error


async def _ask_servers(
    models: Models,
    settings: Settings,
    stored: SessionContext,
    *,
    model: Model | str | None,
    provider: str | None,
    backup: Model | str | FallbackChooser | None,
) -> None:
    """Ask the servers of this machine whose models the session needs. Others are left in peace."""
    named = [(server_of(models, model, provider=provider), model if provider is None else None)]
    if isinstance(backup, str):
        named.append((server_of(models, backup), backup))
    remembered = stored.model[0] if stored.model else settings.default_provider
    other = server_of(models, None, provider=remembered) if model is None and provider is None else None
    if other is None and not any(server for server, _ in named):
        return
    from cantle.hub.local_servers import ask_server

    for server, wanted in named:
        if server is not None:
            await ask_server(models, server, wanted=wanted)
    if other is not None:
        await ask_server(models, other, needed=False)


def _fallback(
    models: Models, wanted: Model | str | FallbackChooser | None, paths: ConfigPaths
) -> tuple[FallbackChooser | None, ThinkingLevel | None]:
    """What chooses the next model, and the level named with it.

    One that is named must be there, with a key, before it is needed.
    """
    if wanted is None or callable(wanted):
        return wanted, None
    choice = ModelChoice(wanted) if isinstance(wanted, Model) else find_model(models, wanted)
    require_parts(choice.model)
    require_key(models, choice.model, paths)
    return lambda failed: choice.model, choice.level


def _patient(models: Models, settings: Settings) -> StreamFunction:
    """Asks models, and gives servers of this machine the time that they need where no setting limits it.

    Without a graphics card, one is silent for many minutes while it reads a long prompt.
    """
    if settings.get("httpIdleTimeoutMs") is not None:
        return models.stream

    def stream(model: Model, context: Context, options: StreamOptions) -> AssistantMessageStream:
        row = models.provider(model.provider)
        if row is not None and row.server is not None:
            options = msgspec.structs.replace(options, timeout=None)
        return models.stream(model, context, options)

    return stream


def _admission(settings: Settings) -> AdmitImages:
    async def admit(
        content: Sequence[UserContent], model: Model, signal: AbortSignal
    ) -> Sequence[UserContent]:
        from cantle.hub.image_admission import admit_images

        return await admit_images(content, model, signal, shrink=settings.resize_images)

    return admit


def _tools(
    environment: ToolEnvironment,
    settings: Settings,
    given: Sequence[str | Tool] | None,
    excluded: Sequence[str],
    warnings: list[str],
) -> list[Tool]:
    """The active tools. A tool of one's own stands for a built-in one of the same name."""
    chosen = () if given is None else _listed(given)
    for tool in chosen:
        if not isinstance(tool, str | Tool):
            raise TypeError(not_a_tool(tool))
    own = {tool.name: tool for tool in chosen if isinstance(tool, Tool)}
    names, problems = select_tools(
        [*BUILTIN_TOOLS, *(name for name in own if name not in BUILTIN_TOOLS)],
        defaults=settings.default_tools,
        requested=None
        if given is None
        else [tool if isinstance(tool, str) else tool.name for tool in chosen],
        excluded=_listed(excluded),
    )
    warnings.extend(problems)
    return [own[name] if name in own else BUILTIN_TOOLS[name](environment) for name in names]


def _listed(given: Sequence[_T]) -> Sequence[_T | str]:
    """A single text as a list of one: `Sequence[str]` lets it pass, and its letters are not what is meant."""
    if isinstance(given, str):
        return [given]
    if isinstance(given, Iterable):
        return given
    raise TypeError(f"Give a list, with {given!r} in it.")


def _appended(cwd: Path, paths: ConfigPaths, trusted: bool) -> Sequence[str]:
    text = prompt_file("APPEND_SYSTEM.md", cwd=cwd, config_dir=paths.root, trusted=trusted)
    return () if text is None else (text,)


def _retry_policy(settings: Settings) -> RetryPolicy:
    return RetryPolicy(
        max_retries=settings.max_retries if settings.retry_enabled else 0,
        base_delay_ms=settings.retry_base_delay_ms,
        max_delay_ms=settings.retry_max_delay_ms,
    )


def _known_level(level: str | None) -> ThinkingLevel | None:
    return level if level in THINKING_LEVELS else None
