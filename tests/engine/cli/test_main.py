"""The command line as a whole: it calls itself as the person called it."""

from __future__ import annotations

import pytest

from engine.cli import main as module
from engine.version import __version__


@pytest.mark.parametrize(
    ("started", "called"),
    [
        ("/usr/bin/draftscope-cli", "draftscope-cli"),
        ("C:/Program Files/Draftscope/draftscope-cli.exe", "draftscope-cli"),
        ("/somewhere/engine/__main__.py", "python -m engine"),
        ("", "python -m engine"),
    ],
)
def test_usage_names_the_program_that_was_started(
    started: str, called: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module.sys, "argv", [started])
    with pytest.raises(SystemExit):
        module.main(["generate"])
    assert capsys.readouterr().err.startswith(f"{called} generate: ")


def test_the_version_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        module.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"Draftscope {__version__}\n"
