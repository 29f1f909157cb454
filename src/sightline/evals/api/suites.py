"""The suites of the configured folder: list them, make cases from the record, and write changes into them that were
made on the page or in a held request."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sightline.catalog.problem import Path
from sightline.errors import Code, Fault
from sightline.evals.api import shapes
from sightline.evals.core.making.case import CaseExchange, MadeCase
from sightline.evals.core.reading.files import Need, SuiteReading, join_path, refusal_of
from sightline.evals.core.run_state import EvalBegan, EvalState, RunOptions, budget_of, select_cases
from sightline.evals.core.statistics.intervals import Draw
from sightline.evals.core.suite import Case, Suite, SuitePlace, SuiteProblem
from sightline.evals.service.evaluation import Evaluation
from sightline.evals.service.suite_files import (
    ENDINGS,
    SuiteWriter,
    conversation,
    make_masked_case,
    require_suite,
    suite_in,
    turns_in,
)
from sightline.evals.service.suite_targets import KnownTargets, SuiteTargets
from sightline.exchange.recording.exchange_record import RecordedExchange, find_exchange, load_exchange, read_request
from sightline.model.exchange import Edited
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Text
from sightline.model.request import Message, of_message
from sightline.store.store import Store
from sightline.web.bodies import Query
from sightline.wire.cache import BoundedCache
from sightline.wire.jsontext import encode


@dataclass(frozen=True, slots=True)
class EvalParts:
    """What the calls need. `folder` contains the suites, below the evaluation's root; `drawing` makes a reproducible
    random source; `environment` has the variables that suites may refer to; `secrets` are values that no case may
    contain. `grown` returns the evaluation that reruns a suite whose targets have providers of their own, `grown_for`
    the one for targets that were just picked, `targets` those that a suite can name, and `judge` is the configured
    one."""

    evaluation: Evaluation
    store: Store
    folder: str
    drawing: Callable[[], Draw]
    now: Callable[[], float]
    environment: Mapping[str, str]
    secrets: Sequence[str]
    grown: Callable[[EvalBegan], Evaluation]
    targets: Callable[[str], KnownTargets]
    grown_for: Callable[[SuiteTargets], Evaluation]
    judge: str = ""


_INPUTS = ("input", "input_messages")


async def find_edit(store: Store, exchanges: Sequence[str], now: float) -> RecordedExchange | None:
    """The last of these exchanges that a user edited, if the record still has it."""
    for each in reversed(exchanges):
        try:
            summary = await find_exchange(store, each, now=now)
            found = await load_exchange(store, summary, needs_bodies=False)
            if any(isinstance(entry.fact, Edited) for entry in found.facts):
                return await load_exchange(store, summary)
        except Fault:
            continue  # the exchange was deleted from the record, along with the edit
    return None


def messages_before_edit(edited: RecordedExchange, messages: Sequence[Message]) -> Sequence[Message]:
    """The messages of a request before the edit. `messages` are the messages of the result, which are those that were
    sent; the record has both versions, unless the edit was in a later round."""
    before = read_request(edited.spoken, edited.body, edited.model).messages
    return before if [each.role for each in before] == [each.role for each in messages] else messages


def changes_of(source: Json, original: Sequence[Message], sent: Sequence[Message]) -> list[tuple[Path, Json]]:
    """The values to change in a case so that it asks what was sent after the edit. Raises a fault if there are none."""
    places = _places(source, original)
    if [each.role for each in original] != [each.role for each in sent]:
        raise _unclear("messages were added or removed")
    found: list[tuple[Path, str]] = []
    for one, other, place in zip(original, sent, places, strict=True):
        before, after = of_message(one), of_message(other)
        if before != after:
            found += _texts(before, after, place)
    if not found:
        raise _unclear("the messages are unchanged")
    return [(path, _restore_variables(value, source)) for path, value in found]


def _places(source: Json, messages: Sequence[Message]) -> list[tuple[Path, Json]]:
    """The path and value of each message in the case; an empty path and None for messages from elsewhere."""
    nowhere: list[tuple[Path, Json]] = [((), None)] * len(messages)
    key = next((name for name in _INPUTS if isinstance(source, dict) and name in source), "")
    written = source[key] if key and isinstance(source, dict) else None
    if isinstance(written, str):
        # The suite's own messages come before those of the case.
        return [*nowhere[1:], ((key,), written)] if messages else []
    if not isinstance(written, list) or len(written) > len(messages):
        return nowhere
    own = [
        ((key, index, "content"), (each.get("content") if isinstance(each, dict) else None))
        for index, each in enumerate(written)
    ]
    return [*nowhere[len(own) :], *own]


def _restore_variables(text: str, source: Json) -> Json:
    """Replace the values of the case's variables in a text by their placeholders again."""
    variables = source.get("vars") if isinstance(source, dict) else None
    written = encode(source).decode("utf-8", "replace")
    for name, value in (variables if isinstance(variables, dict) else {}).items():
        used = re.search(r"\{\{\s*" + re.escape(name) + r"\s*\}\}", written)
        if used is not None and isinstance(value, str) and value:
            text = text.replace(value, used.group())
    return text


def _texts(before: Message, after: Message, place: tuple[Path, Json]) -> list[tuple[Path, str]]:
    path, content = place
    pairs = list(zip(before.parts, after.parts, strict=False))
    if len(before.parts) != len(after.parts) or any(type(one) is not type(other) for one, other in pairs):
        raise _unclear("parts of a message were added or removed")
    if isinstance(content, str) and len(pairs) == 1 and isinstance(pairs[0][1], Text):
        return [(path, pairs[0][1].text)]
    if isinstance(content, list) and len(content) == len(pairs):
        return _parts(pairs, path, content)
    raise _unclear("it is not one text in the case")


def _parts(pairs: Sequence[tuple[object, object]], path: Path, content: Sequence[Json]) -> list[tuple[Path, str]]:
    found: list[tuple[Path, str]] = []
    for index, (one, other) in enumerate(pairs):
        if one == other:
            continue
        written = content[index]
        if not isinstance(other, Text) or not isinstance(written, dict) or _text_key(written) is None:
            raise _unclear("more than text was changed")
        found.append(((*path, index, _text_key(written) or ""), other.text))
    return found


def _text_key(part: JsonObject) -> str | None:
    """The key of the text of a part; None if the part is not text."""
    return next((key for key in ("value", "text") if part.get("type") == "text" and key in part), None)


def _unclear(why: str) -> Fault:
    hint = "Open the request and make a case of it, or change the file by hand."
    return Fault(Code.USAGE, f"what was changed cannot be written into the case: {why}", hint=hint, status=409)


_AROUND = 3


def diff_lines(before: bytes, after: bytes) -> shapes.ChangeShown:
    """All lines from the first to the last difference, on both sides, with some context."""
    old, new = (data.decode("utf-8", "replace").splitlines(keepends=True) for data in (before, after))
    most = min(len(old), len(new))
    same = next((place for place in range(most) if old[place] != new[place]), most)
    behind = next((place for place in range(most - same) if old[-1 - place] != new[-1 - place]), most - same)
    first, left = max(same - _AROUND, 0), max(behind - _AROUND, 0)
    return shapes.ChangeShown(first + 1, "".join(old[first : len(old) - left]), "".join(new[first : len(new) - left]))


_MOST_LISTED = 500
_MOST_UNDOABLE = 32


class Suites:
    """Lists, makes and changes suites. Nothing is written outside the folder of the suites."""

    def __init__(self, parts: EvalParts) -> None:
        self._parts = parts
        self._evaluation = parts.evaluation
        self._folder = parts.folder
        self._writer = SuiteWriter(parts.evaluation.files, parts.environment)
        self._writing = asyncio.Lock()
        self._undoable: BoundedCache[str, tuple[str, bytes]] = BoundedCache(_MOST_UNDOABLE)

    async def list_suites(self) -> shapes.SuitesShown:
        """List all suites; each is parsed again."""
        return shapes.SuitesShown(self._folder, tuple(await asyncio.to_thread(self._read)))

    async def open(self, query: Query) -> shapes.SuiteOpened:
        """One suite as text, and the targets that can be picked for it."""
        file = self._path_below(query.text("file"))
        text, sha256 = await asyncio.to_thread(self._writer.read, file)
        reading = await asyncio.to_thread(suite_in, self._evaluation.files, file, self._parts.environment)
        names: tuple[str, ...] = ()
        usual: tuple[str, ...] = ()
        problems = reading.problems
        if reading.suite is not None:
            try:
                known = self._parts.targets(file)
                known.describe(reading.suite)
                names = known.names
                usual = known.answering(reading.suite, ()).usual
            except Fault as fault:  # a target that the suite names is missing, which picking others fixes
                place = SuitePlace(file)
                problem = SuiteProblem(
                    place=place, path="execution", message=fault.message, suggestion=fault.hint, severity="warning"
                )
                problems = (*problems, problem)
        return shapes.SuiteOpened(file, text, sha256, _count(reading), problems, names, usual)

    async def write(self, body: shapes.SuiteWanted) -> shapes.SuiteChecked:
        """Write a whole suite, or only check it. A suite with errors is not written."""
        file = self._path_below(body.file)
        async with self._writing:
            reading, sha256 = await asyncio.to_thread(
                self._writer.write_text, file, body.yaml, body.sha256, is_dry=body.dry
            )
        return shapes.SuiteChecked(file, sha256, _count(reading), reading.problems)

    async def plan(self, body: shapes.RunWanted) -> tuple[Evaluation, Suite, SuiteTargets, RunOptions]:
        """What is needed to run a suite. Raises a fault if something is wrong with it, or with its targets."""
        file = self._path_below(body.file)
        reading = await asyncio.to_thread(suite_in, self._evaluation.files, file, self._parts.environment)
        suite, judge = require_suite(reading, file), body.judge or self._parts.judge
        try:
            answering = self._parts.targets(file).answering(suite, body.targets, judge)
            options = RunOptions(targets=answering.usual, trials=body.trials, cases=body.cases, judge=judge)
            select_cases(suite, options)
            if budget_of(suite, options) is not None:
                answering.check_prices()
        except Fault as fault:
            raise Fault(fault.code, fault.message, hint=fault.hint, status=422) from None
        return self._parts.grown_for(answering), suite, answering, options

    async def make(self, body: shapes.MakeWanted) -> shapes.MadeShown:
        """Propose a case made from exchanges."""
        recorded, made = await self._make(body)
        words = made.case.get("vars")
        return shapes.MadeShown(
            name=str(made.case["id"]),
            yaml=made.text,
            case=made.case,
            files=tuple(each.path for each in made.files),
            placeholders={name: str(value) for name, value in words.items()} if isinstance(words, dict) else {},
            left=made.left,
            turns=turns_in(recorded),
            suites=tuple(self._files()),
        )

    async def save(self, body: shapes.SaveWanted) -> shapes.SavedShown:
        """Append a case to a suite, and write the files of the exchanges that its text still names."""
        file = self._path_below(body.file)
        files = (await self._make(body))[1].files if body.exchanges else ()
        beside = [each for each in files if each.path in body.yaml]
        async with self._writing:
            written = await asyncio.to_thread(self._writer.append, file, body.yaml, beside)
        return shapes.SavedShown(written.file, written.sha256, written.cases)

    async def change(self, run: str, body: shapes.CaseSaveWanted) -> shapes.SavedShown:
        standing = (await self._evaluation.show(run)).standing
        case = standing.cases.get(body.case)
        if case is None:
            hint = "GET /api/evals/{run} has the names of all."
            raise Fault(Code.USAGE, f"the run has no case {body.case!r}", hint=hint, status=404)
        return await self.write_values(standing, case, [(body.path, body.value)], body.sha256, is_dry=body.dry)

    async def write_values(
        self, standing: EvalState, case: Case, changes: Sequence[tuple[Path, Json]], sha256: str, *, is_dry: bool
    ) -> shapes.SavedShown:
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
                return shapes.SavedShown(file, known, (case.id,), change)
            written = await asyncio.to_thread(self._writer.replace, file, after, known)
        self._undoable.put(written, (file, before))
        return shapes.SavedShown(file, written, (case.id,), change)

    async def undo(self, _run: str, body: shapes.CaseUndoWanted) -> shapes.SavedShown:
        """Undo the change that gave the file this hash; the file is byte for byte as before."""
        known = self._undoable.get(body.sha256)
        if known is None:
            message = "this change can no longer be undone"
            raise Fault(Code.USAGE, message, hint="Change the value back.", status=409)
        file, before = known
        async with self._writing:
            written = await asyncio.to_thread(self._writer.replace, file, before, body.sha256)
        self._undoable.pop(body.sha256)
        return shapes.SavedShown(file, written, (body.case,))

    def source(self, case: Case) -> tuple[str, Json]:
        """The hash of a case's file and the case as written there; empty if it cannot be written back."""
        return self._writer.source(case)[1:] if self._is_ours(case.place.file) else ("", None)

    def _files(self) -> list[str]:
        listing = self._evaluation.files.bring(Need(self._folder, "listing")) or b""
        names = (name for name in listing.decode("utf-8", "replace").splitlines() if name.lower().endswith(ENDINGS))
        return [path for name in names if (path := join_path(self._folder, name))][:_MOST_LISTED]

    def _read(self) -> list[shapes.SuiteShown]:
        found: list[shapes.SuiteShown] = []
        for file in self._files():
            reading = suite_in(self._evaluation.files, file, self._parts.environment)
            name = file if reading.suite is None else reading.suite.name
            found.append(shapes.SuiteShown(file, name, _count(reading), reading.problems))
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

    async def _make(self, body: shapes.MakeWanted | shapes.SaveWanted) -> tuple[tuple[CaseExchange, ...], MadeCase]:
        parts = self._parts
        recorded = await conversation(parts.store, body.exchanges, now=parts.now())
        name = body.name or f"recorded-{body.exchanges[-1].removeprefix('x_')[:12]}"
        contains = body.contains if isinstance(body, shapes.MakeWanted) else ""
        return recorded, make_masked_case(recorded, name, parts.secrets, body.from_turn, contains)


def _count(reading: SuiteReading) -> int | None:
    return None if reading.suite is None else len(reading.suite.cases)
