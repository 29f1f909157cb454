"""Rewrites pairs: applies edits of a held request, and replaces older pairs with a summary.

The history keeps what was actually sent; otherwise the next turn would send the text that was edited away. A summary is
drafted, edited, accepted and undone by the user.
"""

from collections.abc import Iterator, Sequence

import msgspec

from sightline.catalog.compose import Prompt
from sightline.chat.core.facts import PairRevised, PairsCompacted
from sightline.chat.core.history import ChatHistory
from sightline.chat.core.pair import ChatAnswer, MessagePair
from sightline.chat.core.sizing import Sizer, TokenBand, band, concatenate, question
from sightline.editing.comparing import SectionChange, slots_of, texts_of, with_new_text
from sightline.editing.texts import divide_over_parts
from sightline.errors import Code, Fault
from sightline.model.parts import Part, Text
from sightline.model.request import Message
from sightline.tokens.estimate import sum_estimates


def revise_pairs(
    pairs: Sequence[MessagePair], question_pair: str, changes: Sequence[SectionChange]
) -> dict[str, MessagePair]:
    """The pairs that these changes alter, by id. `pairs` are those of the request in order; `question_pair` is the id
    of the one with the question. Earlier text that was deleted is left out of this one request only, and the pairs keep
    it. The question becomes what was sent."""
    known = {pair.id: pair for pair in pairs}
    found: dict[str, MessagePair] = {}
    for change in changes:
        if change.is_question:
            found[question_pair] = _revise_question(found.get(question_pair, known[question_pair]), change)
        elif change.new and (place := _place(pairs, change)) is not None:
            pair, number = place
            was = found.get(pair, known[pair])
            messages = () if was.answer is None else was.answer.messages
            if number < 0:
                found[pair] = _revise_question(was, change)
                continue
            changed = (*messages[:number], with_new_text(messages[number], change), *messages[number + 1 :])
            answer = msgspec.structs.replace(was.answer or ChatAnswer(), messages=changed)
            found[pair] = msgspec.structs.replace(was, answer=answer, is_edited=True)
    return {name: pair for name, pair in found.items() if pair != known[name]}


def revision(before: MessagePair, pair: MessagePair) -> PairRevised:
    """The fact that changes `before` into `pair`."""
    return PairRevised(
        before.id,
        None if pair.user_text == before.user_text else pair.user_text,
        None if pair.attachments == before.attachments else pair.attachments,
        None if pair.answer == before.answer else pair.answer,
    )


def _place(pairs: Sequence[MessagePair], change: SectionChange) -> tuple[str, int] | None:
    """The pair that contains this text, and the index of the message in its answer; -1 means its question. None if no
    pair contains the text."""
    places = [
        (pair.id, number)
        for pair in pairs
        for number, who, words in _slots(pair)
        if (who, words) == (change.who, change.old)
    ]
    return places[change.nth] if change.nth < len(places) else None


def _slots(pair: MessagePair) -> Iterator[tuple[int, str, str]]:
    """The messages of a pair, with their roles."""
    yield -1, "user", "".join(texts_of(_question(pair)))
    for number, message in enumerate(() if pair.answer is None else pair.answer.messages):
        for who, words in slots_of(message):
            yield number, who, words


def _question(pair: MessagePair) -> tuple[Part, ...]:
    """The parts of a pair's question, as they are sent."""
    return (*pair.attachments, *((Text(pair.user_text),) if pair.user_text.strip() else ()))


def _revise_question(pair: MessagePair, change: SectionChange) -> MessagePair:
    """The pair with the question that was sent: without the deleted parts, and with the new text."""
    parts = _question(pair)
    gone = set(change.gone) if change.count == len(parts) else set()
    kept = [part for number, part in enumerate(parts) if number not in gone]
    has_words = bool(pair.user_text.strip()) and (len(parts) - 1) not in gone
    attachments, words = (kept[:-1], [Text(pair.user_text)]) if has_words else (kept, [])
    spoken = [*texts_of(attachments), *(each.text for each in words)]
    new = iter(divide_over_parts(spoken, change.new) if spoken else ())
    new_parts: list[Part] = [Text(next(new)) if isinstance(part, Text) else part for part in attachments]
    text = next(new, change.new if not spoken else "")
    return msgspec.structs.replace(pair, user_text=text, attachments=tuple(new_parts), is_edited=True)


INSTRUCTION = (
    "Write a summary of the conversation above that can replace it, so that we can continue without it. Keep "
    "decisions, facts, names, numbers, open questions and what was asked for; leave out pleasantries. Write only the "
    "summary."
)


class Comparison(msgspec.Struct, frozen=True):
    """The tokens of some pairs, and of the summary that would replace them."""

    before: TokenBand
    after: TokenBand


def drafting(pairs: Sequence[MessagePair], sizer: Sizer, instruction: str) -> Prompt:
    """The request for a draft: the pairs, and the instruction to summarize them."""
    if not pairs:
        raise Fault(Code.USAGE, "there is nothing to summarize", hint="Choose some pairs.")
    messages = concatenate(map(sizer.messages, pairs))
    return Prompt((*messages, Message("user", (Text(instruction),), bare=True)), tools=sizer.tools, instructions="")


def compare(pairs: Sequence[MessagePair], text: str, sizer: Sizer) -> Comparison:
    """The tokens of the pairs and of this summary."""
    message = question(text)
    return Comparison(
        band(sum_estimates(map(sizer.size, pairs))),
        band(sum_estimates(() if message is None else (sizer.correct(sizer.message(message)),))),
    )


def compaction_fact(history: ChatHistory, ids: Sequence[str], text: str, *, new_id: str) -> PairsCompacted:
    """The fact that replaces these pairs with the summary: a question without an answer, in the topic and at the time
    of the newest of them."""
    if not ids or not text.strip():
        raise Fault(
            Code.USAGE, "a summary needs a text and the pairs that it replaces", hint="Choose some, and write it."
        )
    pairs = history.in_order(ids)
    newest = pairs[-1]
    return PairsCompacted(
        MessagePair(
            id=new_id,
            topic=newest.topic,
            model=newest.model,
            user_text=text,
            star=max(pair.star for pair in pairs),
            state="complete",
            at=newest.at,
            summary_of=tuple(pair.id for pair in pairs),
        )
    )
