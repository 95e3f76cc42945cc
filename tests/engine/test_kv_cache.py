"""Sessions whose keys and values are stored in fewer bytes: what changes, what must not, and what it takes.

Tolerances are twice to three times what was measured on the reference checkpoints, whose logits spread by 3 to 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

import engine
from engine import DraftOptions, Finished, GenerateOptions, LoadOptions, Message
from engine.files.checkpoint import open_checkpoint
from engine.kernels.kv_types import KV_TYPES
from engine.kv_cache import kv_type_for
from engine.options import KvCache
from engine.run_identity import describe_run
from tests.conftest import DATA
from tests.engine.model.conftest import goldens

GetModel = Callable[[str, str], engine.Model]
MODELS = ["tiny-dense", "tiny-moe"]
SMALL = ["bf16", "q8"]
QUESTIONS = [
    "What is the capital of France?", "Name three fruits.", "What is 2 + 3?", "Tell me about the moon.",
    "Count from 1 to 20, and then from 20 to 1.", "Write a short story about a fox and a lamp.",
]  # fmt: skip


@pytest.fixture(scope="module")
def models() -> Iterator[GetModel]:
    """Get a model by name and type of KV cache."""
    opened = {
        (name, kind): engine.load_model(
            name if name == "demo" else DATA / name, options=LoadOptions(threads=1, kv_cache=kind)
        )
        for name in ("demo", *MODELS)
        for kind in get_args(KvCache)
    }
    yield lambda name, kind: opened[name, kind]
    for model in opened.values():
        model.close()


def test_options_and_kernels_know_the_same_types() -> None:
    assert get_args(KvCache) == tuple(KV_TYPES)


# ---- what changes ----


@pytest.mark.parametrize(("kv_cache", "most", "usual"), [("bf16", 0.02, 0.004), ("q8", 0.06, 0.01)])
@pytest.mark.parametrize("prompt", ["short", "long"])
@pytest.mark.parametrize("name", MODELS)
def test_logits_stay_close(models: GetModel, name: str, prompt: str, kv_cache: str, most: float, usual: float) -> None:
    """Measured: 0.008 at most and 0.0016 on average (root of the mean square) with bf16, 0.029 and 0.0046 with q8."""
    tokens = goldens(name, prompt)["ids"].tolist()
    exact, stored = (models(name, kind).logits(tokens)["logits"] for kind in ("f32", kv_cache))
    difference = np.abs(exact - stored)
    assert 0 < difference.max() < most
    assert np.sqrt(np.square(difference).mean()) < usual
    np.testing.assert_array_equal(exact.argmax(1), stored.argmax(1))


@pytest.mark.parametrize("kv_cache", SMALL)
def test_the_demo_answers_the_same(models: GetModel, kv_cache: str) -> None:
    """Greedy replies to six questions: all of them token for token, as measured."""
    options = GenerateOptions(max_new_tokens=80)
    for question in QUESTIONS:
        exact, stored = (_reply(models("demo", kind), question, options) for kind in ("f32", kv_cache))
        assert stored.tokens == exact.tokens, question


# ---- what must not ----


@pytest.mark.parametrize("kv_cache", SMALL)
@pytest.mark.parametrize("name", MODELS)
def test_logits_do_not_depend_on_rows_per_pass(models: GetModel, name: str, kv_cache: str) -> None:
    """Of the trunk and of the MTP layer, whose cache is stored in the same way."""
    model, tokens = models(name, kv_cache), goldens(name, "long")["ids"].tolist()
    whole = model.logits(tokens, mtp=True)
    for rows in (1, 5, 15, 33):
        cut = model.logits(tokens, rows_per_pass=rows, mtp=True)
        for part in whole:
            np.testing.assert_array_equal(whole[part], cut[part], err_msg=f"{part} at {rows} rows")


@pytest.mark.parametrize("kv_cache", SMALL)
def test_drafts_change_nothing_and_a_reply_can_be_proven(models: GetModel, kv_cache: str) -> None:
    model = models("demo", kv_cache)
    plain = _reply(model, QUESTIONS[4], GenerateOptions(max_new_tokens=60, draft=DraftOptions("none")))
    for tokens in (1, 3, 7, 14):
        session, options = model.new_session(), GenerateOptions(max_new_tokens=60, draft=DraftOptions(tokens=tokens))
        done = _finished(session, [Message("user", QUESTIONS[4])], replace(options, provable=True))
        assert done.tokens == plain.tokens
        assert done.stats.accepted > 0
        assert session.check().passed


@pytest.mark.parametrize("kv_cache", SMALL)
def test_a_conversation_goes_on_as_if_read_anew(models: GetModel, kv_cache: str) -> None:
    """The prefix that is kept, and a branch that was left, hold what a fresh session would."""
    model, options = models("demo", kv_cache), GenerateOptions(max_new_tokens=30)
    long = "Please listen. " * 40
    first = [Message("user", QUESTIONS[0]), Message("assistant", "Paris."), Message("user", long + QUESTIONS[1])]
    second = [*first[:2], Message("user", long[:-15] + QUESTIONS[3])]
    session = model.new_session()
    for messages in (first, second, first, [*first, Message("assistant", "Fine."), Message("user", QUESTIONS[2])]):
        kept = _finished(session, messages, options)
        fresh = _finished(model.new_session(), messages, options)
        assert kept.tokens == fresh.tokens
    assert kept.stats.reused_tokens > 100


# ---- what it takes ----


def test_caches_take_the_bytes_of_their_type(models: GetModel) -> None:
    """Those of the trunk and of the MTP layer, and copies of them."""
    sizes = {}
    for kind in KV_TYPES:
        model = models("demo", kind)
        target, mtp = model.new_target(), model.new_mtp()
        assert mtp is not None
        empty = target.state.nbytes
        mtp.forward(target.forward([1] * 300), [1] * 300)
        sizes[kind] = np.array([target.state.nbytes - empty, mtp.nbytes])
        np.testing.assert_array_equal([target.clone().state.nbytes - empty, mtp.clone().nbytes], sizes[kind])
    np.testing.assert_array_equal(sizes["bf16"] * 2, sizes["f32"])
    np.testing.assert_array_equal(sizes["q8"] * 32, sizes["f32"] * 9)


def test_a_model_tells_its_type_and_what_a_position_takes(models: GetModel) -> None:
    infos = [models("demo", kind).info for kind in KV_TYPES]
    assert [info.kv_cache for info in infos] == list(KV_TYPES)
    assert [info.position_bytes * 9 // infos[2].position_bytes for info in infos] == [32, 16, 9]
    report = engine.describe(infos[0].path)
    for info in infos:
        assert report.position_vectors * KV_TYPES[info.kv_cache].row_bytes(report.head_dim) == info.position_bytes


def test_a_run_tells_its_type(models: GetModel) -> None:
    assert describe_run(models("demo", "q8").info, GenerateOptions(), "", []).settings["kv_cache"] == "q8"


def test_refusals() -> None:
    with pytest.raises(engine.OptionError, match="KV cache is q4, but it must be f32, bf16 or q8"):
        LoadOptions(kv_cache="q4")  # type: ignore[arg-type]
    checkpoint = open_checkpoint(DATA / "tiny-dense")
    odd = replace(checkpoint, config=replace(checkpoint.config, head_dim=48))
    assert kv_type_for(odd, "bf16") is KV_TYPES["bf16"]
    with pytest.raises(engine.OptionError, match="48 numbers, which is no multiple of 32; choose bf16"):
        kv_type_for(odd, "q8")


def _reply(model: engine.Model, question: str, options: GenerateOptions) -> Finished:
    return _finished(model.new_session(), [Message("user", question)], options)


def _finished(session: engine.ChatSession, messages: list[Message], options: GenerateOptions) -> Finished:
    *_, done = session.reply(messages, options)
    assert isinstance(done, Finished), done
    return done
