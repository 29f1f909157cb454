"""The facts of a chat, and how they change a pair. Facts are only appended; the history is a fold over them."""

from collections.abc import Collection
from typing import TypeAlias, assert_never

import msgspec

from sightline.chat.core.pair import ChatAnswer, Flag, Hand, MessagePair, Star, Trouble, text_answer
from sightline.chat.core.topics import Topic
from sightline.errors import CancelReason, Code, Fault
from sightline.model.parts import Part, Text
from sightline.model.request import Message


class PairAsked(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="asked"):
    """A question was sent as a new pair at the end. `replaces` is the pair that it replaces: one that failed, or whose
    question was changed."""

    pair: MessagePair
    replaces: str = ""


class PairAnswered(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="answered"):
    """The answer arrived; an earlier one is kept."""

    id: str
    answer: ChatAnswer


class PairFailed(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="failed"):
    """There is no answer, or only part of one."""

    id: str
    trouble: Trouble
    partial: ChatAnswer | None = None
    exchange: str = ""


class PairCancelled(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cancelled"):
    """The send was cancelled, usually by the user. What had arrived is kept, marked as partial."""

    id: str
    partial: ChatAnswer | None = None
    exchange: str = ""
    reason: CancelReason = "user"


class PairReasked(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="reasked"):
    """The same question was sent again in place, perhaps to another model. The answer stays until a new one has
    arrived."""

    id: str
    model: str = ""


class RunJoined(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="run_joined"):
    """A run with tools answers the pair: a new run, or an interrupted one that is resumed. The pair is sending
    again."""

    id: str
    run: str


class AnswerSwapped(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="swapped"):
    """An earlier answer became the answer, and the answer became the last of the earlier ones."""

    id: str
    index: int = -1


class PairEdited(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="edited"):
    """The user changed the text; None means unchanged."""

    id: str
    user_text: str | None = None
    assistant_text: str | None = None
    attachments: tuple[Part, ...] | None = None


class PairRevised(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="revised"):
    """The user edited the request while it was held, and this is what was sent of the pair; None means unchanged. The
    pair may still be waiting for its answer."""

    id: str
    user_text: str | None = None
    attachments: tuple[Part, ...] | None = None
    answer: ChatAnswer | None = None


PairEvent: TypeAlias = (
    PairAnswered | PairFailed | PairCancelled | PairReasked | RunJoined | AnswerSwapped | PairEdited | PairRevised
)
"""The events of an existing pair."""


class PairsStarred(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="starred"):
    """The pairs got this number of stars."""

    ids: tuple[str, ...]
    star: Star


class PairsFlagged(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="flagged"):
    """The pairs got this colour."""

    ids: tuple[str, ...]
    flag: Flag


class PairsMoved(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="moved"):
    """The pairs were moved to this topic."""

    ids: tuple[str, ...]
    topic: str


class PairsHandled(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="handled"):
    """The user included or excluded the pairs by hand, or left it to the filter again."""

    ids: tuple[str, ...]
    hand: Hand


Mark: TypeAlias = PairsStarred | PairsFlagged | PairsMoved | PairsHandled
"""Marks that the user sets on pairs, without changing their text."""


class PairsDeleted(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="deleted"):
    """The pairs were deleted, and can be restored."""

    ids: tuple[str, ...]


class PairsRestored(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="restored"):
    """The pairs were restored to their places."""

    ids: tuple[str, ...]


class PairsCompacted(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="compacted"):
    """A summary replaced the pairs in its `summary_of`, which are kept."""

    summary: MessagePair


class CompactionUndone(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="compaction_undone"):
    """The summarized pairs are back in their places, and the summary is removed."""

    id: str


class ChatImported(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="imported"):
    """Pairs and their topics were imported, each to its place in time. Pairs that exist already are unchanged."""

    topics: tuple[Topic, ...]
    pairs: tuple[MessagePair, ...]


Presence: TypeAlias = PairsDeleted | PairsRestored | PairsCompacted | CompactionUndone | ChatImported
"""The facts that change which pairs exist."""


class TopicAdded(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="topic_added"):
    """A topic was added."""

    topic: Topic


class TopicChanged(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="topic_changed"):
    """A topic got another name, parent, prompt, model or parameters."""

    topic: Topic


class TopicRemoved(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="topic_removed"):
    """An empty topic was removed."""

    id: str


Growth: TypeAlias = TopicAdded | TopicChanged | TopicRemoved
"""The facts that change the tree of topics."""

ChatFact: TypeAlias = PairAsked | PairEvent | Mark | Presence | Growth

CANCELLED = Trouble("cancelled", "stopped before anything arrived", hint="Ask again, or delete it.")

INTERRUPTED = Trouble("interrupted", "the program ended before the answer arrived", hint="Ask again, or delete it.")


def pair_after(pair: MessagePair, fact: PairEvent) -> MessagePair:
    """The pair after this event. Raises a Fault if the event is not allowed in its state."""
    is_sending = pair.state == "sending"
    match fact:
        case PairAnswered() | PairFailed() | PairCancelled():
            if not is_sending:
                raise _wrong(pair, "is not waiting for an answer", "It has already ended.")
            return _end(pair, fact)
        case RunJoined(run=run):
            return msgspec.structs.replace(pair, state="sending", trouble=None, run=run)
        case PairRevised(user_text=text, attachments=attachments, answer=answer):
            return msgspec.structs.replace(
                pair,
                user_text=pair.user_text if text is None else text,
                attachments=pair.attachments if attachments is None else attachments,
                answer=pair.answer if answer is None else answer,
                is_edited=True,
            )
        case PairReasked() | AnswerSwapped() | PairEdited() if is_sending:
            raise _wrong(pair, "is waiting for its answer", "Stop it, or wait for the answer.")
        case PairReasked(model=model):
            if pair.answer is None or pair.state == "error":
                raise _wrong(pair, "has no answer", "Ask it again as a new pair.")
            return msgspec.structs.replace(pair, state="sending", trouble=None, asking=model, run="")
        case AnswerSwapped(index=index):
            return _swap(pair, index)
        case PairEdited():
            return _edit(pair, fact)
        case unreachable:
            assert_never(unreachable)


def apply_mark(pair: MessagePair, fact: Mark) -> MessagePair:
    """The pair with this mark. The mark's field other than `ids` has the same name as the pair's field."""
    _, mark = fact.__struct_fields__
    return msgspec.structs.replace(pair, **{mark: getattr(fact, mark)})


def _end(pair: MessagePair, fact: PairAnswered | PairFailed | PairCancelled) -> MessagePair:
    replaced = msgspec.structs.replace
    came = fact.answer if isinstance(fact, PairAnswered) else fact.partial
    if came is not None and came.run:
        pair = _without_beginning(pair, came.run)
    if isinstance(fact, PairAnswered):
        earlier = pair.earlier if pair.answer is None else (*pair.earlier, pair.answer)
        model, exchange = pair.asking or pair.model, fact.answer.exchange or pair.exchange
        pair = replaced(pair, answer=fact.answer, earlier=earlier, model=model, asking="", run=fact.answer.run)
        return replaced(pair, state="complete", trouble=None, exchange=exchange)
    partial = fact.partial if fact.partial is not None and fact.partial.messages else None
    exchange = fact.exchange or pair.exchange
    trouble = fact.trouble if isinstance(fact, PairFailed) else replaced(CANCELLED, reason=fact.reason)
    if pair.answer is not None:  # the question was asked again, and the earlier answer stays
        earlier = pair.earlier if partial is None else (*pair.earlier, partial)
        return replaced(pair, earlier=earlier, asking="", state="complete", trouble=trouble, exchange=exchange)
    if isinstance(fact, PairCancelled) and partial is not None:
        partial = replaced(partial, finish="cancelled", reason=fact.reason)
        return replaced(pair, answer=partial, state="complete", trouble=None, exchange=exchange)
    return replaced(pair, answer=partial, state="error", trouble=trouble, exchange=exchange)


def _without_beginning(pair: MessagePair, run: str) -> MessagePair:
    """The pair without the partial answer of an interrupted run: the answer of the resumed run contains it."""

    def is_beginning(answer: ChatAnswer) -> bool:
        return answer.is_partial and answer.run == run

    answer = None if pair.answer is not None and is_beginning(pair.answer) else pair.answer
    earlier = tuple(each for each in pair.earlier if not is_beginning(each))
    return msgspec.structs.replace(pair, answer=answer, earlier=earlier)


def _swap(pair: MessagePair, index: int) -> MessagePair:
    if not -len(pair.earlier) <= index < len(pair.earlier):
        raise _wrong(pair, "has no such earlier answer", "Choose one that is there.")
    earlier = list(pair.earlier)
    answer = earlier.pop(index)
    kept = earlier if pair.answer is None else [*earlier, pair.answer]
    return msgspec.structs.replace(
        pair, answer=answer, earlier=tuple(kept), state="complete", trouble=None, run=answer.run
    )


def _edit(pair: MessagePair, fact: PairEdited) -> MessagePair:
    if fact.user_text is not None:
        pair = msgspec.structs.replace(pair, user_text=fact.user_text)
    if fact.attachments is not None:
        pair = msgspec.structs.replace(pair, attachments=fact.attachments)
    if fact.assistant_text is not None:
        answer = text_answer("", model=pair.model) if pair.answer is None else pair.answer
        answer = _with_text(answer, fact.assistant_text)
        pair = msgspec.structs.replace(pair, answer=answer, state="complete", trouble=None)
    return pair


def _with_text(answer: ChatAnswer, text: str) -> ChatAnswer:
    """The answer with this text in its last message. Earlier text stays only if tool calls follow it."""
    *rounds, last = answer.messages or (Message("assistant"),)
    if last.role != "assistant":
        rounds, last = [*rounds, last], Message("assistant")
    parts = tuple(part for part in last.parts if not isinstance(part, Text))
    texts = (Text(text),) if text else ()
    words = Message("assistant", (*parts, *texts) if rounds else texts, bare=not rounds)
    return msgspec.structs.replace(answer, messages=(*rounds, words))


def _wrong(pair: MessagePair, what: str, hint: str) -> Fault:
    return Fault(Code.USAGE, f"the pair {pair.id!r} {what}", hint=hint)


ERASED = "[deleted]"
"""Replaces text that was deleted permanently."""


def exchanges_in(fact: ChatFact) -> dict[str, tuple[str, ...]]:
    """The exchanges that a fact names, by the ids of their pairs."""
    match fact:
        case PairAsked(pair=pair) | PairsCompacted(summary=pair):
            return {pair.id: _pair_exchanges(pair)}
        case PairAnswered(id=name, answer=answer):
            return {name: (answer.exchange,)}
        case PairFailed(id=name, exchange=exchange) | PairCancelled(id=name, exchange=exchange):
            return {name: (exchange,)}
        case ChatImported(pairs=pairs):
            return {pair.id: _pair_exchanges(pair) for pair in pairs}
        case _:
            return {}


def _pair_exchanges(pair: MessagePair) -> tuple[str, ...]:
    answers = (*pair.earlier, *(() if pair.answer is None else (pair.answer,)))
    return (pair.exchange, *(answer.exchange for answer in answers))


def erase_texts(fact: ChatFact, pairs: Collection[str]) -> ChatFact:
    """The fact without the texts of these pairs, and without summaries of them. Everything else stays, so that the
    history folds as before."""
    match fact:
        case PairAsked(pair=pair) if pair.id in pairs:
            return msgspec.structs.replace(fact, pair=_erase_pair(pair))
        case PairAnswered(id=name, answer=answer) if name in pairs:
            return msgspec.structs.replace(fact, answer=_erase_answer(answer))
        case PairFailed(id=name, partial=partial) | PairCancelled(id=name, partial=partial) if name in pairs:
            erased = msgspec.structs.replace(fact, exchange="", partial=partial and _erase_answer(partial))
            if isinstance(erased, PairFailed):
                return msgspec.structs.replace(erased, trouble=msgspec.structs.replace(erased.trouble, message=ERASED))
            return erased
        case PairEdited(id=name) if name in pairs:
            return PairEdited(
                name,
                None if fact.user_text is None else ERASED,
                None if fact.assistant_text is None else ERASED,
                None if fact.attachments is None else (),
            )
        case PairRevised(id=name) if name in pairs:
            return PairRevised(
                name,
                None if fact.user_text is None else ERASED,
                None if fact.attachments is None else (),
                fact.answer and _erase_answer(fact.answer),
            )
        case PairsCompacted(summary=summary) if summary.id in pairs or not set(pairs).isdisjoint(summary.summary_of):
            return PairsCompacted(_erase_pair(summary))
        case ChatImported():
            kept = tuple(_erase_pair(pair) if pair.id in pairs else pair for pair in fact.pairs)
            return msgspec.structs.replace(fact, pairs=kept)
        case _:
            return fact


def _erase_pair(pair: MessagePair) -> MessagePair:
    return msgspec.structs.replace(
        pair,
        user_text=ERASED,
        attachments=(),
        answer=pair.answer and _erase_answer(pair.answer),
        earlier=tuple(map(_erase_answer, pair.earlier)),
        trouble=pair.trouble and msgspec.structs.replace(pair.trouble, message=ERASED),
        exchange="",
    )


def _erase_answer(answer: ChatAnswer) -> ChatAnswer:
    said = text_answer(ERASED).messages if answer.messages else ()
    return msgspec.structs.replace(answer, messages=said, exchange="", run="")
