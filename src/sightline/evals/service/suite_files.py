"""Suite files: reading them below one root folder, parsing suites, and making cases from the record."""

import hashlib
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from sightline.errors import Code, Fault
from sightline.evals.core.graders.grade import check_graders
from sightline.evals.core.making.case import CaseExchange, MadeCase, join_exchanges, make_case, turns_of
from sightline.evals.core.reading.files import Need, SuiteReading, candidates
from sightline.evals.core.reading.suites import read_suite
from sightline.evals.core.suite import Suite, SuiteProblem
from sightline.exchange.recording.exchange_record import RecordedExchange, find_exchange, load_exchange
from sightline.store.store import Store
from sightline.wire.secrets import Redaction

LONGEST_FILE = 64 << 20
_MOST_LISTED = 100_000
_LONGEST_SHOWN = 80
_PRESENT = b""


class SuiteFiles:
    """Reads files by their path below `root`. Symbolic links are resolved first, so that none leads outside."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def path(self, path: str) -> Path | None:
        """The resolved path, or None if it is outside the root."""
        if "\0" in path:
            return None
        found = (self.root / path).resolve()
        return found if found == self.root or self.root in found.parents else None

    def read(self, path: str) -> bytes | None:
        """The content of a file; None if there is none. Raises a fault if it cannot be read."""
        found = self.path(path)
        if found is None or not _is_file(found, path):
            return None
        try:
            with found.open("rb") as file:
                data = file.read(LONGEST_FILE + 1)
        except OSError as error:
            raise Fault(Code.CONFIG, f"{path}: {error.strerror}", hint="Check who may read the file.") from None
        if len(data) > LONGEST_FILE:
            raise Fault(
                Code.CONFIG, f"{path} is larger than {LONGEST_FILE >> 20} MB", hint="Check that it is the right file."
            )
        return data

    def bring(self, need: Need) -> bytes | None:
        """The bytes that a suite parser needs: a file, or a folder's listing."""
        match need.wanted:
            case "content":
                return self.read(need.path)
            case "presence":
                found = self.path(need.path)
                return _PRESENT if found is not None and _is_file(found, need.path) else None
            case "listing":
                return self._listing(need.path)

    def find(self, path: str, suite: str) -> str | None:
        """Find a file that a suite names: beside the suite, or in a folder above."""
        return next((each for each in candidates(suite, path) if self.bring(Need(each, "presence")) is not None), None)

    def _listing(self, folder: str) -> bytes | None:
        found = self.path(folder)
        if found is None or not found.is_dir():
            return None
        names: list[str] = []
        for base, folders, files in os.walk(found):
            folders[:] = sorted(each for each in folders if not each.startswith("."))
            here = Path(base).relative_to(found)
            names += [(here / each).as_posix() for each in sorted(files)]
            if len(names) > _MOST_LISTED:
                raise Fault(
                    Code.CONFIG, f"{folder or '.'} has more than {_MOST_LISTED} files", hint="Name a folder in it."
                )
        return "\n".join(names).encode("utf-8", "surrogateescape")


def _is_file(found: Path, path: str) -> bool:
    """Whether the file exists. Raises a fault if the name is invalid."""
    try:
        return found.is_file()
    except OSError as error:
        shown = path if len(path) <= _LONGEST_SHOWN else f"{path[:_LONGEST_SHOWN]}…"
        raise Fault(Code.CONFIG, f"{shown}: {error.strerror}", hint="Give it a shorter name.", status=422) from None


T = TypeVar("T")


class Bringing(Protocol):
    """A source of files."""

    def bring(self, need: Need) -> bytes | None:
        """The bytes that a suite parser needs: a file, or a folder's listing."""


def suite_in(files: SuiteFiles, file: str, environment: Mapping[str, str]) -> SuiteReading:
    """Parse the suite in a file and check its graders. `environment` is what `${{ NAME }}` may refer to."""
    data = files.read(file)
    if data is None:
        raise Fault(Code.USAGE, f"there is no suite {file}", hint="Check the path.", status=404)
    return read_text(files, file, data, environment)


def read_text(files: Bringing, file: str, data: bytes, environment: Mapping[str, str]) -> SuiteReading:
    """Parse a suite from a text that is not, or not yet, the file's content."""
    reading = run_reader(read_suite(data, file, environment), files)
    if reading.suite is None:
        return reading
    wrong = tuple(_of_graders(reading.suite))
    is_sound = not any(each.severity == "error" for each in wrong)
    suite = msgspec.structs.replace(reading.suite, sha256=hashlib.sha256(data).hexdigest())
    return SuiteReading(suite if is_sound else None, (*reading.problems, *wrong))


def sound(reading: SuiteReading, file: str) -> Suite:
    """The parsed suite. Raises a fault if there is none."""
    if reading.suite is not None:
        return reading.suite
    first, *others = [each for each in reading.problems if each.severity == "error"]
    more = f" (and {len(others)} more: `sightline eval validate {file}` shows all)" if others else ""
    details = [f"{each.place}: {each.message}" for each in (first, *others)]
    raise Fault(Code.USAGE, f"{first.place}: {first.message}{more}", hint=first.suggestion, status=422, details=details)


def run_reader(steps: Generator[Need, bytes | None, T], files: Bringing) -> T:
    """Run a parser, giving it the files that it asks for, and return its result."""
    given: bytes | None = None
    while True:
        try:
            given = files.bring(steps.send(given))
        except StopIteration as end:
            found: T = end.value
            return found


def _of_graders(suite: Suite) -> Iterator[SuiteProblem]:
    """The problems of a suite's graders. Graders that a suite repeats in every case are reported once."""
    reported: set[tuple[str, str]] = set()
    for index, case in enumerate(suite.cases):
        found = [*check_graders(case.graders, f"tests[{index}].assertions")]
        for number, turn in enumerate(case.turns):
            found += check_graders(turn.graders, f"tests[{index}].turns[{number}].assertions")
        for problem in found:
            key = (str(problem.place), problem.message)
            if key not in reported:
                reported.add(key)
                yield problem


async def conversation(store: Store, ids: Sequence[str], *, now: float) -> tuple[CaseExchange, ...]:
    """Load the exchanges with these ids or id prefixes, oldest first."""
    found: dict[str, RecordedExchange] = {}
    for each in ids:
        summary = await find_exchange(store, each, now=now)
        found[summary.id] = await load_exchange(store, summary)
    return tuple(_case_exchange_of(found[name]) for name in sorted(found))


def make_masked_case(
    exchanges: Sequence[CaseExchange],
    name: str,
    secrets: Sequence[str],
    from_turn: int | None = None,
    contains: str = "",
) -> MadeCase:
    """Make a case of a conversation, with all secrets masked."""
    redaction = Redaction(secrets)

    def mask(text: str) -> str:
        masking = redaction.masking()
        data = masking.feed(text.encode("utf-8", "surrogatepass")) + masking.close()
        return data.decode("utf-8", "surrogatepass")

    return make_case(exchanges, name, mask, from_turn=from_turn, contains=contains)


def turns_in(exchanges: Sequence[CaseExchange]) -> int:
    """The number of user turns in a conversation."""
    whole = join_exchanges(exchanges)
    return len(turns_of((*whole.messages, *whole.answer))[1])


def _case_exchange_of(exchange: RecordedExchange) -> CaseExchange:
    if exchange.is_count:
        hint = "Name an exchange in which the model was asked."
        raise Fault(Code.USAGE, f"{exchange.id} only counts tokens", hint=hint, status=422)
    return CaseExchange(exchange.request(), exchange.reply() if exchange.frames else None)
