"""The messages of a case as they are sent: every role, call, picture and file, and notes of what became of them."""

from collections.abc import Mapping, Sequence
from typing import assert_never

import msgspec

from sightline.dialects.dialect import SystemPolicy
from sightline.evals.core.delivery.attachment import (
    block,
    file_part,
    file_text,
    is_ambiguous,
    marker,
    picture,
    picture_link,
    refusal,
)
from sightline.evals.core.delivery.calls import UNNAMED, CallLedger
from sightline.evals.core.delivery.guidelines import Guidelines
from sightline.evals.core.delivery.note import Note
from sightline.evals.core.delivery.question import flat_question
from sightline.evals.core.delivery.system import with_system
from sightline.evals.core.reading.paths import is_link
from sightline.evals.core.suite import CallSegment, CaseMessage, FileSegment, ImageSegment, Segment, TextSegment
from sightline.evals.core.target import FileForm
from sightline.model.message import Message
from sightline.model.parts import Part, Text, ToolCall, ToolResult


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

    A message that is one already (what a model said in an earlier turn) goes along as it is. A file that is not among
    `files`, or that no message can hold, is a fault.
    """
    guidelines = Guidelines(case_messages, files, guideline_patterns, file_form)
    writer = _Writer(case_messages, files, guidelines, file_form)
    for message in case_messages:
        writer.write(message)
    messages, told = with_system(tuple(writer.messages), policy, system_prompt, guidelines.text)
    extracted = [
        Note(
            "extracted",
            segment.path,
            "a guideline pattern names it: its words go into the system message",
            segment.place,
        )
        for segment in guidelines.segments
    ]
    return Delivery(
        messages=messages,
        question=flat_question(case_messages, files, system_prompt=system_prompt, file_form=file_form),
        notes=(*extracted, *writer.notes, *told),
    )


class _Writer:
    def __init__(
        self,
        messages: Sequence[CaseMessage | Message],
        files: Mapping[str, bytes],
        guidelines: Guidelines,
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
        """Id and name of a call that is put in front of a result that nobody asked for."""
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
                    return picture_link(segment)
                self.notes.append(Note("attached", segment.path, "it is sent as a picture", segment.place))
                return picture(content(segment, self._files), segment)
            case unreachable:
                assert_never(unreachable)

    def _file(self, segment: FileSegment) -> str | Part:
        if segment in self._guidelines:
            return marker(segment.path)
        data = content(segment, self._files)
        text = file_text(data, segment)
        if text is None:
            part = file_part(data, segment)
            self.notes.append(
                Note("attached", segment.path, f"it is sent as a part: {part.__struct_config__.tag}", segment.place)
            )
            return part
        self.notes.append(Note("inlined", segment.path, "its words stand in the message", segment.place))
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
