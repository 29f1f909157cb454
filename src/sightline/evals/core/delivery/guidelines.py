"""Guidelines: files that a pattern names, whose words go into the system message instead of the message they are in."""

import re
from collections.abc import Iterable, Mapping

from sightline.evals.core.delivery.attachment import block, file_text
from sightline.evals.core.glob import compile_glob
from sightline.evals.core.suite import CaseMessage, FileSegment
from sightline.evals.core.target import FileForm
from sightline.model.message import Message

HEADING = "[[ ## Guidelines ## ]]"


class Guidelines:
    """The guideline files of a case, each once, in the order in which messages name them.

    A look-up is by the segment's own path; patterns are tried once for each path.
    """

    def __init__(
        self,
        messages: Iterable[CaseMessage | Message],
        files: Mapping[str, bytes],
        patterns: Iterable[str],
        form: FileForm,
    ) -> None:
        expressions = [compile_glob(pattern) for pattern in patterns]
        self._found: dict[str, FileSegment] = {}
        self._texts: list[str] = []
        for message in messages if expressions else ():
            for segment in message.segments if isinstance(message, CaseMessage) else ():
                if isinstance(segment, FileSegment) and segment.resolved not in self._found:
                    self._take(segment, files, expressions, form)

    def _take(
        self, segment: FileSegment, files: Mapping[str, bytes], expressions: list[re.Pattern[str]], form: FileForm
    ) -> None:
        paths = (segment.path, segment.resolved)
        if segment.resolved not in files or not any(each.fullmatch(path) for each in expressions for path in paths):
            return
        text = file_text(files[segment.resolved], segment)
        if text is not None:
            self._found[segment.resolved] = segment
            self._texts.append(block(segment.path, text, form))

    def __contains__(self, segment: FileSegment) -> bool:
        return segment.resolved in self._found

    @property
    def segments(self) -> tuple[FileSegment, ...]:
        """The files, where they are named first."""
        return tuple(self._found.values())

    @property
    def text(self) -> str:
        """What the system message has of them; empty where there are none."""
        return f"{HEADING}\n\n" + "\n\n".join(self._texts) if self._texts else ""
