"""Files named in a suite: requests for them, where they may be found, and `.env` files."""

import re
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias, TypeVar

import msgspec

from sightline.catalog.problem import Path, quote_word
from sightline.evals.core.reading.document import Node, SuiteFindings
from sightline.evals.core.suite import (
    Case,
    CaseMessage,
    FileSegment,
    ImageSegment,
    Segment,
    Suite,
    SuitePlace,
    SuiteProblem,
)

Wanted: TypeAlias = Literal["content", "presence", "listing"]


class Need(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request for a file, by its path below the folder. It is answered with bytes, or with None if the file does not
    exist.

    `content`: its bytes. `presence`: any bytes, because it is not read yet. `listing`: the path is a folder, and the
    answer is the paths of the files below it, relative to it, one per line.
    """

    path: str
    wanted: Wanted = "content"


T = TypeVar("T")
NeedsFiles: TypeAlias = Generator[Need, bytes | None, T]
"""A reader on its way to the result `T`: it requests files, and is sent each of them."""


class SuiteReading(msgspec.Struct, frozen=True, omit_defaults=True):
    """A suite, unless an error keeps it from running, and all problems that were found."""

    suite: Suite | None = None
    problems: tuple[SuiteProblem, ...] = ()


_DRIVE = re.compile(r"[A-Za-z]:")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
FILE = "file://"


def refusal_of(path: str, *, from_top: bool = False) -> tuple[str, str] | None:
    """Why a path cannot be used, and what to write instead; None if it can.

    `from_top`: a path that begins with a slash is relative to the repository, as in AgentV's suites.
    """
    if not path.strip():
        return "the path is empty", "Name a file."
    if "\0" in path or any(not letter.isprintable() for letter in path):
        return f"the path {quote_word(path)} has characters in it that no file name should have", "Rename the file."
    if path.startswith("~" if from_top else ("/", "~")) or _DRIVE.match(path):
        bare = quote_word(path.lstrip("/~").rpartition("/")[2] or path)
        hint = f"Write it relative to the suite, such as {bare}."
        return f"the path {quote_word(path)} is absolute: it would be another on every machine", hint
    if "\\" in path:
        return f"the path {quote_word(path)} has backslashes in it", f"Write {quote_word(path.replace(chr(92), '/'))}."
    if _SCHEME.match(path):
        return f"{quote_word(path)} is a URL, not a file", "Name a file; only images can be given by URL."
    return None


def is_usable(node: Node, path: str, findings: SuiteFindings, *, from_top: bool = False) -> bool:
    """Whether a path can be used; if it cannot, that is reported at the node."""
    refusal = refusal_of(path, from_top=from_top)
    if refusal is not None:
        findings.wrong(node, *refusal)
    return refusal is None


def is_link(path: str) -> bool:
    """Whether an image is given as a URL that a provider can fetch or read."""
    return path.startswith(("http://", "https://", "data:"))


def folder_of(file: str) -> str:
    """The folder of a file; empty for the top folder."""
    return file.rpartition("/")[0]


def display_path(path: str) -> str:
    """The path as shown to a model: as in the suite, without `.` steps."""
    return "/".join(step for step in path.split("/") if step not in (".", ""))


def join_path(folder: str, path: str) -> str | None:
    """A path relative to a folder, with `..` resolved; None if it leads out of the top folder."""
    steps = folder.split("/") if folder else []
    for step in path.split("/"):
        if step == "..":
            if not steps:
                return None
            steps.pop()
        elif step not in (".", ""):
            steps.append(step)
    return "/".join(steps)


def candidates(path: str, *files: str) -> list[str]:
    """Where a file that these files name may be: beside each of them, then in the folders above, up to the top."""
    found: dict[str, None] = {}
    for file in files:
        folders = file.split("/")[:-1]
        for depth in range(len(folders), -1, -1):
            if place := join_path("/".join(folders[:depth]), path):
                found[place] = None
    return list(found)


def first_of(paths: Iterable[str], wanted: Wanted = "content") -> NeedsFiles[tuple[str, bytes] | None]:
    """The first of these files that exists, with its answer. None if none exists."""
    for path in paths:
        data = yield Need(path, wanted)
        if data is not None:
            return path, data
    return None


_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=[ \t]*(.*)")
_QUOTED = re.compile(r"'([^']*)'|\"((?:[^\"\\]|\\.)*)\"")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def read_variables(data: bytes, wanted: Collection[str]) -> dict[str, str]:
    """The variables with these names. Others are not even kept, because such files are full of keys.

    If a name is set twice, the last value counts, as in a shell. Nothing within a value is expanded.
    """
    found: dict[str, str] = {}
    for line in data.decode("utf-8", "replace").removeprefix("\ufeff").splitlines():
        match = _LINE.fullmatch(line)
        if match is not None and match[1] in wanted:
            found[match[1]] = _value(match[2])
    return found


def _value(text: str) -> str:
    quoted = _QUOTED.match(text)
    if quoted is None:
        return re.split(r"\s#|^#", text, maxsplit=1)[0].strip()
    if quoted[1] is not None:
        return quoted[1]
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), quoted[2])


def files_of(case: Case) -> tuple[str, ...]:
    """The resolved paths of the files that a case needs to be sent, each once."""
    return tuple(
        dict.fromkeys(
            segment.resolved
            for message in case.all_messages
            for segment in message.segments
            if isinstance(segment, FileSegment | ImageSegment) and segment.resolved
        )
    )


def with_files(
    cases: Sequence[Case], paths: Mapping[SuitePlace, Path], file: str, findings: SuiteFindings
) -> NeedsFiles[tuple[Case, ...]]:
    """The cases with the resolved path of every file: relative to the file that names it, then to the suite. `paths`
    are the paths of the cases, by place."""
    resolved: dict[tuple[str, str], str] = {}
    placed: list[Case] = []
    for case in cases:
        for segment in _files_of(case):
            key = (segment.place.file, segment.path)
            tried = candidates(segment.path, segment.place.file, file)
            if key not in resolved:
                found = yield from first_of(tried, "presence")
                resolved[key] = "" if found is None else found[0]
            if not resolved[key]:
                _report_missing(segment, tried, paths[case.place], case.id, findings)
        placed.append(_with_places(case, resolved))
    return tuple(placed)


def _files_of(case: Case) -> Iterator[FileSegment | ImageSegment]:
    """Every file that a case names, including those in what it expects."""
    held = ((case.messages, case.expected), *((turn.messages, turn.expected) for turn in case.turns))
    for message in (message for pair in held for messages in pair for message in messages):
        for segment in message.segments:
            if isinstance(segment, FileSegment | ImageSegment) and not is_link(segment.path):
                yield segment


def _with_places(case: Case, resolved: Mapping[tuple[str, str], str]) -> Case:
    def place(messages: tuple[CaseMessage, ...]) -> tuple[CaseMessage, ...]:
        return tuple(
            msgspec.structs.replace(message, segments=tuple(map(place_segment, message.segments)))
            for message in messages
        )

    def place_segment(segment: Segment) -> Segment:
        if not isinstance(segment, FileSegment | ImageSegment) or is_link(segment.path):
            return segment
        return msgspec.structs.replace(segment, resolved=resolved[segment.place.file, segment.path])

    if not any(_files_of(case)):
        return case
    turns = tuple(
        msgspec.structs.replace(turn, messages=place(turn.messages), expected=place(turn.expected))
        for turn in case.turns
    )
    return msgspec.structs.replace(case, messages=place(case.messages), expected=place(case.expected), turns=turns)


def _report_missing(
    segment: FileSegment | ImageSegment, tried: Sequence[str], path: Path, case: str, findings: SuiteFindings
) -> None:
    name = quote_word(segment.path)
    # A path that leads out of the folder is an error of the suite; a file may be missing on this machine only.
    message = f"there is no file {name}" if tried else f"the path {name} leads out of the folder"
    hint = f"Looked for {', '.join(tried[:5])}." if tried else "Put the file into the folder."
    findings.wrong_at(segment.place, path, message, hint, case=case if tried else "")
