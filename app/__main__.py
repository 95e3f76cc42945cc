"""`python -m app`: the window. Reads the arguments before Qt is imported; the engine comes after the first paint."""

from __future__ import annotations

import argparse
import faulthandler
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from app.last_words import last_words
from app.milestones import Milestones
from engine import __version__


def make_parser() -> argparse.ArgumentParser:
    """The command line of the window."""
    parser = argparse.ArgumentParser(
        prog="draftscope",
        description="Run Qwen3.5-family models on your own computer and watch speculative decoding at work.",
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="open these as if dropped on the window")
    parser.add_argument("--version", action="version", version=f"Draftscope {__version__}")
    parser.add_argument("--model", metavar="P", help="checkpoint to open, a folder or a file; `demo` comes along")
    parser.add_argument("--sidecar", type=Path, metavar="S", help="MTP sidecar to open with it")
    parser.add_argument("--mmproj", type=Path, metavar="V", help="vision tower to open with it")
    parser.add_argument("--run", type=Path, metavar="FILE", help="show a saved run (.jsonl); no model is needed")
    parser.add_argument("--prompt", metavar="T", help="send this message once the model is there")
    parser.add_argument("--screenshot", type=Path, metavar="F.png", help="save a picture of the window afterwards")
    parser.add_argument("--quit-when-done", action="store_true", help="close the window afterwards")
    parser.add_argument("--theme", choices=("light", "dark", "system"), help="colours for this start")
    parser.add_argument("--size", type=size, metavar="WxH", help="size of the window, as 1280x800")
    parser.add_argument("--timing", action="store_true", help="tell on stderr how long the start took")
    parser.add_argument(
        "--settings-dir", type=Path, metavar="D", help="folder of the settings and of the conversations"
    )
    return parser


def size(text: str) -> tuple[int, int]:
    """'1280x800' as two numbers."""
    width, _, height = text.lower().partition("x")
    if not (width.isdigit() and height.isdigit() and int(width) and int(height)):
        raise argparse.ArgumentTypeError(f"{text!r} is no size; give width and height as 1280x800")
    return int(width), int(height)


def main(argv: Sequence[str] | None = None) -> int:
    """Open the window; returns 0, or 1 if an errand failed, or 2 if no window can be opened here."""
    arguments = parse(argv)
    if sys.stderr is not None:
        with suppress(OSError, ValueError):  # stderr may be no real file
            faulthandler.enable()

    import engine
    from app.display import display_problem

    if problem := display_problem(os.environ):
        if sys.stderr is not None:
            sys.stderr.write(f"{problem}\n")
        return 2

    milestones = Milestones()
    milestones.reach("Python")
    with ExitStack() as stack:
        stack.enter_context(last_words(quiet=arguments.quit_when_done or arguments.screenshot is not None))
        from app.drive import Errand
        from app.program import Request, run

        milestones.reach("imports")
        model = engine.demo_path() if arguments.model == "demo" else arguments.model and Path(arguments.model)
        errand = Errand(arguments.prompt or "", arguments.screenshot, arguments.quit_when_done)
        request = Request(
            settings_dir=stack.enter_context(settings_folder(arguments)),
            farewell=stack.close,
            history_dir=history_folder(arguments),
            log_dir=log_folder(arguments),
            single=not is_errand(arguments),
            model=model or None,
            sidecar=arguments.sidecar,
            mmproj=arguments.mmproj,
            run=arguments.run,
            dropped=tuple(arguments.files),
            theme=arguments.theme,
            size=arguments.size,
            errand=errand if is_errand(arguments) else None,
            timing=arguments.timing,
            milestones=milestones,
        )
        return run(request, load_model, engine.demo_path, prepare=engine_environment)


def engine_environment() -> None:
    """Set what the engine's compiler reads when it is imported."""
    import engine

    engine.configure_environment()


def load_model(*arguments: Any, **options: Any) -> Any:
    """`engine.load_model`, imported when called: only the engine's thread waits for the compiler that comes with it."""
    import engine

    return engine.load_model(*arguments, **options)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The arguments, checked against each other; a bad one ends the process with code 2 and a line on stderr."""
    parser = make_parser()
    arguments = parser.parse_args(argv)
    if (arguments.prompt or arguments.sidecar or arguments.mmproj) and not arguments.model:
        parser.error("--prompt, --sidecar and --mmproj need --model (it may be `demo`)")
    if arguments.files and (arguments.model or arguments.run):
        parser.error("files are opened by themselves; leave --model and --run out")
    if is_errand(arguments) and not (arguments.model or arguments.run):
        parser.error("--screenshot and --quit-when-done need --model (it may be `demo`) or --run")
    if arguments.run and arguments.model:
        parser.error("--run shows a saved run without a model; leave --model out")
    if arguments.prompt is not None and not arguments.prompt.strip():
        parser.error("--prompt is empty; give it a message to send")
    return arguments


def is_errand(arguments: argparse.Namespace) -> bool:
    """Whether the window has something to do by itself."""
    return bool(arguments.prompt or arguments.screenshot or arguments.quit_when_done)


@contextmanager
def settings_folder(arguments: argparse.Namespace) -> Iterator[Path]:
    """Where settings are kept. A run that quits by itself neither depends on the person's own nor changes them."""
    import platformdirs

    if arguments.settings_dir:
        yield arguments.settings_dir
    elif arguments.quit_when_done:
        with tempfile.TemporaryDirectory(prefix="draftscope-") as folder:
            yield Path(folder)
    else:
        yield Path(platformdirs.user_config_dir("draftscope", appauthor=False))


def history_folder(arguments: argparse.Namespace) -> Path | None:
    """Where conversations are kept; None: beside the settings, which are then of this run only."""
    import platformdirs

    if arguments.settings_dir or arguments.quit_when_done:
        return None
    return Path(platformdirs.user_data_dir("draftscope", appauthor=False))


def log_folder(arguments: argparse.Namespace) -> Path | None:
    """Where the log is written; None for a run that leaves nothing behind."""
    import platformdirs

    if arguments.settings_dir or arguments.quit_when_done:
        return None
    return Path(platformdirs.user_log_dir("draftscope", appauthor=False))


if __name__ == "__main__":
    sys.exit(main())
