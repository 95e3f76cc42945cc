"""Greedy replies from llama.cpp's server and from this engine, and how fast they came."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from engine import DraftOptions, Finished, GenerateOptions, Message

if TYPE_CHECKING:
    from engine import Model

REPLY = 96
"""Tokens of a reply; ends of text are passed over."""


def own_speed(model: Model, prompt: str, drafts: int) -> tuple[float, list[int]]:
    """Tokens per second after the prompt, and the prompt's tokens."""
    messages = [Message("user", prompt)]
    draft = DraftOptions("mtp" if drafts else "none", drafts or 1)
    options = GenerateOptions(max_new_tokens=REPLY, ignore_eos=True, draft=draft)
    session = model.new_session()
    tokens = session.prompt_tokens(messages, options)
    for record in session.complete(tokens, options):
        if isinstance(record, Finished):
            return record.stats.tokens_per_s, tokens
    raise RuntimeError("the reply did not end")


class LlamaServer:
    """A server of one file on this computer, for one reply at a time."""

    def __init__(self, program: Path, file: Path, threads: int, drafts: int = 0) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._address = f"http://127.0.0.1:{port}"
        command = [program, "-m", file, "-c", 1024, "-np", 1, "-t", threads, "-tb", threads, "--port", port]
        command += ["--host", "127.0.0.1", "--cache-ram", 0]
        if drafts:
            command += ["--spec-type", "draft-mtp", "--spec-draft-n-max", drafts, "--spec-draft-p-min", 0]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen([str(part) for part in command], stdout=quiet, stderr=quiet)

    def __enter__(self) -> LlamaServer:
        for _ in range(300):
            try:
                if self._ask("/health")["status"] == "ok":
                    return self
            except OSError:
                time.sleep(0.2)
        self.close()
        raise RuntimeError("llama-server does not answer")

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the server."""
        self._process.terminate()
        self._process.wait(30)

    def speed(self, tokens: list[int]) -> float:
        """Tokens per second of the reply to a prompt of `tokens`."""
        body = {
            "prompt": tokens, "n_predict": REPLY, "temperature": 0, "ignore_eos": True, "cache_prompt": False,
            "samplers": ["temperature"], "repeat_penalty": 1.0,
        }  # fmt: skip
        answer = self._ask("/completion", body)
        return float(answer["timings"]["predicted_per_second"])

    def _ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._address + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.load(answer)
