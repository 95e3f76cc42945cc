"""Running commands as a shell would, but in this process, where kernels stay compiled."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engine.cli.main import main
from tests.engine.cli.broken import copy_checkpoint


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Result]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: object) -> Result:
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as error:
            code = int(error.code or 0)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


@pytest.fixture
def refused(run: Run) -> Callable[..., str]:
    """Run a command that must be refused: exit code 2, nothing on stdout, one line on stderr, which is returned."""

    def refused(*arguments: object) -> str:
        result = run(*arguments)
        assert result.code == 2, result
        assert result.out == ""
        assert result.err.endswith("\n")
        assert "Traceback" not in result.err
        # On a new machine, whichever test comes first has the kernels compiled, and is told so.
        lines = [line for line in result.err.splitlines() if not line.startswith("Preparing kernels")]
        assert len(lines) == 1, result.err
        return lines[0]

    return refused


@pytest.fixture
def tiny(data: Path) -> Path:
    return data / "tiny-dense"


@pytest.fixture
def copy(tiny: Path, tmp_path: Path) -> Path:
    """A copy of tiny-dense, to be broken."""
    return copy_checkpoint(tiny, tmp_path / "model")
