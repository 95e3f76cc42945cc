"""Writes the manual pages draftscope.1 and draftscope-cli.1 from the programs' own option parsers.

    python packaging/linux/make_man.py [--out packaging/linux]

The pages are committed; a test fails when an option has changed and they have not.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from app.__main__ import make_parser as window_parser
from engine.cli.main import INSTALLED
from engine.cli.main import make_parser as terminal_parser
from engine.version import __version__

HERE = Path(__file__).resolve().parent
WINDOW, TERMINAL = "draftscope", INSTALLED
EXIT_STATUS = {
    WINDOW: (
        ("0", "The window was closed, or what was asked for is done."),
        ("1", "What was asked for failed; standard error says why."),
        ("2", "Bad usage, or no window can be opened here."),
    ),
    TERMINAL: (
        ("0", "Done."),
        ("1", "Two compared runs differ, or a check found a fault."),
        ("2", "Bad usage or bad input; one line on standard error says what."),
        ("130", "Interrupted by Ctrl+C."),
    ),
}
FOLDERS = (
    ("~/.config/draftscope", "Settings."),
    ("~/.local/share/draftscope", "Conversations and runs."),
    ("~/.local/state/draftscope/log", "The log."),
    ("~/.cache/draftscope", "Compiled kernels; may be deleted at any time."),
)
ENVIRONMENT = (
    ("XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_STATE_HOME, XDG_CACHE_HOME", "Places of the folders above."),
    ("NUMBA_CACHE_DIR", "Where compiled kernels are kept instead."),
    ("NUMBA_NUM_THREADS", "Most threads that compute."),
)
EXAMPLES = {
    WINDOW: (
        ("Open the demo model:", "draftscope --model demo"),
        ("Look at a saved run without a model:", "draftscope run.jsonl"),
    ),
    TERMINAL: (
        ("Ask the demo model:", 'draftscope-cli generate demo --prompt "What is the capital of France?"'),
        ("Save a run, and look at it:", "draftscope-cli generate demo --prompt Hello --trace run.jsonl"),
        ("", "draftscope-cli trace show run.jsonl"),
        ("What a budget of 8 GiB would bring:", "draftscope-cli inspect model.gguf --plan --memory-budget 8GiB"),
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the manual pages.")
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write into (default: this one)")
    out = parser.parse_args().out
    for name, text in pages().items():
        (out / name).write_text(text, encoding="utf-8")
    print(f"{' and '.join(pages())} are in {out}.")
    return 0


def pages() -> dict[str, str]:
    """Each page's file name and text."""
    window, terminal = window_parser(), terminal_parser()
    terminal.prog = TERMINAL
    return {
        f"{WINDOW}.1": page(window, "watch speculative decoding of language models at work", TERMINAL),
        f"{TERMINAL}.1": page(terminal, "run language models on the terminal", WINDOW),
    }


def page(parser: argparse.ArgumentParser, purpose: str, other: str) -> str:
    """One page in man(7) macros."""
    name = parser.prog
    lines = [
        f'.\\" Written by packaging/linux/make_man.py from the options of {name}.',
        f'.TH {name.upper()} 1 "" "Draftscope {__version__}" "User Commands"',
        ".SH NAME",
        f"{name} \\- {purpose}",
        ".SH SYNOPSIS",
        *synopsis(parser, name),
        ".SH DESCRIPTION",
        escape(parser.description or ""),
        *([".PP", escape(parser.epilog)] if parser.epilog else []),
        ".SH OPTIONS",
        *options(parser),
    ]
    commands = list(subcommands(parser, name))
    if commands:
        lines.append(".SH COMMANDS")
    for title, summary, command in commands:
        described = command.description or f"{summary[:1].upper()}{summary[1:]}."
        lines += [f".SS {escape(title)}", escape(described), *options(command)]
        lines += [".PP", escape(command.epilog)] if command.epilog else []
    lines += [".SH EXIT STATUS", *terms(EXIT_STATUS[name])]
    lines += [".SH FILES", *terms(FOLDERS), ".SH ENVIRONMENT", *terms(ENVIRONMENT), ".SH EXAMPLES"]
    for said, command_line in EXAMPLES[name]:
        lines += [*([".PP", escape(said)] if said else []), ".PP", ".EX", f"  {escape(command_line)}", ".EE"]
    lines += [".SH SEE ALSO", f".BR {escape(other)} (1)"]
    return "\n".join(lines) + "\n"


def synopsis(parser: argparse.ArgumentParser, name: str) -> list[str]:
    """The program, its options as a whole, and what else stands on its line."""
    rest = [
        "COMMAND \\fR…\\fI" if isinstance(action, argparse._SubParsersAction) else f"{metavar(action)} …"
        for action in parser._actions
        if not action.option_strings
    ]
    return [f".B {escape(name)}", f"[\\fIOPTION\\fR …] \\fI{' '.join(rest)}\\fR"]


def options(parser: argparse.ArgumentParser) -> list[str]:
    """A tagged paragraph for each argument, group by group; the help option is left to the description of none."""
    lines = []
    for group in parser._action_groups:
        actions = [action for action in group._group_actions if not isinstance(action, argparse._SubParsersAction)]
        actions = [action for action in actions if action.help != argparse.SUPPRESS and "--help" not in names(action)]
        if actions and group.title not in (None, "positional arguments", "options"):
            lines += [".PP", escape(f"{group.title[:1].upper()}{group.title[1:]}:")]
        for action in actions:
            lines += [".TP", tag(action), escape(sentence(action.help or "as its name says"))]
    return lines


def names(action: argparse.Action) -> Sequence[str]:
    return action.option_strings


def tag(action: argparse.Action) -> str:
    """An option with what it takes, or the name of a positional argument."""
    value = "" if action.nargs == 0 else f"\\fI{metavar(action)}\\fR"
    if not action.option_strings:
        return value
    shown = ", ".join(f"\\fB{escape(name)}\\fR" for name in action.option_strings)
    return f"{shown} {value}".rstrip()


def metavar(action: argparse.Action) -> str:
    """What stands for an argument's value."""
    if action.choices is not None:
        return escape("|".join(map(str, action.choices)))
    shown = escape(str(action.metavar or action.dest.upper()))
    return f"{shown} …" if action.nargs == "+" else shown


def subcommands(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """(title, summary, parser) of every command; of a command of commands, those it has."""
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        for choice in action._choices_actions:
            command = action.choices[choice.dest]
            inner = list(subcommands(command, f"{name} {choice.dest}"))
            arguments = " ".join(metavar(a) for a in command._actions if not a.option_strings)
            title = f"{name} {choice.dest} [OPTION …] {arguments}".rstrip()
            yield from inner or [(title, choice.help or "", command)]


def terms(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Tagged paragraphs."""
    return [line for term, said in pairs for line in (".TP", f".B {escape(term)}", escape(said))]


def sentence(text: str) -> str:
    """A help text as a sentence."""
    text = text.replace("%%", "%")
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", "…")) else ".")


def escape(text: str) -> str:
    """Text that roff takes as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("~", "\\(ti").replace("^", "\\(ha")
    return f"\\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    raise SystemExit(main())
