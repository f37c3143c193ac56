"""What is used of the package `xllamacpp`: a model that is loaded, and answers one request after the other.

Its `Server` is llama.cpp's own, so it also listens for HTTP. Nobody is to talk to it: its socket lies in a
folder that only this user can enter, and is taken away as soon as it stands; where there are no such sockets,
it listens on the loopback interface and takes a key that nobody knows.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from msgspec import Struct

from cantle_ai.errors import ConfigurationError
from cantle_ai.local.gguf import GgufHeader, read_header
from cantle_ai.local.rows import NO_ENGINE
from cantle_ai.system_errors import reason_of

__all__ = ["LoadOptions", "Server", "load"]

_SILENT = -1
"""Nothing is logged: standard output and standard error belong to the program."""
_BATCH = 64
"""Tokens of a prompt that are worked on at once. An abort is noticed between two batches; larger ones are hardly
quicker (6 % from 64 to 2048), and take more memory."""
_OTHER_PROMPTS_MIB = 256
"""What may be kept of conversations other than the last, so that going back to one is quick."""
_LEAST_CONTEXT = 256
"""llama.cpp rounds up to this, and ends the process where it was asked for a handful."""
_IDLE = 1.5
"""Processors that have to be idle for a second thread to pay, by the load of the last minute."""
_LONGEST_SOCKET_PATH = 100


class LoadOptions(Struct, frozen=True, kw_only=True):
    """How a model is loaded."""

    path: Path
    context: int
    """Tokens of the context window; never more than the model was trained for."""
    threads: int = 1
    """For generating. More than one pays only where a whole processor waits for it: threads meet at every layer
    and wait for the slowest, and with two on a busy machine an answer took ten times as long."""
    prompt_threads: int | None = None
    """For reading the prompt, where two are nearly twice as fast as one: two by default where two processors are idle."""


class Server(Protocol):
    """A model that is loaded. It is closed when it is forgotten."""

    def handle_chat_completions(self, request: bytes, callback: Callable[[bytes], bool], /) -> object:
        """Answer a request, as llama.cpp's HTTP server would. The callback gets each chunk as JSON, and ends it with true.

        Runs until the end, in the calling thread, without holding up others. Raises RuntimeError.
        """
        ...


def load(options: LoadOptions) -> Server:
    """Load a model; takes the time that reading its file takes.

    Raises :class:`ConfigurationError` when the package is missing, the file is not what it should be, or llama.cpp
    cannot load it.
    """
    header = read_header(options.path)
    try:
        import xllamacpp
    except ImportError as error:
        missing = error.name == "xllamacpp"
        raise ConfigurationError(None, NO_ENGINE if missing else f"{NO_ENGINE} ({error})") from None
    with _address() as (host, key):
        try:
            server: Server = xllamacpp.Server(_parameters(xllamacpp, options, header, host, key))
        except (RuntimeError, ValueError) as error:
            raise ConfigurationError(
                options.path, f"cannot be loaded by llama.cpp: {_reason(error)}"
            ) from None
    return server


def _parameters(package: ModuleType, options: LoadOptions, header: GgufHeader, host: str, key: str) -> object:
    parameters: Any = package.CommonParams()
    parameters.model.path = str(options.path)
    parameters.n_ctx = max(min(options.context, header.context_length or options.context), _LEAST_CONTEXT)
    parameters.n_parallel = 1
    parameters.n_batch = parameters.n_ubatch = _BATCH
    parameters.cpuparams.n_threads = options.threads
    parameters.cpuparams_batch.n_threads = options.prompt_threads or max(options.threads, _prompt_threads())
    parameters.cache_ram_mib = _OTHER_PROMPTS_MIB
    parameters.fit_params = False  # the context is worked out from the header; trying it out doubles the time
    parameters.warmup = False
    parameters.verbosity = _SILENT
    parameters.hostnames = [host]
    parameters.api_keys = [key]
    parameters.cors_origins = ""
    parameters.n_threads_http = 1
    parameters.ui = False
    parameters.endpoint_slots = False
    return parameters


def _prompt_threads() -> int:
    """Two where two processors are idle: on a busy machine two threads are slower than one."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else processors / 2
    return 2 if processors - busy >= _IDLE else 1


@contextmanager
def _address() -> Iterator[tuple[str, str]]:
    """Where the server has to listen, and a key. Nobody can reach it there afterwards."""
    key = secrets.token_hex(32)
    if sys.platform == "win32":
        yield "127.0.0.1", key
    else:
        try:
            folder = tempfile.mkdtemp(prefix="cantle-")
        except OSError as error:
            raise ConfigurationError(
                None,
                f"The local model needs a folder for its socket, and none can be made: {reason_of(error)}. "
                "Set TMPDIR to a folder that can be written to",
            ) from None
        try:
            socket = os.path.join(folder, "llama.sock")  # noqa: PTH118 - a string is what is wanted
            yield (socket if len(os.fsencode(socket)) <= _LONGEST_SOCKET_PATH else "127.0.0.1"), key
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _reason(error: Exception) -> str:
    """llama.cpp says what is wrong to its log alone; what is known is that the header is sound."""
    text = str(error)
    if "please check the input params" in text:
        return "it is damaged, its kind of model is too new, or there is too little memory"
    return text
