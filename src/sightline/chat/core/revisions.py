"""Applies the user's edits of a held request to the pairs that it was made of.

The history keeps what was really sent. Otherwise the next turn would send the text that was edited away.
"""

from collections.abc import Iterator, Sequence

import msgspec

from sightline.chat.core.facts import PairRevised
from sightline.chat.core.pair import ChatAnswer, MessagePair
from sightline.editing.comparing import SectionChange, slots_of, texts_of, with_new_text
from sightline.editing.texts import divide_over_parts
from sightline.model.message import Message
from sightline.model.parts import Part, Text


def revise_pairs(
    pairs: Sequence[MessagePair], question_pair: str, changes: Sequence[SectionChange]
) -> dict[str, MessagePair]:
    """The pairs that these changes alter, by id. `pairs` are those of the request in their order; `question_pair` is
    the id of the one that asks. Earlier text that was deleted was left out of this one request; the pairs keep it. The
    question becomes what was sent."""
    known = {pair.id: pair for pair in pairs}
    found: dict[str, MessagePair] = {}
    for change in changes:
        if change.is_question:
            found[question_pair] = _revise_question(found.get(question_pair, known[question_pair]), change)
        elif change.new and (place := _place(pairs, change)) is not None:
            pair, number = place
            was = found.get(pair, known[pair])
            messages = () if was.answer is None else was.answer.messages
            found[pair] = (
                _revise_answer(was, messages, number, change) if number >= 0 else _revise_question(was, change)
            )
    return {name: pair for name, pair in found.items() if pair != known[name]}


def revision(before: MessagePair, pair: MessagePair) -> PairRevised:
    """The fact that turns the one into the other."""
    return PairRevised(
        before.id,
        None if pair.user_text == before.user_text else pair.user_text,
        None if pair.attachments == before.attachments else pair.attachments,
        None if pair.answer == before.answer else pair.answer,
    )


def _place(pairs: Sequence[MessagePair], change: SectionChange) -> tuple[str, int] | None:
    """The pair that contains this text, and the number of the message in its answer; -1 is its question."""
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
    """The parts of its question, as they are sent."""
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


def _revise_answer(pair: MessagePair, messages: tuple[Message, ...], number: int, change: SectionChange) -> MessagePair:
    changed = with_new_text(messages[number], change)
    answer = msgspec.structs.replace(
        pair.answer or ChatAnswer(), messages=(*messages[:number], changed, *messages[number + 1 :])
    )
    return msgspec.structs.replace(pair, answer=answer, is_edited=True)
