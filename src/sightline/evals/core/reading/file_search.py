"""Where the files are that messages name. One that is nowhere is an error of its case, which is not sent without it;
the other cases run."""

from collections.abc import Generator, Mapping, Sequence

import msgspec

from sightline.catalog.problem import Path, quote_word
from sightline.evals.core.place import SuitePlace
from sightline.evals.core.reading.findings import SuiteFindings
from sightline.evals.core.reading.paths import candidates, is_link
from sightline.evals.core.reading.requests import Need
from sightline.evals.core.suite import Case, CaseMessage, CaseTurn, FileSegment, ImageSegment, Segment


def files_of(case: Case) -> tuple[str, ...]:
    """The files that a case needs to be sent, each once, where they were found."""
    messages = (*case.messages, *(each for turn in case.turns for each in turn.messages))
    return tuple(
        dict.fromkeys(
            segment.resolved
            for message in messages
            for segment in message.segments
            if isinstance(segment, FileSegment | ImageSegment) and segment.resolved
        )
    )


def with_files(
    cases: Sequence[Case], paths: Mapping[SuitePlace, Path], file: str, findings: SuiteFindings
) -> Generator[Need, bytes | None, tuple[Case, ...]]:
    """The cases with every file's place in them. `paths` are the ways to the cases, by their places."""
    search = _Search(file, findings)
    found: list[Case] = []
    for case in cases:
        search.path, search.case = paths[case.place], case.id
        messages = yield from search.messages(case.messages)
        expected = yield from search.messages(case.expected)
        turns: list[CaseTurn] = []
        for turn in case.turns:
            said = yield from search.messages(turn.messages)
            wanted = yield from search.messages(turn.expected)
            turns.append(msgspec.structs.replace(turn, messages=said, expected=wanted))
        found.append(msgspec.structs.replace(case, messages=messages, expected=expected, turns=tuple(turns)))
    return tuple(found)


class _Search:
    def __init__(self, file: str, findings: SuiteFindings) -> None:
        self.path: Path = ()
        self.case = ""
        self._file = file
        self._findings = findings
        self._known: dict[tuple[str, str], str] = {}

    def messages(self, messages: tuple[CaseMessage, ...]) -> Generator[Need, bytes | None, tuple[CaseMessage, ...]]:
        if not any(isinstance(each, FileSegment | ImageSegment) for message in messages for each in message.segments):
            return messages
        placed: list[CaseMessage] = []
        for message in messages:
            segments: list[Segment] = []
            for segment in message.segments:
                if isinstance(segment, FileSegment | ImageSegment) and not is_link(segment.path):
                    resolved = yield from self._resolve(segment.path, segment.place)
                    segments.append(msgspec.structs.replace(segment, resolved=resolved))
                else:
                    segments.append(segment)
            placed.append(msgspec.structs.replace(message, segments=tuple(segments)))
        return tuple(placed)

    def _resolve(self, path: str, place: SuitePlace) -> Generator[Need, bytes | None, str]:
        """Where it lies: seen from the file that names it, then from the suite."""
        key = (place.file, path)
        tried = list(dict.fromkeys((*candidates(place.file, path), *candidates(self._file, path))))
        if key not in self._known:
            self._known[key] = ""
            for candidate in tried:
                if (yield Need(candidate, "presence")) is not None:
                    self._known[key] = candidate
                    break
        if not self._known[key]:
            self._missing(path, place, tried)
        return self._known[key]

    def _missing(self, path: str, place: SuitePlace, tried: list[str]) -> None:
        message = (
            f"there is no file {quote_word(path)}" if tried else f"the path {quote_word(path)} leads out of the folder"
        )
        hint = f"Looked for {', '.join(tried[:5])}." if tried else "Put the file into the folder."
        # A path that leads out is a mistake of the suite; a file may be missing on this machine only.
        self._findings.wrong_at(place, self.path, message, hint, case=self.case if tried else "")
