"""Cases and values written into the files of suites, so that everything else in them stays as it was."""

import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sightline.catalog.problem import Path as DocumentPath
from sightline.catalog.problem import quoted
from sightline.engine.evaluating.suite_files import SuiteFiles
from sightline.engine.evaluating.suite_reading import read_text, sound
from sightline.errors import Code, Fault
from sightline.evals.making.writing import MadeFile
from sightline.evals.place import Problem
from sightline.evals.reading.need import Need
from sightline.evals.reading.node import Node
from sightline.evals.reading.paths import folder_of, joined, refusal_of
from sightline.evals.reading.saving import appended, case_path, saved
from sightline.evals.reading.yaml_text import read_yaml
from sightline.evals.suite import Case
from sightline.model.json import Json, JsonObject

ENDINGS = (".yaml", ".yml", ".jsonl")


@dataclass(frozen=True, slots=True)
class Written:
    """What was written: the file, its new hash, and the ids of its cases that are new or changed."""

    file: str
    sha256: str
    cases: tuple[str, ...]


class SuiteWriter:
    """Writes below one folder. What a suite would not be read back from is not written."""

    def __init__(self, files: SuiteFiles, environment: Mapping[str, str]) -> None:
        self._files = files
        self._environment = environment

    def append(self, file: str, text: str, beside: Sequence[MadeFile] = ()) -> Written:
        """The cases of a text at the end of a suite, which is begun if it is not there; `beside` are files that they
        name, by their path from the suite."""
        self._check(file)
        cases = _cases_of(text, file)
        others = self._beside(file, beside)
        before = self._files.read(file)
        data = text.encode() if before is None else before
        if before is not None:
            for case in cases:
                name = case.get("id")
                if isinstance(name, str) and case_path(before, file, name) is not None:
                    hint = "Give it another id."
                    raise Fault(Code.USAGE, f"{file} has a case {quoted(name)} already", hint=hint, status=409)
                data = appended(data, file, case)
        sound(read_text(_Overlaid(self._files, others), file, data, self._environment), file)
        for path, content in others.items():
            self._write(path, content)
        self._write(file, data)
        return Written(file, _hash(data), tuple(str(case.get("id", "")) for case in cases))

    def set(self, file: str, case: str, path: DocumentPath, value: Json, sha256: str) -> Written:
        """One value of a case. The file must be the one of this hash, or somebody else's change would be lost."""
        self._check(file)
        data = self._files.read(file)
        if data is None or _hash(data) != sha256:
            hint = "Look at it again, and change what is there now."
            raise Fault(Code.USAGE, f"{file} changed since it was looked at", hint=hint, status=409)
        where = case_path(data, file, case)
        if where is None:
            hint = "It stands in another file, or has another id there."
            raise Fault(Code.USAGE, f"{file} has no case {quoted(case)}", hint=hint, status=409)
        changed = saved(data, file, (*where, *path), value)
        sound(read_text(self._files, file, changed, self._environment), file)
        self._write(file, changed)
        return Written(file, _hash(changed), (case,))

    def source(self, case: Case) -> tuple[str, str, Json]:
        """Where a case stands, as far as it can be changed there: its file, the file's hash, and the case as it is
        written."""
        file = case.place.file
        data = self._files.read(file) if file else None
        if data is None or not file.lower().endswith(ENDINGS):
            return "", "", None
        where = case_path(data, file, case.id)
        return ("", "", None) if where is None else (file, _hash(data), _at(data, file, where))

    def _check(self, file: str) -> None:
        refusal = refusal_of(file)
        if refusal is None and not file.lower().endswith(ENDINGS):
            refusal = f"{quoted(file)} is no file of a suite", f"Its name ends in {', '.join(ENDINGS)}."
        if refusal is None and joined("", file) is None:
            refusal = f"{quoted(file)} leads out of the folder", "Name a file in it."
        if refusal is not None or self._files.path(file) is None:
            message, hint = refusal or (f"{quoted(file)} leads out of the folder", "Name a file in it.")
            raise Fault(Code.USAGE, message, hint=hint, status=422)

    def _beside(self, file: str, made: Sequence[MadeFile]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for each in made:
            path = None if refusal_of(each.path) else joined(folder_of(file), each.path)
            if not path or self._files.path(path) is None:
                message = f"{quoted(each.path)} is no place for a file of the suite"
                raise Fault(Code.USAGE, message, hint="Name it relative to the suite.", status=422)
            there = self._files.read(path)
            if there is not None and there != each.data:
                message = f"there is another file {quoted(path)} already"
                raise Fault(Code.USAGE, message, hint="Give the case another name.", status=409)
            found[path] = each.data
        return found

    def _write(self, path: str, data: bytes) -> None:
        place = self._files.path(path)
        assert place is not None  # it was looked at before
        try:
            replace_file(place, data)
        except OSError as error:
            hint = "Check who may write there, and the space left."
            raise Fault(Code.CONFIG, f"{path}: {error.strerror}", hint=hint) from None


def replace_file(path: Path, data: bytes) -> None:
    """The file with these bytes, or as it was: never half of them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    other = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        other.chmod(mode)
        other.replace(path)
    except OSError:
        other.unlink(missing_ok=True)
        raise


@dataclass(frozen=True, slots=True)
class _Overlaid:
    """Files with some that are not written yet."""

    files: SuiteFiles
    others: Mapping[str, bytes]

    def bring(self, need: Need) -> bytes | None:
        """What a reader of suites asks for."""
        if need.wanted != "listing" and need.path in self.others:
            return self.others[need.path]
        return self.files.bring(need)


def _cases_of(text: str, file: str) -> list[JsonObject]:
    tree = read_yaml(text.encode(), file)
    if isinstance(tree, Problem):
        raise Fault(Code.USAGE, f"{tree.place}: {tree.message}", hint=tree.suggestion, status=422)
    tests = tree.get("tests") or tree
    cases = [each.json for each in tests.items]
    if not cases or not all(isinstance(each, dict) for each in cases):
        hint = "Write tests: and a list of cases."
        raise Fault(Code.USAGE, "there is no case in the text", hint=hint, status=422)
    return [each for each in cases if isinstance(each, dict)]


def _at(data: bytes, file: str, path: DocumentPath) -> Json:
    if file.lower().endswith(".jsonl"):
        line = data.split(b"\n")[int(path[0])]
        tree = read_yaml(line, file)
        return None if isinstance(tree, Problem) else tree.json
    found = read_yaml(data, file)
    for step in path:
        assert isinstance(found, Node)
        found = found.items[step] if isinstance(step, int) else found.members[step]
    return None if isinstance(found, Problem) else found.json


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
