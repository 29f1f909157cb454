"""The messages of a case as they are sent: every role, call, picture and file, and notes of what became of them."""

from collections.abc import Container, Mapping, Sequence
from typing import Literal, TypeAlias, assert_never

import msgspec

from sightline.dialects.conversation import SYSTEM_ROLES, with_policy
from sightline.dialects.dialect import SystemPolicy
from sightline.dialects.fields import from_url
from sightline.evals.core.delivery.content import (
    HEADING,
    UNNAMED,
    CallLedger,
    block,
    file_part,
    file_text,
    flat_question,
    guidelines_in,
    is_ambiguous,
    marker,
    picture,
    refusal,
)
from sightline.evals.core.reading.files import is_link
from sightline.evals.core.suite import (
    CallSegment,
    Case,
    CaseMessage,
    FileSegment,
    ImageSegment,
    Segment,
    SuitePlace,
    TextSegment,
)
from sightline.evals.core.target import FileForm
from sightline.model.parts import Image, Part, Text, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import Message

NoteKind: TypeAlias = Literal["extracted", "inlined", "attached", "moved", "merged", "skipped", "added", "unclear"]
"""`extracted`: a guideline went to the front. `inlined`: a file stands as text. `attached`: it stands as a part.
`unclear`: a reader could take it for something else."""


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was done, of what, why, and where that is in the suite."""

    kind: NoteKind
    what: str
    why: str
    place: SuitePlace = SuitePlace()


_APART = "\n\n"


def with_system(
    messages: tuple[Message, ...], policy: SystemPolicy, system_prompt: str, guidelines: str
) -> tuple[tuple[Message, ...], tuple[Note, ...]]:
    """The messages with the system prompt and then the guidelines in front of all that the case's own system messages
    say.

    `in_place` moves nothing: what is put in front joins the first message if that is a system message, and is one of
    its own if not. The other policies make one system message of the leading ones, or of all.
    """
    texts = tuple(Text(text) for text in (system_prompt, guidelines) if text.strip())
    notes: list[Note] = []
    arranged = messages
    if policy != "in_place":
        report = Report()
        arranged = with_policy(messages, policy, report)
        notes += [Note("moved", loss.what, loss.why) for loss in report.losses]
        before, after = _systems(messages), _systems(arranged)
        if after < before:
            notes.append(Note("merged", f"{before} system messages into {after}", f"the policy is {policy}"))
    if texts and arranged and arranged[0].role in SYSTEM_ROLES:
        first = arranged[0]
        notes.append(Note("merged", f"the first {first.role} message", "the system prompt and guidelines go before it"))
        arranged = (Message(first.role, (*texts, *first.parts), first.name), *arranged[1:])
    elif texts:
        arranged = (Message("system", texts), *arranged)
    is_merged = bool(texts) or policy != "in_place"
    return _with_front_joined(arranged) if is_merged else arranged, tuple(notes)


def _systems(messages: tuple[Message, ...]) -> int:
    return sum(message.role in SYSTEM_ROLES for message in messages)


def _with_front_joined(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages with the words of the system message in front as one text, a blank line between them."""
    if not messages or messages[0].role not in SYSTEM_ROLES:
        return messages
    first = messages[0]
    parts: list[Part] = []
    for part in first.parts:
        last = parts[-1] if parts else None
        if isinstance(part, Text) and isinstance(last, Text):
            parts[-1] = Text(f"{last.text}{_APART}{part.text}")
        else:
            parts.append(part)
    is_bare = len(parts) == 1 and isinstance(parts[0], Text)
    return (Message(first.role, tuple(parts), first.name, bare=is_bare), *messages[1:])


def turn_messages(case: Case, turn: int, replies: Sequence[Sequence[Message]]) -> tuple[CaseMessage | Message, ...]:
    """What is delivered for a turn, counted from 0: what stands before the turns, each turn that was held with what the
    model really said to it, and what is said now. `replies` are those of the turns before, tool rounds included."""
    messages: list[CaseMessage | Message] = [*case.messages]
    for index in range(turn):
        messages += case.turns[index].messages
        messages += replies[index]
    return (*messages, *case.turns[turn].messages)


def last_exchanges(messages: Sequence[Message], size: int | None) -> tuple[Message, ...]:
    """All system messages, and of the others the last `size` exchanges: twice that many messages, and never one more.

    The last of them is what is said now, so that the window usually opens on an answer of the model, as in AgentV. A
    result whose call is outside of it is left out. Where nothing but results is in it, it opens at their call.
    """
    if size is None:
        return tuple(messages)
    spoken = [index for index, message in enumerate(messages) if message.role not in SYSTEM_ROLES]
    opens = [index for index in spoken if messages[index].role != "tool"]
    inside = spoken[-2 * size :]
    first = next((index for index in opens if inside and index >= inside[0]), opens[-1] if opens else 0)
    return tuple(message for index, message in enumerate(messages) if index >= first or message.role in SYSTEM_ROLES)


class Delivery(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What is sent, the same as one text with role markers, and what was done on the way."""

    messages: tuple[Message, ...] = ()
    question: str = ""
    notes: tuple[Note, ...] = ()


def deliver(
    case_messages: Sequence[CaseMessage | Message],
    files: Mapping[str, bytes],
    policy: SystemPolicy = "in_place",
    *,
    system_prompt: str = "",
    guideline_patterns: Sequence[str] = (),
    file_form: FileForm = "xml",
) -> Delivery:
    """The messages for a target. `files` are the contents by the place where each was found.

    A message that is one already (what a model said in an earlier turn) is sent as it is. A file that is not among
    `files`, or that no message can hold, is a fault.
    """
    guidelines = guidelines_in(case_messages, files, guideline_patterns, file_form)
    writer = _Writer(case_messages, files, guidelines, file_form)
    for message in case_messages:
        writer.write(message)
    front = _APART.join((HEADING, *(words for _, words in guidelines.values()))) if guidelines else ""
    messages, moved = with_system(tuple(writer.messages), policy, system_prompt, front)
    why = "a guideline pattern names it: its words go into the system message"
    extracted = [Note("extracted", segment.path, why, segment.place) for segment, _ in guidelines.values()]
    return Delivery(
        messages=messages,
        question=flat_question(case_messages, files, system_prompt=system_prompt, file_form=file_form),
        notes=(*extracted, *writer.notes, *moved),
    )


class _Writer:
    def __init__(
        self,
        messages: Sequence[CaseMessage | Message],
        files: Mapping[str, bytes],
        guidelines: Container[str],
        form: FileForm,
    ) -> None:
        self._files = files
        self._guidelines = guidelines
        self._form = form
        self._calls = CallLedger(messages)
        self.messages: list[Message] = []
        self.notes: list[Note] = []

    def write(self, message: CaseMessage | Message) -> None:
        if isinstance(message, Message):
            self._calls.add_reply(message)
            self.messages.append(message)
            return
        parts = self._parts(message)
        if message.role == "tool":
            self._write_result(message, parts)
        elif parts:
            is_bare = len(parts) == 1 and isinstance(parts[0], Text)
            self.messages.append(Message(message.role, parts, message.name or None, bare=is_bare))
        else:
            self.notes.append(Note("skipped", f"a {message.role} message", "there is nothing in it", message.place))

    def _write_result(self, message: CaseMessage, parts: tuple[Part, ...]) -> None:
        """A tool's message. An empty one is sent if a call waits for it, for a tool may well answer nothing."""
        answered = self._calls.take_answered(message)
        if answered is None and not parts:
            self.notes.append(Note("skipped", "a tool message", "there is nothing in it", message.place))
            return
        if answered is None:
            answered = self._insert_call(message)
        call_id, name = answered
        is_bare = len(parts) == 1 and isinstance(parts[0], Text)
        result = ToolResult(call_id, parts, message.name or name, bare=is_bare)
        self.messages.append(Message("tool", (result,)))

    def _insert_call(self, message: CaseMessage) -> tuple[str, str]:
        """Id and name of a call that is put in front of a result without one."""
        if message.call_id:
            hint = "Write the call into tool_calls of the message before."
            raise refusal(message.place, f"no call before it has the id {message.call_id!r}", hint)
        call = ToolCall(self._calls.fresh(), message.name or UNNAMED, "{}")
        why = "no provider takes a result without its call"
        self.notes.append(Note("added", f"a call of {call.name}", why, message.place))
        last = self.messages[-1] if self.messages else None
        if last is not None and last.role == "assistant":
            self.messages[-1] = msgspec.structs.replace(last, parts=(*last.parts, call), bare=False)
        else:
            self.messages.append(Message("assistant", (call,)))
        return call.id, call.name

    def _parts(self, message: CaseMessage) -> tuple[Part, ...]:
        """The segments as parts; words that follow each other are one text, a line end between them."""
        parts: list[Part] = []
        for segment in message.segments:
            written = self._part_of(segment)
            last = parts[-1] if parts else None
            if not isinstance(written, str):
                parts.append(written)
            elif not written.strip():
                continue
            elif isinstance(last, Text):
                parts[-1] = Text(f"{last.text}\n{written}")
            else:
                parts.append(Text(written))
        return tuple(parts)

    def _part_of(self, segment: Segment) -> str | Part:
        match segment:
            case TextSegment():
                return segment.text
            case CallSegment():
                return self._calls.add_call(segment)
            case FileSegment():
                return self._file(segment)
            case ImageSegment():
                if is_link(segment.path):
                    return Image(from_url(segment.path))  # data in a URL is the picture itself
                self.notes.append(Note("attached", segment.path, "it is sent as a picture", segment.place))
                return picture(content(segment, self._files), segment)
            case unreachable:
                assert_never(unreachable)

    def _file(self, segment: FileSegment) -> str | Part:
        if segment.resolved in self._guidelines:
            return marker(segment.path)
        data = content(segment, self._files)
        text = file_text(data, segment)
        if text is None:
            part = file_part(data, segment)
            self.notes.append(
                Note("attached", segment.path, f"it is sent as a part: {part.__struct_config__.tag}", segment.place)
            )
            return part
        self.notes.append(Note("inlined", segment.path, "its text is in the message", segment.place))
        if is_ambiguous(text, self._form):
            why = "there is a line in it that looks like the end of the file or the head of another"
            self.notes.append(Note("unclear", segment.path, why, segment.place))
        return block(segment.path, text, self._form)


def content(segment: FileSegment | ImageSegment, files: Mapping[str, bytes]) -> bytes:
    """The bytes of a file. One that was not handed in is a fault, never an empty text."""
    data = files.get(segment.resolved)
    if data is None:
        raise refusal(segment.place, f"there is no file {segment.path!r}", "Put it there, and run the suite again.")
    return data
