"""What a case expects, as words for a judge and as a value to compare with."""

from collections.abc import Generator
from typing import assert_never

from sightline.errors import Fault
from sightline.evals.core.graders.ask import file_text
from sightline.evals.core.graders.json_equality import ABSENT, Absent
from sightline.evals.core.graders.judge_text import pretty
from sightline.evals.core.graders.steps import Answer, Step, StepFailed
from sightline.evals.core.graders.subject import Grading
from sightline.evals.core.suite import CallSegment, CaseMessage, FileSegment, ImageSegment, Segment, TextSegment
from sightline.model.json import Json
from sightline.wire.jsontext import decode


def reference_data(grading: Grading) -> Json | Absent:
    """The value that is expected: the one of the suite, or the JSON that the last message of an assistant is."""
    if isinstance(grading.expected_value, dict | list):
        return grading.expected_value
    texts = [plain_text(message) for message in grading.expected if message.role == "assistant"]
    if isinstance(grading.expected_value, str):
        texts.append(grading.expected_value)
    for text in reversed(texts):
        try:
            return decode(text)
        except Fault:
            continue
    return ABSENT


def reference_text(grading: Grading) -> Generator[Step, Answer, str | StepFailed]:
    """The reference answer: one message's words, or several messages with their roles; files are asked for."""
    if not grading.expected:
        value = grading.expected_value
        return value if isinstance(value, str) else "" if value is None else pretty(value)
    blocks = []
    for message in grading.expected:
        texts: list[str] = []
        for segment in message.segments:
            text = yield from _words(segment)
            if isinstance(text, StepFailed):
                return text
            texts.append(text)
        blocks.append((message.role, "\n".join(texts).strip()))
    if len(blocks) == 1:
        return blocks[0][1]
    return "\n\n".join(f"{role}:\n{text}" for role, text in blocks)


def plain_text(message: CaseMessage) -> str:
    """The words of a message, without what stands in files."""
    return "\n".join(segment.text for segment in message.segments if isinstance(segment, TextSegment))


def _words(segment: Segment) -> Generator[Step, Answer, str | StepFailed]:
    match segment:
        case TextSegment(text=text):
            return text
        case FileSegment(path=path, resolved=resolved):
            content = yield from file_text(resolved or path)
            return content if isinstance(content, StepFailed) else f"{path}:\n{content}"
        case ImageSegment(path=path):
            return f"[image {path}]"
        case CallSegment(name=name, arguments=arguments):
            return f"[calls {name} with {pretty(arguments)}]"
        case unreachable:
            assert_never(unreachable)
