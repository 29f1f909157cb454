"""Packs the files that hosts need at home and unpacks them on a host.

The bundle holds the whole folder of the suite, and whatever cases, graders, targets and toolsets name below the root.
Hidden files and generated folders are left out: the former may hold keys, the latter are large.
"""

import os
import shlex
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from sightline.errors import Code, Fault
from sightline.evals.core.reading.files import files_of, folder_of, join_path
from sightline.evals.core.run_state import EvalBegan
from sightline.evals.core.suite import GraderSpec
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.suite_files import SuiteFiles
from sightline.model.json import Json

LARGEST = 256 << 20
"""Bytes of files that are sent to a cluster."""

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
            raise Fault(Code.CONFIG, f"{file.path} is not below the folder", hint="Is it the same Sightline?")
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
        for spec in (*case.graders, *(each for turn in case.turns for each in turn.graders)):
            yield from _files_in_words(files, _words_of(spec), suite.file)
    for target in began.targets:
        yield from _of_target(files, target)
    for path in (folder_of(suite.file), *others):
        yield from _below(files, path)


def _of_target(files: SuiteFiles, target: TargetSpec) -> Iterator[str]:
    """The files named by a command, and the folder it runs in, unless that is the root: it would be too much."""
    if target.cli is None:
        return
    folder = join_path(target.cli.cwd, ".") if target.cli.cwd else ""
    if folder:
        yield from _below(files, folder)
    commands = (target.cli.command, target.cli.healthcheck_command)
    words = [
        word for command in commands for word in (_split_command(command) if isinstance(command, str) else command)
    ]
    for word in words:
        yield from _below(files, join_path(folder or "", word) or "", is_named=True)


def _split_command(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # the shell may still accept it
        return command.split()


def _files_in_words(files: SuiteFiles, words: Iterator[str], suite: str) -> Iterator[str]:
    for word in dict.fromkeys(each.partition(":")[0] for text in words for each in text.split()):
        found = files.find(word, suite) if "." in word and len(word) <= _LONGEST_NAME else None
        if found is not None:
            yield found


def _words_of(value: GraderSpec | Json) -> Iterator[str]:
    if isinstance(value, GraderSpec):
        value = value.config
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
