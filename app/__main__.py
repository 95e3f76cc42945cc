"""`python -m app`: the window. Reads the arguments and prepares the environment before Qt or Numba is imported."""

from __future__ import annotations

import argparse
import faulthandler
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


def make_parser() -> argparse.ArgumentParser:
    """The command line of the window."""
    parser = argparse.ArgumentParser(
        prog="draftscope",
        description="Run Qwen3.5-family models on your own computer and watch speculative decoding at work.",
    )
    parser.add_argument("--model", metavar="P", help="checkpoint to open, a folder or a file; `demo` comes along")
    parser.add_argument("--sidecar", type=Path, metavar="S", help="MTP sidecar to open with it")
    parser.add_argument("--prompt", metavar="T", help="send this message once the model is there")
    parser.add_argument("--screenshot", type=Path, metavar="F.png", help="save a picture of the window afterwards")
    parser.add_argument("--quit-when-done", action="store_true", help="close the window afterwards")
    parser.add_argument("--theme", choices=("light", "dark", "system"), help="colours for this start")
    parser.add_argument("--size", type=size, metavar="WxH", help="size of the window, as 1280x800")
    parser.add_argument("--settings-dir", type=Path, metavar="D", help="folder of the settings file")
    return parser


def size(text: str) -> tuple[int, int]:
    """'1280x800' as two numbers."""
    width, _, height = text.lower().partition("x")
    if not (width.isdigit() and height.isdigit() and int(width) and int(height)):
        raise argparse.ArgumentTypeError(f"{text!r} is no size; give width and height as 1280x800")
    return int(width), int(height)


def main(argv: Sequence[str] | None = None) -> int:
    """Open the window; returns 0, or 1 if an errand failed, or 2 if no window can be opened here."""
    parser = make_parser()
    arguments = parser.parse_args(argv)
    errand_wanted = bool(arguments.prompt or arguments.screenshot or arguments.quit_when_done)
    if (errand_wanted or arguments.sidecar) and not arguments.model:
        parser.error("--prompt, --screenshot, --quit-when-done and --sidecar need --model (it may be `demo`)")
    if sys.stderr is not None:
        with suppress(OSError, ValueError):  # stderr may be no real file
            faulthandler.enable()

    import os

    import engine
    from app.display import display_problem

    engine.configure_environment()
    if problem := display_problem(os.environ):
        sys.stderr.write(f"{problem}\n")
        return 2

    import platformdirs

    from app.drive import Errand
    from app.program import Request, run

    model = engine.demo_path() if arguments.model == "demo" else arguments.model and Path(arguments.model)
    errand = Errand(arguments.prompt or "", arguments.screenshot, arguments.quit_when_done) if errand_wanted else None
    request = Request(
        settings_dir=arguments.settings_dir or Path(platformdirs.user_config_dir("draftscope", appauthor=False)),
        model=model or None,
        sidecar=arguments.sidecar,
        theme=arguments.theme,
        size=arguments.size,
        errand=errand,
    )
    return run(request, engine.load_model, engine.demo_path)


if __name__ == "__main__":
    sys.exit(main())
