"""The messages between a host and home, their encoding, and the files that home packs and a host unpacks.

The bundle contains the whole folder of the suite, and all files below the root that cases, graders, targets and
toolsets name. Hidden files and generated folders are left out: the former may contain keys, the latter are large.
"""

import asyncio
import os
import shlex
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec

from sightline.catalog.catalog import Catalog
from sightline.catalog.facts import Facts
from sightline.editing.masks import Mask
from sightline.errors import Code, Fault
from sightline.evals.core.reading.files import files_of, folder_of, join_path
from sightline.evals.core.run_state import EvalBegan, Key, read_as, write
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.suite_files import SuiteFiles
from sightline.exchange.relay_messages import FaultMessage
from sightline.model.json import Json
from sightline.model.reply import Usage
from sightline.settings import Settings
from sightline.store.entries import FactEntry, KeptEntry
from sightline.tokens.estimate import Estimate
from sightline.wire.jsontext import MISFIT


class Introduction(msgspec.Struct, frozen=True):
    """The versions a host runs; they must equal those at home for the messages to be understood."""

    sightline: str
    python: str
    process: str = ""


# --- to a host ---


class Begin(msgspec.Struct, frozen=True, omit_defaults=True, tag="begin", kw_only=True):
    """Everything that a host needs to begin, except files. `began` is the first fact of the run, `process` the name of
    the driving process, `config` where the configuration file would be below the suites' folder. `variables` contain
    keys; `masks` are those active at home."""

    run: str
    began: bytes
    catalog: Catalog
    settings: Settings
    targets: tuple[str, ...]
    process: str = ""
    config: str = ""
    calibration: bytes = b""
    variables: dict[str, str] = {}
    masks: tuple[Mask, ...] = ()

    def __repr__(self) -> str:
        return f"Begin({self.run!r})"


class Keys(msgspec.Struct, frozen=True, tag="keys"):
    """The variables for the `Begin` that follows. They contain keys and are sent separately because a cluster may store
    large messages (a suite) on disk, but not small ones."""

    variables: dict[str, str]

    def __repr__(self) -> str:
        return "Keys()"


class RunCase(msgspec.Struct, frozen=True, tag="run"):
    """Run a case, which later messages refer to as `n`."""

    n: int
    key: Key


class CutOff(msgspec.Struct, frozen=True, tag="cut"):
    """Cancel case `n`."""

    n: int


class HomeAnswer(msgspec.Struct, frozen=True, omit_defaults=True, tag="answer"):
    """The answer to question `n`, or the fault."""

    n: int
    value: msgspec.Raw = msgspec.Raw(b"null")
    fault: FaultMessage | None = None


class Leave(msgspec.Struct, frozen=True, tag="leave"):
    """End everything."""


ToHost: TypeAlias = Keys | Begin | RunCase | CutOff | HomeAnswer | Leave


# --- questions of a host ---


class Admit(msgspec.Struct, frozen=True, omit_defaults=True, tag="admit"):
    """Asks to admit a request of this size; answered once it may be sent."""

    provider: str
    model: str
    tokens: int
    facts: Facts


class HowLong(msgspec.Struct, frozen=True, omit_defaults=True, tag="how_long"):
    """Asks how long a request of this size must wait. Answered by a `Wait` of finite seconds: JSON has no infinity."""

    provider: str
    model: str
    tokens: int
    facts: Facts


class Find(msgspec.Struct, frozen=True, tag="find"):
    """Asks for the recorded facts of the exchange that answered this key."""

    target: str
    key: str


class Append(msgspec.Struct, frozen=True, tag="append"):
    log: str
    after: int
    data: tuple[bytes, ...]
    at: float


class ReadLines(msgspec.Struct, frozen=True, omit_defaults=True, tag="lines"):
    log: str
    after: int = 0


class ListLogs(msgspec.Struct, frozen=True, omit_defaults=True, tag="logs"):
    prefix: str = ""


Question: TypeAlias = Admit | HowLong | Find | Append | ReadLines | ListLogs


class FindAnswer(msgspec.Struct, frozen=True):
    """The answer to `Find`; an empty exchange if there is none."""

    exchange: str = ""
    facts: tuple[FactEntry, ...] = ()


# --- to home ---


class HostReady(msgspec.Struct, frozen=True, omit_defaults=True, tag="ready"):
    """The host can run cases; otherwise `fault` is why it cannot."""

    fault: FaultMessage | None = None


class CaseEnded(msgspec.Struct, frozen=True, omit_defaults=True, tag="ended"):
    """A case has ended. Its result is encoded as a fact of the run; `broken` is the internal error if there is no
    result."""

    n: int
    done: bytes = b""
    broken: str = ""


class RecordEntries(msgspec.Struct, frozen=True, tag="recorded"):
    entries: tuple[KeptEntry, ...]


class CostSpent(msgspec.Struct, frozen=True, tag="spent"):
    """A cost in dollars; None if it is not known."""

    cost: float | None


class RequestReleased(msgspec.Struct, frozen=True, tag="released"):
    """The request that question `n` admitted has been sent, or never will be."""

    n: int


class RequestCounted(msgspec.Struct, frozen=True, tag="counted"):
    n: int
    provider: str
    model: str
    tokens: int


class Settled(msgspec.Struct, frozen=True, tag="settled"):
    n: int
    tokens: int


class Uncounted(msgspec.Struct, frozen=True, tag="uncounted"):
    n: int


class Observed(msgspec.Struct, frozen=True, tag="observed"):
    """Rate limit headers of a response."""

    provider: str
    model: str
    headers: dict[str, str]


class Learned(msgspec.Struct, frozen=True, tag="learned"):
    """A provider's token count for an estimated request."""

    provider: str
    model: str
    raw: Estimate
    usage: Usage
    tools: bool
    media: bool = False
    window: int | None = None


class Keep(msgspec.Struct, frozen=True, tag="keep"):
    """Remember that this exchange answered the request."""

    target: str
    key: str
    exchange: str


class HostQuestion(msgspec.Struct, frozen=True, tag="ask"):
    """A question; the answer carries the same number."""

    n: int
    question: Question


class HostLeft(msgspec.Struct, frozen=True, tag="left"):
    """Everything has ended; this is the host's last message."""


Counting: TypeAlias = RequestReleased | RequestCounted | Settled | Uncounted | Observed
"""Messages of a host about the account's limits."""

Business: TypeAlias = RecordEntries | CostSpent | Counting | Learned | Keep | HostQuestion
"""Messages of a host that are not about its cases."""

ToHome: TypeAlias = HostReady | CaseEnded | HostLeft | Business

Value = TypeVar("Value")

MOST_AT_ONCE = 8 << 20
"""The size of a batch in bytes; further messages go into the next batch."""

_TO_HOST: "msgspec.json.Decoder[ToHost]" = msgspec.json.Decoder(ToHost)
_TO_HOME: "msgspec.json.Decoder[ToHome]" = msgspec.json.Decoder(ToHome)
_BATCH = msgspec.msgpack.Decoder(tuple[bytes, ...])
_SAME_VERSION = "Check that both are the same version of Sightline."


pack = write
"""Encodes a message or the value of an answer."""


def batch(messages: Iterable[bytes]) -> bytes:
    return msgspec.msgpack.encode(tuple(messages))


class Outbox:
    """Messages to the other side, which arrive in the order in which they were put here."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []
        self._news = asyncio.Event()

    def put(self, message: ToHome | ToHost) -> None:
        self._waiting.append(pack(message))
        self._news.set()

    async def next(self) -> bytes:
        """The next batch, as soon as there is a message."""
        await self._news.wait()
        size = count = 0
        while count < len(self._waiting) and (not count or size < MOST_AT_ONCE):
            size += len(self._waiting[count])
            count += 1
        sending, self._waiting = self._waiting[:count], self._waiting[count:]
        if not self._waiting:
            self._news.clear()
        return batch(sending)


def for_host(data: bytes) -> Sequence[ToHost]:
    return [_read(each, _TO_HOST, ToHost) for each in _BATCH.decode(data)]


def for_home(data: bytes) -> Sequence[ToHome]:
    return [_read(each, _TO_HOME, ToHome) for each in _BATCH.decode(data)]


def value_of(data: bytes, form: type[Value]) -> Value:
    return _read(data, msgspec.json.Decoder(form), form)


def _read(data: bytes, decoder: "msgspec.json.Decoder[Value]", form: object) -> Value:
    try:
        return read_as(data, decoder, form)
    except MISFIT as error:
        raise Fault(Code.CONFIG, f"a host is not understood: {error}", hint=_SAME_VERSION) from None


LARGEST = 256 << 20
"""The most bytes of files that are sent to a cluster."""

_PREFIX = "sightline-host-"
_OWNER = "owner"
_LONGEST_NAME = 240
_LEFT_OUT = frozenset({"__pycache__", "node_modules", "venv"})


class PackedFile(msgspec.Struct, frozen=True, array_like=True):
    """A file below the root. `runs` means it is executable."""

    path: str
    data: bytes
    runs: bool = False


def pack_files(files: SuiteFiles, began: EvalBegan, others: Sequence[str] = ()) -> bytes:
    """Pack the files for the hosts of a run. `others` are further files and folders."""
    paths = dict.fromkeys(_paths(files, began, others))
    found: list[PackedFile] = []
    size = 0
    for path in paths:
        place = files.path(path)
        if place is None or not place.is_file():
            continue
        size += place.stat().st_size
        if size > LARGEST:
            message = f"the files for the cluster are more than {LARGEST >> 20} MB; one of them is {path}"
            raise Fault(Code.USAGE, message, hint="Put the suite into a folder with only what its cases need.")
        data = files.read(path)
        if data is not None:
            found.append(PackedFile(path, data, bool(place.stat().st_mode & 0o100)))
    return zlib.compress(msgspec.msgpack.encode(found), 1)


def unpack(bundle: bytes, folder: Path) -> None:
    """Write the files below a folder."""
    for file in msgspec.msgpack.decode(zlib.decompress(bundle), type=list[PackedFile]):
        place = (folder / file.path).resolve()
        if folder.resolve() not in place.parents:
            raise Fault(Code.CONFIG, f"{file.path} is not below the folder", hint=_SAME_VERSION)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.data)
        place.chmod(0o700 if file.runs else 0o600)


def host_folder(process: str, is_alive: Callable[[str], bool]) -> Path:
    """Make a folder for the host `process`. Folders left by killed processes of this machine are removed."""
    machine = process.partition(":")[0]
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            owner = (left / _OWNER).read_text()
        except OSError:
            continue  # another user's, or just created
        if owner.partition(":")[0] == machine and not is_alive(owner):
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    (folder / _OWNER).write_text(process)
    return folder


def _paths(files: SuiteFiles, began: EvalBegan, others: Sequence[str]) -> Iterator[str]:
    suite = began.suite
    for case in suite.cases:
        yield from files_of(case)
        for spec in case.all_graders:
            yield from _files_in_words(files, _words_of(spec.config), suite.file)
    for target in began.targets:
        yield from _of_target(files, target)
    for path in (folder_of(suite.file), *others):
        yield from _below(files, path)


def _of_target(files: SuiteFiles, target: TargetSpec) -> Iterator[str]:
    """The files named by a command, and the folder it runs in, unless that is the root, which would be too large."""
    if target.cli is None:
        return
    folder = join_path(target.cli.cwd, ".") if target.cli.cwd else ""
    if folder:
        yield from _below(files, folder)
    commands = (target.cli.command, target.cli.healthcheck_command)
    words = [
        word for command in commands for word in (_split_command(command) if isinstance(command, str) else command)
    ]
    for word in filter(_is_name, words):
        yield from _below(files, join_path(folder or "", word) or "", is_named=True)


def _split_command(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # the shell may still accept it
        return command.split()


def _files_in_words(files: SuiteFiles, words: Iterator[str], suite: str) -> Iterator[str]:
    for word in dict.fromkeys(each.partition(":")[0] for text in words for each in text.split()):
        found = files.find(word, suite) if "." in word and _is_name(word) else None
        if found is not None:
            yield found


def _is_name(word: str) -> bool:
    """Whether a file can have this name; longer words are texts."""
    return len(word.encode("utf-8", "surrogatepass")) <= _LONGEST_NAME


def _words_of(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _words_of(each)
    elif isinstance(value, list):
        for each in value:
            yield from _words_of(each)


def _below(files: SuiteFiles, path: str, *, is_named: bool = False) -> Iterator[str]:
    """A file, or all files of a folder; nothing if the path is neither. An empty path is the root."""
    if is_named and path in ("", "."):
        return
    place = files.path(path)
    if place is None:
        return
    if place.is_file():
        yield path
        return
    for base, folders, names in os.walk(place):
        folders[:] = sorted(each for each in folders if not each.startswith(".") and each not in _LEFT_OUT)
        here = Path(base)
        for name in sorted(names):
            if not name.startswith("."):
                yield (here / name).relative_to(files.root).as_posix()
