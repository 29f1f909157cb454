"""Shows one trial of a case: what was sent, the answer, and the graders' scores; with the bytes of its media."""

import base64
import hashlib
from collections.abc import Callable, Iterator, Sequence

import msgspec

from sightline.chat.core.pair import ChatAnswer
from sightline.chat.service.blocks import Block, CallBlock, Media, MediaBlock, blocks_of, media_of
from sightline.errors import Code, Fault
from sightline.evals.api.shapes import (
    CaseShown,
    MessageShown,
    TurnShown,
)
from sightline.evals.core.delivery.delivery import Note
from sightline.evals.core.result import SCHEME, CaseObservation, CaseResult, CaseScore
from sightline.evals.core.run_state import Key
from sightline.evals.core.suite import CallSegment, Case, CaseMessage, TextSegment
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.evaluation import Evaluation, RunSnapshot
from sightline.exchange.recording.exchange_record import find_exchange, load_exchange
from sightline.model.json import Json
from sightline.model.message import Message
from sightline.model.parts import Inline, Link, Part, Text, ToolCall
from sightline.store.store import Store
from sightline.wire.jsontext import encode


class CaseShowing:
    """Shows cases of runs. `source` returns a case as written in its file now. Delivery notes are not stored with a
    result, so they are computed again."""

    def __init__(self, evaluation: Evaluation, source: Callable[[Case], tuple[str, Json]]) -> None:
        self._evaluation = evaluation
        self._source = source

    def show_try(self, shown: RunSnapshot, key: Key) -> CaseShown:
        """Show one trial. Raises a fault if the run has no such trial."""
        standing = shown.standing
        if key not in standing.keys:
            name, target, trial = key
            hint = "GET /api/evals/{run} has all of them."
            message = f"the run has no trial {trial} of {name!r} on {target!r}"
            raise Fault(Code.USAGE, message, hint=hint, status=404)
        case = standing.cases[key[0]]
        result = standing.result(key)
        score = None if result is None else result.score
        seen = CaseObservation() if result is None else result.observation
        # Of a live conversation show the last turn, which includes all earlier messages.
        last = result.turns[-1] if result is not None and result.turns else seen
        notes, trouble = self._notes(shown, case, key[1])
        sha256, source = self._source(case)
        return CaseShown(
            case=case.id,
            group=case.group,
            tags=case.tags,
            target=key[1],
            trial=key[2],
            status=("running" if key in standing.running else "waiting") if result is None else result.status,
            verdict=None if score is None else score.verdict,
            score=None if score is None else score.score,
            reason="" if score is None else score.reason,
            criteria=case.criteria,
            expected=tuple(_show_expectation(each) for each in case.expected),
            messages=messages_shown(last.asked),
            question=last.question,
            answer=answer_shown(last.messages, len(media_in(last.asked, ()))),
            scores=() if score is None else score.scores,
            turns=() if result is None else _turns(result),
            exchanges=seen.exchanges,
            run=seen.run,
            body_sha256=last.request_sha256,
            place=case.place,
            notes=notes,
            notes_trouble=trouble,
            usage=seen.usage,
            cost=seen.cost,
            seconds=seen.seconds,
            finish=seen.finish,
            model=seen.model,
            error=seen.error,
            error_code=seen.error_code,
            cached=result is not None and result.cached,
            at=0.0 if result is None else result.at,
            source=source,
            source_sha256=sha256,
        )

    def observation(self, shown: RunSnapshot, key: Key, turn: int | None = None) -> CaseObservation:
        """The observation of one trial or one of its turns; by default the last turn."""
        result = shown.standing.result(key) if key in shown.standing.keys else None
        if result is None:
            return CaseObservation()
        if turn is None:
            return result.turns[-1] if result.turns else result.observation
        return result.turns[turn] if turn < len(result.turns) else CaseObservation()

    def _notes(self, shown: RunSnapshot, case: Case, target: str) -> tuple[tuple[Note, ...], str]:
        began = shown.standing.began
        spec = next(each for each in began.targets if each.name == target)
        # Only the messages are needed here, and nothing is sent for them.
        plain = TargetSpec(name=spec.name, system=spec.system, mock="", file_form=spec.file_form)
        try:
            return self._evaluation.preview(began.suite, case.id, plain, began.options).delivery.notes, ""
        except Fault as fault:
            return (), fault.message


def media_in(sent: Sequence[Message], answered: Sequence[Message]) -> tuple[Media, ...]:
    """All media of the question and the answer, in the order of their numbers in the blocks."""
    return media_of(ChatAnswer(messages=(*sent, *answered)))


def messages_shown(messages: Sequence[Message]) -> tuple[MessageShown, ...]:
    """Messages as sent. A tool's result is shown within its call, if the call is there."""
    shown: list[MessageShown] = []
    for index, message in enumerate(messages):
        if message.role == "tool" and shown:
            continue  # its text is shown in the message with the call
        # The chat has blocks for answers only; other messages are shown in the same way.
        turn = Message("assistant", message.parts)
        blocks = answer_shown((turn, *_results_behind(messages, index)), len(media_in(messages[:index], ())))
        shown.append(MessageShown(message.role, message.name or "", blocks))
    return tuple(shown)


def answer_shown(messages: Sequence[Message], first: int = 0) -> tuple[Block, ...]:
    """The messages as blocks like the chat's. `first` is the number of the first image or file."""
    blocks = blocks_of(ChatAnswer(messages=tuple(messages)))
    return tuple(_renumber(block, first) for block in blocks) if first else blocks


def _renumber(block: Block, first: int) -> Block:
    if isinstance(block, MediaBlock):
        return msgspec.structs.replace(block, n=block.n + first)
    if isinstance(block, CallBlock) and block.result is not None and block.result.media:
        result = msgspec.structs.replace(block.result, first=block.result.first + first)
        return msgspec.structs.replace(block, result=result)
    return block


def _results_behind(messages: Sequence[Message], index: int) -> list[Message]:
    found: list[Message] = []
    for message in messages[index + 1 :]:
        if message.role != "tool":
            break
        found.append(message)
    return found


def _turns(result: CaseResult) -> tuple[TurnShown, ...]:
    scores: list[CaseScore | None] = [*result.score.turns]
    scores += [None] * (len(result.turns) - len(scores))
    return tuple(_turn(seen, score) for seen, score in zip(result.turns, scores, strict=False))


def _turn(seen: CaseObservation, score: CaseScore | None) -> TurnShown:
    return TurnShown(
        messages=messages_shown(seen.asked),
        answer=answer_shown(seen.messages, len(media_in(seen.asked, ()))),
        verdict=None if score is None else score.verdict,
        score=None if score is None else score.score,
        scores=() if score is None else score.scores,
        reason="" if score is None else score.reason,
        exchanges=seen.exchanges,
        seconds=seen.seconds,
        cost=seen.cost,
        error=seen.error,
    )


def _show_expectation(message: CaseMessage) -> MessageShown:
    """An expected message of a suite; a file is shown by its name."""
    parts: list[Part] = []
    for segment in message.segments:
        match segment:
            case TextSegment():
                parts.append(Text(segment.text))
            case CallSegment():
                words = segment.arguments
                written = words if isinstance(words, str) else encode(words).decode("utf-8", "replace")
                parts.append(ToolCall(segment.id, segment.name, written))
            case _:
                parts.append(Text(f"<{segment.path}>"))
    return MessageShown(message.role, message.name, answer_shown((Message("assistant", tuple(parts)),)))


class WholeMedia:
    """`read` returns the content of a file below the suites' folder, or None."""

    def __init__(self, store: Store, read: Callable[[str], bytes | None], now: Callable[[], float]) -> None:
        self._store = store
        self._read = read
        self._now = now

    async def of(self, part: Media, exchanges: Sequence[str], files: Sequence[str]) -> Media:
        """The part with its bytes from these exchanges or files; unchanged if none has them."""
        source = part.source
        if not isinstance(source, Link) or not source.url.startswith(SCHEME):
            return part
        digest = source.url.removeprefix(SCHEME)
        for each in reversed(exchanges):
            for other in await self._media_of(each):
                if isinstance(other.source, Inline) and _digest(other.source.data) == digest:
                    return other
        for coded in self._base64_of(files):
            if _digest(coded) == digest:
                return msgspec.structs.replace(part, source=Inline(source.media_type or "", coded))
        return part

    async def _media_of(self, exchange: str) -> tuple[Media, ...]:
        """All media of an exchange; empty if the record no longer has it."""
        try:
            found = await load_exchange(self._store, await find_exchange(self._store, exchange, now=self._now()))
            answer = (Message("assistant", found.reply().choice.parts),) if found.frames else ()
            return media_of(ChatAnswer(messages=(*found.request().messages, *answer)))
        except Fault:
            return ()

    def _base64_of(self, files: Sequence[str]) -> Iterator[str]:
        for path in files:
            data = self._read(path)
            if data is not None:
                yield base64.b64encode(data).decode("ascii")


def _digest(coded: str) -> str:
    return hashlib.sha256(coded.encode("ascii", "replace")).hexdigest()
