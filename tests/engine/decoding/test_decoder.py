"""A reply by speculative decoding equals plain decoding, whatever drafts."""

from __future__ import annotations

from engine.decoding.drafters.mtp import MtpDrafter
from engine.options import DraftOptions, GenerateOptions
from tests.engine.decoding.running import plain, reply
from tests.engine.decoding.scripted import Language, ScriptedMtp

PROMPT = [1, 2, 3, 4, 5]


def test_o30_greedy_tokens_equal_plain_decoding() -> None:
    language = Language(seed=3)
    options = GenerateOptions(max_new_tokens=60, draft=DraftOptions("mtp", 3))
    expected = plain(language, PROMPT, options)
    run = reply(language, PROMPT, options, MtpDrafter(ScriptedMtp(language, salt_every=3)))
    assert run.tokens == expected.tokens
    assert run.decoder.text == expected.decoder.text
