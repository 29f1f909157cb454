"""The suites of the configured folder: list them, make cases from the record, and write changes of the page into
them."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from sightline.catalog.problem import Path
from sightline.errors import Code, Fault
from sightline.evals.api.shapes import (
    CaseSaveWanted,
    CaseUndoWanted,
    ChangeShown,
    MadeShown,
    MakeWanted,
    SavedShown,
    SaveWanted,
    SuiteShown,
    SuitesShown,
)
from sightline.evals.core.making.case import MadeCase
from sightline.evals.core.reading.files import Need, join_path, refusal_of
from sightline.evals.core.run_state import EvalState
from sightline.evals.core.suite import Case
from sightline.evals.service.evaluation import Evaluation
from sightline.evals.service.suite_files import conversation, make_masked_case, suite_in, turns_in
from sightline.evals.service.suite_writing import ENDINGS, SuiteWrite, SuiteWriter
from sightline.model.json import Json
from sightline.store.store import Store

_AROUND = 3


def diff_lines(before: bytes, after: bytes) -> ChangeShown:
    """All lines from the first to the last difference, on both sides, with some context."""
    old, new = (data.decode("utf-8", "replace").splitlines(keepends=True) for data in (before, after))
    most = min(len(old), len(new))
    same = next((place for place in range(most) if old[place] != new[place]), most)
    behind = next((place for place in range(most - same) if old[-1 - place] != new[-1 - place]), most - same)
    first, left = max(same - _AROUND, 0), max(behind - _AROUND, 0)
    return ChangeShown(first + 1, "".join(old[first : len(old) - left]), "".join(new[first : len(new) - left]))


_MOST_LISTED = 500
_MOST_UNDOABLE = 32


class Suites:
    """`folder` is below the evaluation's root; nothing is written outside of it. `environment` is what suites may refer
    to, `secrets` are values that no case may contain."""

    def __init__(
        self,
        evaluation: Evaluation,
        store: Store,
        folder: str,
        *,
        environment: Mapping[str, str],
        secrets: Sequence[str],
        now: Callable[[], float],
    ) -> None:
        self._evaluation = evaluation
        self._store = store
        self._folder = folder
        self._environment = environment
        self._secrets = tuple(secrets)
        self._now = now
        self._writer = SuiteWriter(evaluation.files, environment)
        self._writing = asyncio.Lock()
        self._undoable: dict[str, tuple[str, bytes]] = {}

    async def list_suites(self) -> SuitesShown:
        """List all suites; each is parsed again."""
        return SuitesShown(self._folder, tuple(await asyncio.to_thread(self._read)))

    async def make(self, body: MakeWanted) -> MadeShown:
        """Propose a case made of exchanges."""
        recorded = await conversation(self._store, body.exchanges, now=self._now())
        made = make_masked_case(recorded, self._name(body.name, body.exchanges), self._secrets, body.from_turn)
        words = made.case.get("vars")
        return MadeShown(
            name=str(made.case["id"]),
            yaml=made.text,
            case=made.case,
            files=tuple(each.path for each in made.files),
            placeholders={name: str(value) for name, value in words.items()} if isinstance(words, dict) else {},
            left=made.left,
            turns=turns_in(recorded),
            suites=tuple(self._files()),
        )

    async def save(self, body: SaveWanted) -> SavedShown:
        """Append a case to a suite, and write the files of the exchanges that its text still names."""
        file = self._path_below(body.file)
        made: MadeCase | None = None
        if body.exchanges:
            recorded = await conversation(self._store, body.exchanges, now=self._now())
            made = make_masked_case(recorded, self._name(body.name, body.exchanges), self._secrets, body.from_turn)
        beside = [each for each in (() if made is None else made.files) if each.path in body.yaml]
        async with self._writing:
            return _show_write(await asyncio.to_thread(self._writer.append, file, body.yaml, beside))

    async def change(self, run: str, body: CaseSaveWanted) -> SavedShown:
        standing = (await self._evaluation.show(run)).standing
        case = standing.cases.get(body.case)
        if case is None:
            hint = "GET /api/evals/{run} has the names of all."
            raise Fault(Code.USAGE, f"the run has no case {body.case!r}", hint=hint, status=404)
        return await self.write_values(standing, case, [(body.path, body.value)], body.sha256, is_dry=body.dry)

    async def write_values(
        self, standing: EvalState, case: Case, changes: Sequence[tuple[Path, Json]], sha256: str, *, is_dry: bool
    ) -> SavedShown:
        """Write values of a case into its file, or only compute what would change."""
        file = case.place.file
        if not self._is_ours(file):
            message = f"{file} is not below the folder {self._folder!r}"
            raise Fault(Code.USAGE, message, hint="Set folder in [evals] to where the suites are.", status=409)
        suite = standing.began.suite
        known = sha256 or (suite.sha256 if file == suite.file else "")
        async with self._writing:
            before, after = await asyncio.to_thread(self._writer.preview_change, file, case.id, changes, known)
            change = diff_lines(before, after)
            if is_dry:
                return SavedShown(file, known, (case.id,), change)
            written = await asyncio.to_thread(self._writer.replace, file, after, known, (case.id,))
        self._undoable[written.sha256] = (file, before)
        while len(self._undoable) > _MOST_UNDOABLE:
            del self._undoable[next(iter(self._undoable))]
        return SavedShown(written.file, written.sha256, written.cases, change)

    async def undo(self, _run: str, body: CaseUndoWanted) -> SavedShown:
        """Undo the change that gave the file this hash; the file is byte for byte as before."""
        file, before = self._undoable.get(body.sha256, ("", b""))
        if not file:
            message = "this change cannot be taken back any more"
            raise Fault(Code.USAGE, message, hint="Change the value back.", status=409)
        async with self._writing:
            written = await asyncio.to_thread(self._writer.replace, file, before, body.sha256, (body.case,))
        del self._undoable[body.sha256]
        return _show_write(written)

    def source(self, case: Case) -> tuple[str, Json]:
        """The hash of a case's file and the case as written there; empty if it cannot be written back."""
        if not self._is_ours(case.place.file):
            return "", None
        _, sha256, written = self._writer.source(case)
        return sha256, written

    def _files(self) -> list[str]:
        listing = self._evaluation.files.bring(Need(self._folder, "listing")) or b""
        names = (name for name in listing.decode("utf-8", "replace").splitlines() if name.lower().endswith(ENDINGS))
        return [path for name in names if (path := join_path(self._folder, name))][:_MOST_LISTED]

    def _read(self) -> list[SuiteShown]:
        found: list[SuiteShown] = []
        for file in self._files():
            reading = suite_in(self._evaluation.files, file, self._environment)
            name = file if reading.suite is None else reading.suite.name
            cases = None if reading.suite is None else len(reading.suite.cases)
            found.append(SuiteShown(file, name, cases, reading.problems))
        return found

    def _path_below(self, file: str) -> str:
        """The path of a file below the folder, given with or without the folder's name."""
        path = file if self._is_ours(file) else join_path(self._folder, file)
        if refusal_of(file) is not None or not path or not self._is_ours(path):
            message = f"{file!r} is no file below the folder {self._folder!r}"
            raise Fault(Code.USAGE, message, hint="Name it relative to the folder.", status=422)
        return path

    def _is_ours(self, file: str) -> bool:
        path = join_path("", file)
        return path is not None and (not self._folder or path.startswith(f"{self._folder}/"))

    def _name(self, name: str, exchanges: Sequence[str]) -> str:
        return name or f"recorded-{exchanges[-1].removeprefix('x_')[:12]}"


def _show_write(written: SuiteWrite) -> SavedShown:
    return SavedShown(written.file, written.sha256, written.cases)
