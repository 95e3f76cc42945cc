"""`generate`: one reply, as text for people or as records for scripts."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import sys
from typing import TYPE_CHECKING

from engine.cli.arguments import add_model, check_output, open_model
from engine.cli.console import Console, counted, interruptible, styled_round, wants_colour
from engine.cli.prompt import Prompt, add_prompt, read_prompt
from engine.cli.reply_options import add_reply_options, reply_options
from engine.options import GenerateOptions

if TYPE_CHECKING:
    from engine.cancel import CancelToken
    from engine.chat import ChatSession
    from engine.decoding.records import Failed, Finished, LoadProgress, Record, Stats
    from engine.decoding.selfcheck import SelfCheck
    from engine.decoding.trace import TraceWriter
    from engine.loaded_model import Model

_FAILED, _DIFFERS, _INTERRUPTED = 2, 1, 130


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("generate", help="write a reply", description="Write one reply to a prompt.")
    add_model(parser)
    add_prompt(parser)
    add_reply_options(parser)
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="one record a line instead of text")
    output.add_argument("--trace", metavar="FILE", help="save the run, to be opened in the window or compared")
    output.add_argument("--check", action="store_true", help="read the reply again without drafts and compare bits")
    output.add_argument("--show-refused", action="store_true", help="show refused drafts, struck through")
    output.add_argument(
        "--colour", "--color", choices=("auto", "always", "never"), default="auto", help="mark verdicts"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """The command. What can be wrong with the arguments alone is found before the model is loaded."""
    prompt = read_prompt(arguments)
    reply_options(arguments)
    if arguments.trace is not None:
        check_output(arguments.trace, "--trace")
    output = Output(arguments)
    with interruptible() as cancel:
        model = open_model(arguments, output.load, cancel)
        try:
            return _reply(model, prompt, arguments, output, cancel)
        finally:
            model.close()


class Output:
    """Where records go: one JSON line each, or text with verdicts on stdout and everything else on stderr."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._json = arguments.json
        self._console = Console(quiet=arguments.json)
        self._colour = wants_colour(arguments.colour)
        self._show_refused = arguments.show_refused
        self._open_line = False

    def load(self, record: LoadProgress) -> None:
        """Progress of loading; a script gets every step, a person one line."""
        if self._json:
            self.write(record)
        else:
            self._console.progress(record)
            if record.stage == "ready":
                self._console.clear()

    def write(self, record: Record) -> None:
        """One record of the reply."""
        from engine.decoding.records import Round, to_json

        if self._json:
            print(json.dumps(to_json(record), ensure_ascii=False), flush=True)
        elif isinstance(record, Round):
            text = styled_round(record, self._colour, self._show_refused)
            self._open_line |= bool(text)
            sys.stdout.write(text)
            sys.stdout.flush()

    def end(self, ending: Finished | Failed) -> None:
        """After the last record: the run in numbers, and what a person should know about it."""
        from engine.decoding.records import Failed

        if self._open_line:
            sys.stdout.write("\n")
            sys.stdout.flush()
        if isinstance(ending, Failed):
            print(" ".join(ending.message.split()), file=sys.stderr)
            return
        for note in ending.notes:
            self._console.say(note)
        self._console.say(_summary(ending))

    def check(self, proof: SelfCheck) -> int:
        """The verdict of the self check; the exit code that tells it."""
        if self._json:
            print(json.dumps({"event": "check", "passed": proof.passed, **dataclasses.asdict(proof)}), flush=True)
        if proof.passed:
            self._console.say(f"Check: all {proof.rows} rows of logits are those of plain decoding, bit for bit.")
            return 0
        first = proof.first
        where = "" if first is None else (
            f": at position {first.position} the reply has token {first.token}, plain decoding {first.plain_token}"
            f" (largest logit difference {first.largest_logit_difference:.3g})"
        )  # fmt: skip
        differing = f"{proof.rows - proof.identical_rows} of {proof.rows} rows differ"
        print(f"Check failed: {differing}{where}; please report it.", file=sys.stderr)
        return _DIFFERS


def _reply(model: Model, prompt: Prompt, arguments: argparse.Namespace, output: Output, cancel: CancelToken) -> int:
    from engine.decoding.records import Failed, Finished

    options = reply_options(arguments, model.info.recommended if arguments.recommended else None)
    options = dataclasses.replace(options, provable=arguments.check)
    session = model.new_session()
    ending: Finished | Failed | None = None
    with _tracing(arguments.trace, model, session, prompt, options) as trace:
        for record in prompt.answer(model, session, options, cancel):
            if trace is not None:
                trace.write(record)
            output.write(record)
            if isinstance(record, Finished | Failed):
                ending = record
    if ending is None:
        return _FAILED
    output.end(ending)
    if isinstance(ending, Failed):
        return _FAILED
    if cancel.cancelled:
        return _INTERRUPTED
    return output.check(session.check(cancel=cancel)) if arguments.check else 0


def _tracing(
    path: str | None, model: Model, session: ChatSession, prompt: Prompt, options: GenerateOptions
) -> contextlib.AbstractContextManager[TraceWriter | None]:
    if path is None:
        return contextlib.nullcontext()
    from engine.decoding.trace import TraceWriter
    from engine.run_identity import describe_run

    tokens = prompt.tokens(model, session, options)
    return TraceWriter(path, describe_run(model.info, options, prompt.text, tokens))


def _summary(ending: Finished) -> str:
    stats = ending.stats
    parts = [counted(stats.emitted, "token")]
    if stats.rounds:
        parts += ["the first with the prompt", f"then {stats.tokens_per_round:.2f} per round"]
    if stats.acceptance is not None:
        parts.append(f"{100 * stats.acceptance:.0f} % of {stats.tested} tested drafts accepted")
    if stats.tokens_per_s:
        parts.append(f"{stats.tokens_per_s:.1f} tokens/s")
    if stats.bytes_read:
        parts.append(_disk(stats))
    return ", ".join(parts) + f"; ended by {stats.stop_reason}."


def _disk(stats: Stats) -> str:
    """What streaming cost, and how well memory served."""
    disk = stats.disk
    words = [f"{stats.bytes_read / 1e9:.2f} GB read, {stats.disk_wait_s:.2f} s waited for it"]
    overlap = disk.overlap(stats.disk_wait_s)
    if overlap is not None:
        words.append(f"{100 * overlap:.0f} % of reading beside computing")
    for name, hits, misses in (("layers", disk.hits, disk.misses), ("experts", disk.expert_hits, disk.expert_misses)):
        if hits + misses:
            words.append(f"{100 * hits / (hits + misses):.0f} % of {name} found in memory")
    return ", ".join([*words, f"{disk.memory_bytes / (1 << 20):,.0f} MiB of weights in memory"])
