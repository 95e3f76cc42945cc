"""A chat: messages in, records out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from engine.cancel import AnswerNow, CancelToken
from engine.conversation import Conversation
from engine.decoding.decoder import Decoder
from engine.decoding.draft_length import LengthPolicy, length_policy
from engine.decoding.records import Failed, Finished, PrefillProgress, Record, Stats, StopReason
from engine.decoding.reply import ThinkTokens
from engine.decoding.sampler import Sampler
from engine.decoding.selfcheck import SelfCheck, VerifiedRow, check_reply
from engine.errors import Cancelled, ContextFullError, EngineError, OptionError
from engine.fitting import fit
from engine.options import DraftOptions, GenerateOptions
from engine.prompt import Message, Picture, Prompt, chat_prompt, token_prompt
from engine.suspicions import SidecarWatch, flatness_note
from engine.text.incremental import Detokeniser
from engine.text.tool_calls import find_tool_calls

if TYPE_CHECKING:
    from engine.loaded_model import Model


_THOUGHT_END = "\n</think>\n\n"
_THOUGHT_CLOSED = {
    "asked": "The thinking was closed at your request, before the model had done so itself.",
    "budget": "The thinking was closed at its budget, before the model had done so itself.",
}


class ChatSession:
    """One conversation with a model. What earlier turns left in the caches is reused as far as the new prompt agrees.

    A session is used by one thread at a time. Its iterators must be run to their end, or closed, before the next call.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._conversation = Conversation(model)
        self._watch = SidecarWatch(model.info.sidecar)
        self._policy: tuple[DraftOptions, LengthPolicy] | None = None
        self._provable: tuple[Prompt, GenerateOptions, list[VerifiedRow]] | None = None
        self._dropped = 0  # turns that the last prompt left out

    @property
    def position(self) -> int:
        """Tokens in the caches."""
        return self._conversation.target.position

    def reply(
        self,
        messages: Sequence[Message],
        options: GenerateOptions,
        cancel: CancelToken | None = None,
        answer_now: AnswerNow | None = None,
    ) -> Iterator[Record]:
        """Answer a conversation: `PrefillProgress` and `Round` records, then exactly one `Finished` or `Failed`.
        `answer_now` ends thinking when it is asked.

        Errors of the engine become `Failed`, never an exception; a cancelled reply ends in `Finished` with what was
        said.
        """
        try:
            prompt, note = self._fitting_prompt(messages, options)
        except EngineError as error:
            yield Failed(str(error), type(error).__name__)
            return
        yield from self._generate(prompt, options, cancel, answer_now, note)

    def complete(
        self,
        tokens: Sequence[int],
        options: GenerateOptions,
        cancel: CancelToken | None = None,
        images: Sequence[Picture] = (),
        answer_now: AnswerNow | None = None,
    ) -> Iterator[Record]:
        """The same for ready-made token ids; `images` fill the runs of placeholder ids in order."""
        try:
            prompt = token_prompt(tokens, images, self._model)
        except EngineError as error:
            yield Failed(str(error), type(error).__name__)
            return
        yield from self._generate(prompt, options, cancel, answer_now)

    def check(self, progress: Callable[[int, int], None] | None = None, cancel: CancelToken | None = None) -> SelfCheck:
        """Prove the last reply: read it again one token at a time, without drafts, and compare every row of logits bit
        by bit. `progress` is called with (rows done, rows in all).

        Raises:
            OptionError: there is no reply that was made with `GenerateOptions.provable`.
            Cancelled, or any error of the model.
        """
        if self._provable is None:
            raise OptionError("There is no reply to check that was made with the option `provable`.")
        prompt, options, rows = self._provable
        self._model.expect_drafts(self._conversation.wants_mtp, cancel)  # a stop elsewhere may have left no weights
        sampler = Sampler(options.sampling, prompt.tokens)
        with self._conversation.replay() as target:
            return check_reply(target, self._conversation.logits, rows, sampler, cancel, progress)

    def search_also(self, texts: Sequence[Sequence[int]]) -> None:
        """Let n-gram lookup search these token sequences too (the person's other conversations, say). They are no part
        of the context: only drafts come from them, and every draft is verified."""
        self._conversation.search_also(texts)

    def prompt_tokens(self, messages: Sequence[Message], options: GenerateOptions) -> list[int]:
        """The token ids that `reply` would read.

        Raises:
            TemplateError: the chat template failed on these messages.
            OptionError: there is nothing to answer.
            PictureError: a picture cannot be read, or the model cannot see.
        """
        return self._fitting_prompt(messages, options)[0].tokens

    def _fitting_prompt(self, messages: Sequence[Message], options: GenerateOptions) -> tuple[Prompt, str]:
        """The prompt, without the oldest turns if that is wanted and has to be, and a note if so."""
        prompt = chat_prompt(messages, options.thinking, self._model)
        context = self._model.info.context
        room = context - min(options.max_new_tokens, context // 2)
        if options.context_full == "stop" or len(prompt.tokens) <= room:
            return prompt, ""

        def length(some: Sequence[Message]) -> int:
            return len(chat_prompt(some, options.thinking, self._model).tokens)

        kept, self._dropped = fit(messages, room, length, self._dropped)
        if not self._dropped:
            return prompt, ""
        turns = "turn was" if self._dropped == 1 else f"{self._dropped} turns were"
        note = f"The conversation has outgrown the context of {context} tokens: its oldest {turns} left out."
        return chat_prompt(kept, options.thinking, self._model), note

    def _generate(
        self,
        prompt: Prompt,
        options: GenerateOptions,
        cancel: CancelToken | None,
        answer_now: AnswerNow | None,
        *notes: str,
    ) -> Iterator[Record]:
        conversation, tokens = self._conversation, prompt.tokens
        decoder: Decoder | None = None
        progress = PrefillProgress(0, len(tokens))
        try:
            self._check(tokens)
            note = conversation.choose_drafter(options.draft)
            if self._model.would_move_weights(conversation.wants_mtp):
                yield dataclasses.replace(progress, stage="sharing out memory for this kind of drafting")
                self._model.expect_drafts(conversation.wants_mtp, cancel)
            conversation.rewind(prompt)
            for progress in conversation.read(prompt, cancel):
                yield progress
            first = conversation.logits
            decoder = self._decoder(tokens, options)
            yield from self._watch.over(decoder.run(first, cancel, answer_now))
            yield _finished(decoder, progress, [*notes, note, flatness_note(first), *self._watch.notes()])
        except Cancelled:
            stats = dataclasses.replace(_with_prefill(Stats(), progress), stop_reason="cancelled")
            yield Finished((), "", stats)
        except EngineError as error:
            yield _failed(error, decoder, progress)
        finally:
            self._provable = None
            if decoder is not None:
                conversation.settle(prompt, decoder.tokens)
                if options.provable and decoder.rows:
                    self._provable = (prompt, options, decoder.rows)

    def _check(self, tokens: Sequence[int]) -> None:
        """Raise before anything is computed if this prompt cannot be answered."""
        context, vocabulary = self._model.info.context, self._model.info.vocabulary
        if not tokens:
            raise OptionError("The prompt is empty: write something first.")
        wrong = next((t for t in tokens if not 0 <= t < vocabulary), None)
        if wrong is not None:
            raise OptionError(f"Token {wrong} is outside the vocabulary of {vocabulary} ids.")
        if len(tokens) >= context:
            raise ContextFullError(
                f"The prompt has {len(tokens)} tokens, but the context holds {context}, the reply included: shorten it"
                " or start a new chat."
            )

    def _decoder(self, tokens: Sequence[int], options: GenerateOptions) -> Decoder:
        model, conversation = self._model, self._conversation
        return Decoder(
            conversation.target,
            conversation.drafter,
            Sampler(options.sampling, tokens, options.top_alternatives),
            options,
            model.end_tokens,
            Detokeniser(model.tokenizer),
            think=self._think_tokens(),
            thinking=model.think is not None and model.think.inside(tokens),
            policy=self._length_policy(options.draft),
            reads=model.statistics,
            keep_rows=options.provable,
        )

    def _think_tokens(self) -> ThinkTokens | None:
        """The tokens around a thought; one that has to end does so as the templates write it."""
        think = self._model.think
        if think is None:
            return None
        return ThinkTokens(think.open, think.close, tuple(self._model.tokenizer.encode(_THOUGHT_END, special=True)))

    def _length_policy(self, options: DraftOptions) -> LengthPolicy:
        """The policy of the last reply if the settings are the same: it has learnt something."""
        if self._policy is None or self._policy[0] != options:
            self._policy = (options, length_policy(options))
        return self._policy[1]


def _finished(decoder: Decoder, progress: PrefillProgress, notes: Sequence[str]) -> Finished:
    if decoder.thought_closed:
        notes = [*notes, _THOUGHT_CLOSED[decoder.thought_closed]]
    stats = _with_prefill(decoder.stats, progress)
    calls = find_tool_calls(decoder.answer)
    return Finished(decoder.tokens, decoder.text, stats, tuple(note for note in notes if note), calls)


def _failed(error: EngineError, decoder: Decoder | None, progress: PrefillProgress) -> Failed:
    """The error as a record, with what was said so far."""
    tokens, text, stats = ((), "", Stats()) if decoder is None else (decoder.tokens, decoder.text, decoder.stats)
    reason: StopReason = "failed"
    stats = dataclasses.replace(_with_prefill(stats, progress), stop_reason=reason)
    return Failed(str(error), type(error).__name__, tokens, text, stats)


def _with_prefill(stats: Stats, progress: PrefillProgress) -> Stats:
    return dataclasses.replace(
        stats,
        prompt_tokens=progress.total,
        reused_tokens=progress.reused,
        prefill_s=progress.seconds,
        total_s=stats.total_s + progress.seconds,
    )
