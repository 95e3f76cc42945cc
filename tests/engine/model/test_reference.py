"""The engine against numbers of an independent implementation (tests/data/*/README.md says how they were made)."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from engine.model.attention import Attention
from engine.model.forward_pass import forward_pass
from engine.model.mtp import MtpSession
from engine.model.state import AttentionCache, RecurrentCache, TrunkState
from engine.model.workspace import Workspace
from tests.engine.model.conftest import DATA, Loaded, goldens

LOGITS = 2e-3
"""The reference's own suggestion; two implementations in float32 differ by 5e-5."""
MODELS = ["tiny-dense", "tiny-moe"]
PROMPTS = ["short", "long"]

Load = Callable[..., Loaded]


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("name", MODELS)
def test_o07_o09_hidden_states_and_logits(loaded: Load, name: str, prompt: str) -> None:
    """Final-normed hidden states of a chunk, and logits by a head that is tied (dense) or not (experts)."""
    gold, session = goldens(name, prompt), loaded(name).session()
    hidden = session.forward(gold["ids"].tolist())
    logits = session.logits(hidden)
    np.testing.assert_allclose(hidden, gold["hidden_normed"], atol=LOGITS)
    np.testing.assert_allclose(logits[-len(gold["logits"]) :], gold["logits"], atol=LOGITS)
    np.testing.assert_array_equal(logits.argmax(1), gold["argmax_all"])


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("name", MODELS)
def test_greedy_continuation(loaded: Load, name: str, prompt: str) -> None:
    gold, session = goldens(name, prompt), loaded(name).session()
    tokens: list[int] = []
    feed = gold["ids"].tolist()
    for _ in range(48):
        tokens.append(int(session.logits(session.forward(feed)[-1:]).argmax()))
        feed = tokens[-1:]
    assert tokens == gold["greedy"].tolist()


@pytest.mark.parametrize("name", MODELS)
def test_every_layer(loaded: Load, name: str) -> None:
    """Residual stream, mixer states and caches after each layer."""
    model, gold = loaded(name), goldens(name, "layers-short")
    ids = goldens(name, "short")["ids"]
    state = TrunkState(model.checkpoint.config, 4096)
    state.begin(len(ids))
    x = np.empty((len(ids), model.checkpoint.config.hidden_size), np.float32)
    model.weights.embedding(ids.astype(np.int64), x)
    np.testing.assert_array_equal(x, gold["embed"])
    run = forward_pass(model.checkpoint.config, model.context, Workspace(), [], 0, len(ids))
    for i, (layer, cache) in enumerate(zip(model.trunk._layers, state.layers, strict=True)):
        layer(run, x, cache, None)
        np.testing.assert_allclose(x, gold[f"layer{i}.out"], atol=5e-4, err_msg=f"layer {i}")
        if isinstance(cache, RecurrentCache):
            np.testing.assert_allclose(cache.next_state, gold[f"layer{i}.recurrent_state"], atol=2e-4)
            np.testing.assert_allclose(
                cache.conv_inputs[len(ids) : len(ids) + 3].T, gold[f"layer{i}.conv_state"], atol=2e-4
            )
        else:
            assert isinstance(layer.mixer, Attention)
            np.testing.assert_allclose(cache.keys.view(np.float32)[:, : len(ids)], gold[f"layer{i}.k_cache"], atol=2e-4)
            np.testing.assert_allclose(
                cache.values.view(np.float32)[:, : len(ids)], gold[f"layer{i}.v_cache"], atol=2e-4
            )


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("name", MODELS)
def test_o17_l06_mtp_at_every_position(loaded: Load, name: str, prompt: str) -> None:
    model, gold = loaded(name), goldens(name, prompt)
    hidden = model.session().forward(gold["ids"].tolist())
    mtp = MtpSession(model.mtp, model.checkpoint.config.vocabulary, 4096)
    out = mtp.forward(hidden, gold["mtp_tokens"].tolist())
    logits = mtp.logits(out)
    np.testing.assert_allclose(out, gold["mtp_out"], atol=LOGITS)
    np.testing.assert_allclose(logits[-len(gold["mtp_logits"]) :], gold["mtp_logits"], atol=LOGITS)
    np.testing.assert_array_equal(logits.argmax(1), gold["mtp_argmax_all"])
    if "mtp_k_cache" in gold:
        cache: AttentionCache = mtp._cache
        np.testing.assert_allclose(cache.keys.view(np.float32)[:, : len(out)], gold["mtp_k_cache"], atol=2e-4)
        np.testing.assert_allclose(cache.values.view(np.float32)[:, : len(out)], gold["mtp_v_cache"], atol=2e-4)


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("name", MODELS)
def test_l06_mtp_recursion_over_four_steps(loaded: Load, name: str, prompt: str) -> None:
    model, gold = loaded(name), goldens(name, prompt)
    hidden = model.session().forward(gold["ids"].tolist())
    mtp = MtpSession(model.mtp, model.checkpoint.config.vocabulary, 4096)
    out = mtp.forward(hidden, gold["mtp_tokens"].tolist())[-1:]
    for step in range(4):
        logits = mtp.logits(out)[0]
        np.testing.assert_allclose(logits, gold["draft_logits"][step], atol=LOGITS)
        np.testing.assert_allclose(out[0], gold["draft_out"][step], atol=LOGITS)
        assert int(logits.argmax()) == gold["draft_tokens"][step]
        out = mtp.forward(out, [int(logits.argmax())])


@pytest.mark.parametrize("name", MODELS)
def test_margins_make_greedy_comparison_meaningful(name: str) -> None:
    """The smallest greedy margin of the reference is far above the tolerance on logits."""
    margins = [
        p["greedy_min_margin"] for p in json.loads((DATA / name / "goldens.json").read_text())["prompts"].values()
    ]
    assert min(margins) > 20 * LOGITS
