"""The options of one reply: sampling, drafting, limits."""

from __future__ import annotations

import argparse
import dataclasses
from typing import get_args

from engine.options import (
    MAX_DRAFT_TOKENS,
    ContextFull,
    DrafterName,
    DraftOptions,
    GenerateOptions,
    LengthPolicyName,
    SamplingOptions,
)


def add_reply_options(parser: argparse.ArgumentParser) -> None:
    """All of them, in two groups."""
    _add_sampling(parser.add_argument_group("sampling (default: greedy)"))
    _add_drafting(parser.add_argument_group("drafting"))


def _add_sampling(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--max-new", type=int, default=512, metavar="N", help="most tokens of the reply (default: 512)")
    group.add_argument("--recommended", action="store_true", help="start from what the model's makers recommend")
    group.add_argument("--temperature", type=float, metavar="X", help="0 is greedy")
    group.add_argument("--top-k", type=int, metavar="K", help="keep the K most likely tokens; 0 keeps all")
    group.add_argument("--top-p", type=float, metavar="X", help="keep the most likely tokens that reach X together")
    group.add_argument("--min-p", type=float, metavar="X", help="drop tokens less likely than X times the likeliest")
    group.add_argument("--repetition-penalty", type=float, metavar="X", help="1 is none")
    group.add_argument("--presence-penalty", type=float, metavar="X", help="0 is none")
    group.add_argument("--frequency-penalty", type=float, metavar="X", help="0 is none")
    group.add_argument("--logit-bias", type=_bias, action="append", metavar="ID=X", help="add X to a token's logit")
    group.add_argument("--seed", type=int, metavar="N", help="of the random numbers (default: 0)")
    group.add_argument("--stop", action="append", default=[], metavar="TEXT", help="end the reply before this text")
    group.add_argument("--think-budget", type=int, metavar="N", help="close the thought after N tokens")
    group.add_argument(
        "--context-full",
        choices=get_args(ContextFull),
        default="stop",
        help="when a conversation does not fit (default: stop)",
    )
    group.add_argument("--ignore-eos", action="store_true", help="go on past end tokens")


def _add_drafting(group: argparse._ArgumentGroup) -> None:
    policies = get_args(LengthPolicyName)
    group.add_argument("--draft", choices=get_args(DrafterName), default="mtp", help="what drafts (default: mtp)")
    group.add_argument(
        "--draft-tokens", type=int, default=3, metavar="K", help=f"drafts a round, 0…{MAX_DRAFT_TOKENS} (default: 3)"
    )
    group.add_argument("--draft-length", choices=policies, default="fixed", help="who decides (default: fixed)")
    group.add_argument("--alternatives", type=int, default=0, metavar="N", help="likeliest tokens in each record")


def _bias(text: str) -> tuple[int, float]:
    token, _, value = text.partition("=")
    try:
        return int(token), float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no bias; write it like 123=-2.5") from None


def reply_options(arguments: argparse.Namespace, base: SamplingOptions | None = None) -> GenerateOptions:
    """The arguments as options; sampling settings that were not given come from `base`. OptionError if out of range."""
    names = {field.name for field in dataclasses.fields(SamplingOptions)} - {"logit_bias"}
    given = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    if arguments.logit_bias:
        given["logit_bias"] = dict(arguments.logit_bias)
    return GenerateOptions(
        sampling=dataclasses.replace(base or SamplingOptions(), **given),
        draft=DraftOptions(arguments.draft, arguments.draft_tokens, arguments.draft_length),
        max_new_tokens=arguments.max_new,
        stop_strings=tuple(arguments.stop),
        ignore_eos=arguments.ignore_eos,
        think_budget=arguments.think_budget,
        context_full=arguments.context_full,
        thinking=None if arguments.thinking is None else arguments.thinking == "on",
        top_alternatives=arguments.alternatives,
    )
