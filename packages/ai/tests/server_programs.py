"""Stand-ins for programs that serve models on this machine: what they answer, from their own documentation.

with Program(OLLAMA) as program:
    …  # program.url, program.asked
"""

from __future__ import annotations

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["LLAMA_CPP", "LLAMA_ROUTER", "LM_STUDIO", "OLLAMA", "SGLANG", "VLLM", "Answers", "Program"]

Answers = dict[str, Any]

LLAMA_CPP: Answers = {
    "/v1/models": {
        "models": [{"name": "../models/qwen3-4b.gguf", "capabilities": ["completion"]}],
        "object": "list",
        "data": [
            {
                "id": "../models/qwen3-4b.gguf",
                "aliases": [],
                "object": "model",
                "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]},
                "created": 1796091838,
                "owned_by": "llamacpp",
                "meta": {
                    "vocab_type": 2,
                    "n_vocab": 49152,
                    "n_ctx": 8192,
                    "n_ctx_train": 40960,
                    "n_embd": 576,
                },
            }
        ],
    },
    "/props": {
        "default_generation_settings": {"params": {"seed": 4294967295}, "n_ctx": 8192},
        "total_slots": 1,
        "model_path": "../models/qwen3-4b.gguf",
        "modalities": {"vision": True, "audio": False},
        "chat_template": "{%- if enable_thinking is defined and enable_thinking is false %}",
    },
}

LLAMA_ROUTER: Answers = {
    "/v1/models": {
        "object": "list",
        "data": [
            {"id": "unloaded", "status": {"value": "unloaded", "args": ["llama-server", "-c", "16384"]}},
            {
                "id": "decides",
                "architecture": {"input_modalities": ["text"], "output_modalities": ["decisions"]},
                "status": {"value": "unloaded"},
            },
            {"id": "broken", "status": {"value": "unloaded", "failed": True, "exit_code": 1}},
            {
                "id": "org/gemma:Q4",
                "architecture": {"input_modalities": ["text", "image"], "output_modalities": ["text"]},
                "status": {"value": "loaded", "args": ["llama-server", "-ctx", "4096"]},
            },
            {"id": "unknown", "status": {"value": "sleeping"}},
        ],
    },
    "/props?model=org%2Fgemma%3AQ4&autoload=false": {"default_generation_settings": {"n_ctx": 4096}},
}


def _shown(
    trained: int, *, parameters: str = "", capabilities: tuple[str, ...] = ("completion", "tools")
) -> Any:
    return {
        "parameters": parameters,
        "details": {"format": "gguf", "family": "llama"},
        "model_info": {"general.architecture": "llama", "llama.context_length": trained},
        "capabilities": [*capabilities],
    }


OLLAMA: Answers = {
    "/api/tags": {
        "models": [
            {"name": "llama3.2:latest", "model": "llama3.2:latest", "size": 1, "details": {"format": "gguf"}},
            {"name": "qwen3:4b", "model": "qwen3:4b", "size": 1},
            {"name": "tuned:latest", "model": "tuned:latest", "size": 1},
            {"name": "nomic-embed-text:latest", "model": "nomic-embed-text:latest", "size": 1},
        ]
    },
    "/api/ps": {
        "models": [
            {"name": "qwen3:4b", "model": "qwen3:4b", "size_vram": 1, "context_length": 32768},
        ]
    },
    "/api/show": {
        "llama3.2:latest": _shown(131072),
        "qwen3:4b": _shown(262144, capabilities=("completion", "tools", "thinking", "vision")),
        "tuned:latest": _shown(131072, parameters='stop    "<|eot|>"\nnum_ctx                        16384'),
        "nomic-embed-text:latest": _shown(2048, capabilities=("embedding",)),
    },
}

LM_STUDIO: Answers = {
    "/api/v0/models": {
        "object": "list",
        "data": [
            {
                "id": "qwen2-vl-7b-instruct",
                "object": "model",
                "type": "vlm",
                "arch": "qwen2_vl",
                "state": "not-loaded",
                "max_context_length": 32768,
            },
            {
                "id": "meta-llama-3.1-8b-instruct",
                "object": "model",
                "type": "llm",
                "arch": "llama",
                "state": "loaded",
                "max_context_length": 131072,
                "loaded_context_length": 8192,
            },
            {
                "id": "text-embedding-nomic-embed-text-v1.5",
                "object": "model",
                "type": "embeddings",
                "state": "not-loaded",
                "max_context_length": 2048,
            },
        ],
    }
}

VLLM: Answers = {
    "/v1/models": {
        "object": "list",
        "data": [
            {
                "id": "Qwen/Qwen3-8B",
                "object": "model",
                "created": 1715000000,
                "owned_by": "vllm",
                "root": "Qwen/Qwen3-8B",
                "parent": None,
                "max_model_len": 40960,
                "permission": [{"id": "modelperm-1", "object": "model_permission"}],
            }
        ],
    }
}

SGLANG: Answers = {
    "/v1/models": {
        "object": "list",
        "data": [
            {
                "id": "meta-llama/Llama-3.1-8B-Instruct",
                "object": "model",
                "owned_by": "sglang",
                "root": "meta-llama/Llama-3.1-8B-Instruct",
                "max_model_len": 131072,
            }
        ],
    }
}


class Program:
    """Serves answers by path, those to a POST by the model in its body. Anything else is not found."""

    def __init__(self, answers: Answers, *, key: str | None = None) -> None:
        """With a `key`, requests without it are refused."""
        asked: list[str] = []
        bodies: list[Any] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._serve(answers.get(self.path))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                bodies.append(body)
                answer = answers.get(self.path)
                self._serve(answer.get(body["model"]) if isinstance(answer, dict) else answer)

            def _serve(self, answer: Any) -> None:
                asked.append(self.path)
                if key is not None and self.headers["authorization"] != f"Bearer {key}":
                    self._send(401, {"error": {"message": "Invalid API Key", "type": "authentication_error"}})
                elif answer is None:
                    self._send(404, {"error": {"message": "File Not Found"}})
                else:
                    self._send(200, answer)

            def _send(self, status: int, answer: Any) -> None:
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                events = data.startswith(b"data:")
                self.send_header("content-type", "text/event-stream" if events else "application/json")
                self.send_header("content-length", str(len(data)))
                with contextlib.suppress(OSError):  # who asked may have left
                    self.end_headers()
                    self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.asked = asked
        self.bodies = bodies
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._server.server_port}"

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def __enter__(self) -> Program:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
