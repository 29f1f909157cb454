"""Folds the events of an answer, streamed or decoded from a whole body, into a `Reply`, and turns a part back into the
events that it could have arrived as."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import assert_never

import msgspec

from sightline.errors import Code, Fault
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    Failed,
    FieldReceived,
    Finished,
    FrameBroken,
    LogprobsReceived,
    PartReceived,
    RefusalReceived,
    SignatureReceived,
    Started,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    ToolCallCompleted,
    UsageReceived,
)
from sightline.model.parts import Citation, Image, Part, Refusal, Text, Thinking, ToolCall
from sightline.model.reply import Choice, Finish, Reply, TokenLogprob, Unmodelled, Usage


@dataclass(slots=True)
class _Draft:
    """A part that is still growing: its value without the fragments, and the fragments so far."""

    value: Part
    fragments: list[str] = field(default_factory=list)
    pieces: dict[tuple[bool, int], list[str]] = field(default_factory=dict)
    citations: list[Citation] = field(default_factory=list)


@dataclass(slots=True)
class _ChoiceDraft:
    parts: dict[int, _Draft] = field(default_factory=dict)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    logprobs_at: str = ""
    finished: Finished | None = None


class Fold:
    """Takes events one at a time; `reply` is the result so far, at any point."""

    def __init__(self, dialect: str = "") -> None:
        self._dialect = dialect
        self._started = Started()
        self._choices: dict[int, _ChoiceDraft] = {}
        self._usage: Usage | None = None
        self._fault: Fault | None = None
        self._unmodelled: list[Unmodelled] = []

    def add(self, event: StreamEvent) -> None:  # noqa: C901 - one flat case per event is the readable form
        """Take one more event."""
        if type(event) is TextReceived and (drafts := self._choices.get(event.choice)) is not None:
            growing = drafts.parts.get(event.part)
            if growing is not None:  # the case of nearly all events
                growing.fragments.append(event.text)
                return
        match event:  # events that every answer has come first
            case TextReceived(part, text, choice, at):
                self._draft(choice, part, Text(at=at)).fragments.append(text)
            case Started():
                self._started = _complete_identity(self._started, event)
            case ToolCallCompleted(part, choice, extras) if extras:
                draft = self._draft(choice, part, ToolCall("", "", ""))
                draft.value = msgspec.structs.replace(draft.value, extras=extras)
            case ToolCallCompleted() | Ended():
                pass
            case Finished(choice=choice):
                self._choice(choice).finished = event
            case UsageReceived(usage):
                self._usage = update_usage(self._usage, usage)
            case FieldReceived(at, value) | FrameBroken(at, value):
                self._unmodelled.append(Unmodelled(at, value))
            case ArgumentsReceived(part, fragment, choice):
                self._draft(choice, part, ToolCall("", "", "")).fragments.append(fragment)
            case ThinkingReceived(part, text, choice, piece, summary, at):
                draft = self._draft(choice, part, Thinking(at=at))
                draft.pieces.setdefault((summary, piece), []).append(text)
            case RefusalReceived(part, text, choice, at):
                self._draft(choice, part, Refusal(at=at)).fragments.append(text)
            case ToolCallBegun(part, call_id, name, choice, kind, namespace, item, at):
                call = ToolCall(call_id, name, "", kind=kind, namespace=namespace, item=item, at=at)
                self._draft(choice, part, call)
            case SignatureReceived():
                self._sign(event)
            case CitationReceived(part, citation, choice):
                self._draft(choice, part, Text()).citations.append(citation)
            case LogprobsReceived(tokens, choice, at):
                draft_choice = self._choice(choice)
                draft_choice.logprobs.extend(tokens)
                draft_choice.logprobs_at = draft_choice.logprobs_at or at
            case PartReceived(part, value, choice):
                self._draft(choice, part, value)
            case Failed(fault):
                self._fault = fault
            case unreachable:
                assert_never(unreachable)

    @property
    def reply(self) -> Reply:
        """The reply, with everything that has arrived so far."""
        failed: Finish | None = None
        if self._fault is not None:
            failed = "cancelled" if self._fault.code is Code.CANCELLED else "error"
        choices = []
        for _, draft in sorted(self._choices.items()) or [(0, _ChoiceDraft())]:
            finished = draft.finished
            choices.append(
                Choice(
                    parts=tuple(_part(draft.parts[number]) for number in sorted(draft.parts)),
                    finish=failed or (finished.finish if finished else None),
                    detail=finished.detail if finished else None,
                    stop_sequence=finished.stop_sequence if finished else None,
                    finish_at=finished.at if finished else "",
                    stop_at=finished.stop_at if finished else "",
                    logprobs=tuple(draft.logprobs),
                    logprobs_at=draft.logprobs_at,
                )
            )
        return Reply(
            choices=tuple(choices),
            id=self._started.id,
            model=self._started.model,
            created=self._started.created,
            places=self._started.places,
            usage=self._usage,
            fault=self._fault,
            dialect=self._dialect,
            unmodelled=tuple(self._unmodelled),
            marker=self._started.marker,
        )

    def _choice(self, index: int) -> _ChoiceDraft:
        draft = self._choices.get(index)
        if draft is None:
            draft = self._choices[index] = _ChoiceDraft()
        return draft

    def _draft(self, choice: int, part: int, fresh: Part) -> _Draft:
        parts = self._choice(choice).parts
        draft = parts.get(part)
        if draft is None:
            draft = parts[part] = _Draft(fresh)
        return draft

    def _sign(self, event: SignatureReceived) -> None:
        draft = self._draft(event.choice, event.part, Thinking())
        value = draft.value
        if isinstance(value, Thinking):
            draft.value = msgspec.structs.replace(
                value, signature=event.signature, signed_by=event.signed_by, id=event.id
            )
        elif isinstance(value, (Text, ToolCall, Image)):
            draft.value = msgspec.structs.replace(value, signature=event.signature, signed_by=event.signed_by)


def fold(events: Iterable[StreamEvent], dialect: str = "") -> Reply:
    """The reply that these events make up."""
    folding = Fold(dialect)
    for event in events:
        folding.add(event)
    return folding.reply


def _part(draft: _Draft) -> Part:
    value, whole = draft.value, "".join(draft.fragments)
    match value:
        case Text():
            return msgspec.structs.replace(
                value, text=value.text + whole, citations=(*value.citations, *draft.citations)
            )
        case Refusal():
            return msgspec.structs.replace(value, text=value.text + whole)
        case ToolCall():
            return msgspec.structs.replace(value, arguments=value.arguments + whole)
        case Thinking() if draft.pieces:
            summary = tuple("".join(draft.pieces[key]) for key in sorted(draft.pieces) if key[0])
            content = "\n\n".join("".join(draft.pieces[key]) for key in sorted(draft.pieces) if not key[0])
            return msgspec.structs.replace(value, text=content or "\n\n".join(summary), summary=summary)
        case _:
            return value


def part_events(part: Part, number: int, choice: int = 0) -> list[StreamEvent]:
    """A part as events: a part that can be streamed as if it had arrived in one step, any other part whole."""
    events: list[StreamEvent]
    match part:
        case Text(text, citations):
            events = [TextReceived(number, text, choice, at=part.at)]
            events += [CitationReceived(number, citation, choice) for citation in citations]
        case Refusal(text):
            return [RefusalReceived(number, text, choice, at=part.at)]
        case Thinking(text, summary, redacted=False):
            events = [
                ThinkingReceived(number, piece, choice, index, summary=True, at=part.at)
                for index, piece in enumerate(summary)
            ]
            if not summary or text != "\n\n".join(summary):
                events.append(ThinkingReceived(number, text, choice, at=part.at))
        case ToolCall(call_id, name, _, kind, namespace, item):
            events = [ToolCallBegun(number, call_id, name, choice, kind, namespace, item, part.at)]
        case _:
            return [PartReceived(number, part, choice)]
    if part.signed_by is not None and part.signature != "":
        # Directly after the beginning of a call, because some writers must write the signature before the call.
        bound = part.id if isinstance(part, Thinking) else None
        events.append(SignatureReceived(number, part.signature, part.signed_by, choice, bound))
    if isinstance(part, ToolCall):
        extras = {} if part.kind in ("function", "custom") else part.extras
        events += [ArgumentsReceived(number, part.arguments, choice), ToolCallCompleted(number, choice, extras)]
    return events


def update_usage(usage: Usage | None, newer: Usage) -> Usage:
    """The usage, updated with the counts that the newer one has."""
    if usage is None:
        return newer
    known = {name: value for name, value in msgspec.structs.asdict(newer).items() if value not in (None, "", {})}
    if newer.extras:
        known["extras"] = usage.extras | newer.extras
    return msgspec.structs.replace(usage, **known)


def _complete_identity(started: Started, newer: Started) -> Started:
    return Started(
        id=started.id or newer.id,
        model=started.model or newer.model,
        created=started.created if started.created is not None else newer.created,
        places=newer.places | started.places,
        marker=newer.marker or started.marker,
    )
