"""Suite files below one root folder: reads and parses them, makes them from the record, and changes them, leaving
everything else in them as it is."""

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeVar

import msgspec

from sightline.catalog.problem import Path as DocumentPath
from sightline.catalog.problem import quote_word
from sightline.errors import Code, Fault
from sightline.evals.core.graders.grade import check_graders
from sightline.evals.core.making.case import CaseExchange, MadeCase, join_exchanges, make_case, turns_of
from sightline.evals.core.making.case_writer import MadeFile
from sightline.evals.core.reading.files import (
    Need,
    NeedsFiles,
    SuiteReading,
    candidates,
    first_of,
    folder_of,
    join_path,
    refusal_of,
)
from sightline.evals.core.reading.suites import read_suite
from sightline.evals.core.reading.yaml_edit import append_case, case_path, cases_in, write_value
from sightline.evals.core.reading.yaml_text import is_whole, read_yaml
from sightline.evals.core.suite import Case, Suite, SuiteProblem
from sightline.exchange.recording.exchange_record import RecordedExchange, find_exchange, load_exchange
from sightline.model.json import Json, JsonObject
from sightline.platform.files import replacing
from sightline.store.store import Store
from sightline.wire.jsontext import encode
from sightline.wire.secrets import Redaction

LONGEST_FILE = 64 << 20
_MOST_LISTED = 100_000
_LONGEST_SHOWN = 80
_EXISTS = b""


class SuiteFiles:
    """Reads files by their path below `root`. Symbolic links are resolved first, so that none leads outside.
    `unwritten` are contents that suites see as if they were already written."""

    def __init__(self, root: Path, unwritten: Mapping[str, bytes] | None = None) -> None:
        self.root = root.resolve()
        self._unwritten = unwritten or {}

    def path(self, path: str) -> Path | None:
        """The resolved path, or None if it is outside the root."""
        if "\0" in path:
            return None
        try:
            found = (self.root / path).resolve()
        except RuntimeError:  # a link leads to itself
            return None
        return found if found == self.root or self.root in found.parents else None

    def read(self, path: str) -> bytes | None:
        """The content of a file; None if it does not exist. Raises a fault if it cannot be read."""
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

    def contents(self, paths: Iterable[str]) -> dict[str, bytes]:
        """The contents of files. Missing files are left out; the code that needs one reports it."""
        return {path: data for path in paths if (data := self.read(path)) is not None}

    def bring(self, need: Need) -> bytes | None:
        """The bytes that a suite parser needs: a file, or a folder's listing."""
        if need.wanted != "listing" and need.path in self._unwritten:
            return self._unwritten[need.path]
        match need.wanted:
            case "content":
                return self.read(need.path)
            case "presence":
                found = self.path(need.path)
                return _EXISTS if found is not None and _is_file(found, need.path) else None
            case "listing":
                return self._listing(need.path)

    def find(self, path: str, suite: str) -> str | None:
        """Find a file that a suite names: beside the suite, or in a folder above."""
        found = run_reader(first_of(candidates(path, suite), "presence"), self)
        return None if found is None else found[0]

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


def suite_in(files: SuiteFiles, file: str, environment: Mapping[str, str]) -> SuiteReading:
    """Parse the suite in a file and check its graders. `environment` has the variables for `${{ NAME }}`."""
    data = files.read(file)
    if data is None:
        raise Fault(Code.USAGE, f"there is no suite {file}", hint="Check the path.", status=404)
    return read_text(files, file, data, environment)


def read_text(files: SuiteFiles, file: str, data: bytes, environment: Mapping[str, str]) -> SuiteReading:
    """Parse a suite from a text that is not, or not yet, the file's content."""
    reading = run_reader(read_suite(data, file, environment), files)
    if reading.suite is None:
        return reading
    wrong = tuple(_of_graders(reading.suite))
    is_sound = not any(each.severity == "error" for each in wrong)
    suite = msgspec.structs.replace(reading.suite, sha256=hashlib.sha256(data).hexdigest())
    return SuiteReading(suite if is_sound else None, (*reading.problems, *wrong))


def require_suite(reading: SuiteReading, file: str) -> Suite:
    """The parsed suite. Raises a fault if there is none."""
    if reading.suite is not None:
        return reading.suite
    first, *others = [each for each in reading.problems if each.severity == "error"]
    more = f" (and {len(others)} more: `sightline eval validate {file}` shows all)" if others else ""
    details = [f"{each.place}: {each.message}" for each in (first, *others)]
    raise Fault(Code.USAGE, f"{first.place}: {first.message}{more}", hint=first.suggestion, status=422, details=details)


def run_reader(steps: NeedsFiles[T], files: SuiteFiles) -> T:
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
    """Make a case from a conversation, with all secrets masked."""
    return make_case(exchanges, name, Redaction(secrets).words, from_turn=from_turn, contains=contains)


def turns_in(exchanges: Sequence[CaseExchange]) -> int:
    """The number of user turns in a conversation."""
    whole = join_exchanges(exchanges)
    return len(turns_of((*whole.messages, *whole.answer))[1])


def _case_exchange_of(exchange: RecordedExchange) -> CaseExchange:
    if exchange.is_count:
        hint = "Name an exchange in which the model was asked."
        raise Fault(Code.USAGE, f"{exchange.id} only counts tokens", hint=hint, status=422)
    return CaseExchange(exchange.request(), exchange.reply() if exchange.frames else None)


ENDINGS = (".yaml", ".yml", ".jsonl")
_RUNNING = frozenset({"command", "script", "python"})
_WRITABLE = 0o222


@dataclass(frozen=True, slots=True)
class SuiteWrite:
    """A write to a suite: the file, its new hash, and the ids of the new cases."""

    file: str
    sha256: str
    cases: tuple[str, ...]


class SuiteWriter:
    """Writes below one folder. Refuses to write a suite that could not be parsed afterwards, or a command that was not
    in the file before: only users with access to the files, not to the page, decide what is run."""

    def __init__(self, files: SuiteFiles, environment: Mapping[str, str]) -> None:
        self._files = files
        self._environment = environment
        self._read: tuple[str, str, dict[str, Json]] = "", "", {}

    def append(self, file: str, text: str, beside: Sequence[MadeFile] = ()) -> SuiteWrite:
        """Append the cases of a text to a suite, which is created if it does not exist. `beside` are files that they
        name, by their path relative to the suite."""
        self._check(file, text)
        cases = _cases_of(text, file)
        others = self._beside(file, beside)
        before = self._files.read(file)
        if before is None and not file.lower().endswith(".jsonl"):
            data = text.encode()
        else:
            data = before or b""
            for case in cases:
                name = case.get("id")
                if before and isinstance(name, str) and case_path(before, file, name) is not None:
                    hint = "Give it another id."
                    raise Fault(Code.USAGE, f"{file} has a case {quote_word(name)} already", hint=hint, status=409)
                data = append_case(data, file, case)
        suite = require_suite(read_text(SuiteFiles(self._files.root, others), file, data, self._environment), file)
        self._check_commands(file, before, suite)
        self._check_same(file, before)
        for path, content in others.items():
            self._write(path, content)
        self._write(file, data)
        return SuiteWrite(file, _hash(data), tuple(str(case.get("id", "")) for case in cases))

    def read(self, file: str) -> tuple[str, str]:
        """The text of a suite's file and its hash. Raises a fault if the file does not exist."""
        self._check(file)
        data = self._files.read(file)
        if data is None:
            raise Fault(Code.USAGE, f"there is no suite {file}", hint="Check the path.", status=404)
        return data.decode("utf-8", "replace"), _hash(data)

    def write_text(self, file: str, text: str, sha256: str, *, is_dry: bool = False) -> tuple[SuiteReading, str]:
        """Write a whole suite. Returns the parsed suite and the file's new hash, which is empty if nothing was written:
        on a dry run, or because of problems. `sha256` is the hash of the file that the user saw, empty for a new one.
        Raises a fault if the file has another hash by now."""
        self._check(file, text)
        data, before = text.encode(), self._files.read(file)
        reading = read_text(self._files, file, data, self._environment)
        if is_dry or reading.suite is None:
            return reading, ""
        if before is not None and not sha256:
            hint = "Give the new suite another name, or open that one."
            raise Fault(Code.USAGE, f"there is a file {file} already", hint=hint, status=409)
        if sha256 and (before is None or _hash(before) != sha256):
            raise _change_fault(file)
        self._check_commands(file, before, reading.suite)
        self._check_same(file, before)
        self._write(file, data)
        return reading, _hash(data)

    def preview_change(
        self, file: str, case: str, changes: Sequence[tuple[DocumentPath, Json]], sha256: str
    ) -> tuple[bytes, bytes]:
        """The file's content now, and with these values in a case. Nothing is written. Raises a fault if the file no
        longer has this hash, so that no other change is lost."""
        data = self._read_unchanged(file, sha256)
        where = case_path(data, file, case)
        if where is None:
            hint = "It is in another file, or has another id there."
            raise Fault(Code.USAGE, f"{file} has no case {quote_word(case)}", hint=hint, status=409)
        changed = data
        for path, value in changes:
            changed = write_value(changed, file, (*where, *path), value)
        suite = require_suite(read_text(self._files, file, changed, self._environment), file)
        self._check_commands(file, data, suite)
        return data, changed

    def replace(self, file: str, data: bytes, sha256: str) -> str:
        """Replace a file, which must still have this hash, and return its new one."""
        self._read_unchanged(file, sha256)
        self._write(file, data)
        return _hash(data)

    def source(self, case: Case) -> tuple[str, str, Json]:
        """The file of a case, the file's hash and the case as written there. Empty if the file can no longer be
        parsed."""
        file = case.place.file
        data = self._files.read(file) if file else None
        if data is None or not file.lower().endswith(ENDINGS):
            return "", "", None
        sha256 = _hash(data)
        # Parsing is slow, and a user who looks at one case looks at its neighbours next.
        known = self._read
        if known[:2] != (file, sha256):
            try:
                known = file, sha256, cases_in(data, file)
            except Fault:
                known = file, sha256, {}
            self._read = known
        found = known[2].get(case.id)
        return ("", "", None) if found is None else (file, sha256, found)

    def _read_unchanged(self, file: str, sha256: str) -> bytes:
        self._check(file)
        data = self._files.read(file)
        if data is None or _hash(data) != sha256:
            raise _change_fault(file)
        return data

    def _check(self, file: str, text: str = "") -> None:
        refusal = refusal_of(file)
        if refusal is None and not file.lower().endswith(ENDINGS):
            refusal = f"{quote_word(file)} is no file of a suite", f"Its name ends in {', '.join(ENDINGS)}."
        if refusal is None and (join_path("", file) is None or self._files.path(file) is None):
            refusal = f"{quote_word(file)} leads out of the folder", "Name a file in it."
        if refusal is None and any(name.startswith(".") for name in PurePosixPath(file).parts if name != "."):
            hint = "Name a file that does not begin with a dot, in folders that do not."
            refusal = f"{quote_word(file)} is hidden", hint
        if refusal is None and not is_whole(text):
            refusal = "the text contains half of a surrogate pair", "Write both halves, or leave it out."
        if refusal is not None:
            raise Fault(Code.USAGE, refusal[0], hint=refusal[1], status=422)

    def _check_commands(self, file: str, before: bytes | None, after: Suite) -> None:
        wanted = commands_of(after)
        if not wanted:
            return
        was = None if before is None else read_text(self._files, file, before, self._environment).suite
        if was is None or not wanted <= commands_of(was):
            hint = "Write the grader into the file itself; after that the rest of it can be changed here."
            raise Fault(Code.USAGE, f"{file} would run a command that it does not run now", hint=hint, status=422)

    def _check_same(self, file: str, before: bytes | None) -> None:
        """Check that the file was not saved by an editor while it was parsed."""
        if self._files.read(file) != before:
            raise _change_fault(file)

    def _beside(self, file: str, made: Sequence[MadeFile]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for each in made:
            path = None if refusal_of(each.path) else join_path(folder_of(file), each.path)
            if not path or self._files.path(path) is None:
                message = f"{quote_word(each.path)} is not a valid path for a file of the suite"
                raise Fault(Code.USAGE, message, hint="Name it relative to the suite.", status=422)
            there = self._files.read(path)
            if there is not None and there != each.data:
                message = f"there is another file {quote_word(path)} already"
                raise Fault(Code.USAGE, message, hint="Give the case another name.", status=409)
            found[path] = each.data
        return found

    def _write(self, path: str, data: bytes) -> None:
        place = self._files.path(path)
        assert place is not None  # it was checked above
        try:
            replace_file(place, data)
        except OSError as error:
            hint = "Check who may write there, and the space left."
            raise Fault(Code.CONFIG, f"{path}: {error.strerror}", hint=hint) from None


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    if not mode & _WRITABLE:
        raise PermissionError(errno.EACCES, "the file is read-only")
    with replacing(path, mode=mode, is_forced=True) as file:
        file.write(data)


def _cases_of(text: str, file: str) -> list[JsonObject]:
    tree = read_yaml(text.encode(), file)
    if isinstance(tree, SuiteProblem):
        raise tree.fault(Code.USAGE, status=422)
    tests = tree.get("tests") or tree
    cases = [each.json for each in tests.items]
    if not cases or not all(isinstance(each, dict) for each in cases):
        hint = "Write tests: and a list of cases."
        raise Fault(Code.USAGE, "there is no case in the text", hint=hint, status=422)
    return [each for each in cases if isinstance(each, dict)]


def commands_of(suite: Suite) -> set[bytes]:
    """The commands that a suite's graders run, as written."""
    specs = (spec for case in suite.cases for spec in case.all_graders)
    return {encode(command) for spec in specs for command in _commands({"type": spec.type, **spec.config})}


def _commands(config: Json) -> Iterator[JsonObject]:
    if isinstance(config, list):
        for each in config:
            yield from _commands(each)
    # The expected arguments of a tool call are not commands that are run.
    elif isinstance(config, dict) and config.get("type") != "tool-trajectory":
        if not _RUNNING.isdisjoint(config):
            yield {key: config[key] for key in sorted({*_RUNNING, "cwd", "type"} & config.keys())}
        yield from _commands(list(config.values()))


def _change_fault(file: str) -> Fault:
    hint = "Look at it again, and change what is there now."
    return Fault(Code.USAGE, f"{file} changed since it was looked at", hint=hint, status=409)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
