"""The calls below `/api/evals`, each with who answers it."""

import asyncio
import base64
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import unquote

import msgspec

from sightline.catalog.problem import Path
from sightline.chat.api.files import media
from sightline.chat.core.pair import ChatAnswer
from sightline.chat.service.blocks import Media, media_of
from sightline.errors import Code, Fault
from sightline.evals.api.bodies import AdoptWanted, CaseSaveWanted, CaseUndoWanted, MakeWanted, RerunWanted, SaveWanted
from sightline.evals.api.case_showing import CaseShowing, answer_shown, media_in, messages_shown
from sightline.evals.api.comparison import compare_runs, trend_of
from sightline.evals.api.figures import brief, whole
from sightline.evals.api.reruns import Reruns
from sightline.evals.api.shapes import CaseShown, CompareShown, EvalBrief, EvalShown, SavedShown, TrendPoint
from sightline.evals.api.suites import Suites
from sightline.evals.core.reading.files import files_of
from sightline.evals.core.result import SCHEME
from sightline.evals.core.run_state import EvalBegan
from sightline.evals.core.statistics.intervals import Draw
from sightline.evals.core.summary import TargetSummary, summarize
from sightline.evals.service.evaluation import Evaluation, RunSnapshot
from sightline.exchange.recording.exchange_record import RecordedExchange, find_exchange, load_exchange, read_request
from sightline.model.comparison import of_message
from sightline.model.exchange import Edited
from sightline.model.json import Json, JsonObject
from sightline.model.message import Message
from sightline.model.parts import Inline, Link, Text
from sightline.store.store import Store
from sightline.web.asgi import WebResponse
from sightline.web.bodies import Nothing, Query, read_body
from sightline.web.routes import ApiCall, Calls, Handler
from sightline.wire.jsontext import encode

_INPUTS = ("input", "input_messages")


class SentBack:
    """Looks into the record."""

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        self._store = store
        self._now = now

    async def find_edit(self, exchanges: Sequence[str]) -> RecordedExchange | None:
        """The last of these exchanges that a person changed, as far as the record still has it."""
        for each in reversed(exchanges):
            try:
                summary = await find_exchange(self._store, each, now=self._now())
                found = await load_exchange(self._store, summary, needs_bodies=False)
                if any(isinstance(noted.fact, Edited) for noted in found.facts):
                    return await load_exchange(self._store, summary)
            except Fault:
                continue  # it was forgotten, and so was what was changed in it
        return None


def messages_before_edit(edited: RecordedExchange, asked: Sequence[Message]) -> Sequence[Message]:
    """The messages of a request before a person changed it. What was `asked` by the result of the case is what was sent
    in the end; the record has both, unless it is the request of a later round."""
    before = read_request(edited.spoken, edited.body, edited.model).messages
    return before if [each.role for each in before] == [each.role for each in asked] else asked


def changes_of(source: Json, asked: Sequence[Message], sent: Sequence[Message]) -> list[tuple[Path, Json]]:
    """The values of a case that make it ask what was sent in place of what was asked; a fault where they are none."""
    places = _places(source, asked)
    if [each.role for each in asked] != [each.role for each in sent]:
        raise _unclear("messages were added or taken away")
    found: list[tuple[Path, str]] = []
    for one, other, place in zip(asked, sent, places, strict=True):
        before, after = of_message(one), of_message(other)
        if before != after:
            found += _texts(before, after, place)
    if not found:
        raise _unclear("the messages are as they were")
    return [(path, _restore_variables(value, source)) for path, value in found]


def _places(source: Json, asked: Sequence[Message]) -> list[tuple[Path, Json]]:
    """Where each message stands in the case and what stands there; nothing for one that comes from elsewhere."""
    nowhere: list[tuple[Path, Json]] = [((), None)] * len(asked)
    key = next((name for name in _INPUTS if isinstance(source, dict) and name in source), "")
    written = source[key] if key and isinstance(source, dict) else None
    if isinstance(written, str):
        # What the suite says once stands in front of what the case says.
        return [*nowhere[1:], ((key,), written)] if asked else []
    if not isinstance(written, list) or len(written) > len(asked):
        return nowhere
    own = [((key, index, "content"), _content(each)) for index, each in enumerate(written)]
    return [*nowhere[len(own) :], *own]


def _restore_variables(text: str, source: Json) -> Json:
    """The text with the case's variables in the place of what they stand for: it was filled in when it was asked."""
    variables = source.get("vars") if isinstance(source, dict) else None
    written = encode(source).decode("utf-8", "replace")
    for name, value in (variables if isinstance(variables, dict) else {}).items():
        used = re.search(r"\{\{\s*" + re.escape(name) + r"\s*\}\}", written)
        if used is not None and isinstance(value, str) and value:
            text = text.replace(value, used.group())
    return text


def _content(message: Json) -> Json:
    return message.get("content") if isinstance(message, dict) else None


def _texts(before: Message, after: Message, place: tuple[Path, Json]) -> list[tuple[Path, str]]:
    path, content = place
    pairs = list(zip(before.parts, after.parts, strict=False))
    if len(before.parts) != len(after.parts) or any(type(one) is not type(other) for one, other in pairs):
        raise _unclear("parts of a message were added or taken away")
    if isinstance(content, str) and len(pairs) == 1 and isinstance(pairs[0][1], Text):
        return [(path, pairs[0][1].text)]
    if isinstance(content, list) and len(content) == len(pairs):
        return _parts(pairs, path, content)
    raise _unclear("it does not stand in the case as one text")


def _parts(pairs: Sequence[tuple[object, object]], path: Path, content: Sequence[Json]) -> list[tuple[Path, str]]:
    found: list[tuple[Path, str]] = []
    for index, (one, other) in enumerate(pairs):
        if one == other:
            continue
        written = content[index]
        if not isinstance(other, Text) or not isinstance(written, dict) or _text_key(written) is None:
            raise _unclear("more than words was changed")
        found.append(((*path, index, _text_key(written) or ""), other.text))
    return found


def _text_key(part: JsonObject) -> str | None:
    """The key that holds the words of a part."""
    return next((key for key in ("value", "text") if part.get("type") == "text" and key in part), None)


def _unclear(why: str) -> Fault:
    hint = "Open the request and make a case of it, or change the file by hand."
    return Fault(Code.USAGE, f"what was changed cannot be written into the case: {why}", hint=hint, status=409)


class WholeMedia:
    """`read` gives the file at a path below the suites' folder, None where there is none."""

    def __init__(self, store: Store, read: Callable[[str], bytes | None], now: Callable[[], float]) -> None:
        self._store = store
        self._read = read
        self._now = now

    async def of(self, part: Media, exchanges: Sequence[str], files: Sequence[str]) -> Media:
        """The part with its bytes, from one of these exchanges or files; as it is where none of them has them."""
        source = part.source
        if not isinstance(source, Link) or not source.url.startswith(SCHEME):
            return part
        digest = source.url.removeprefix(SCHEME)
        for each in reversed(exchanges):
            for other in await self._media_of(each):
                if isinstance(other.source, Inline) and _digest(other.source.data) == digest:
                    return other
        for coded in self._base64_of(files):
            if _digest(coded) == digest:
                return msgspec.structs.replace(part, source=Inline(source.media_type or "", coded))
        return part

    async def _media_of(self, exchange: str) -> tuple[Media, ...]:
        """All that was sent and answered in an exchange; nothing where the record has it no more."""
        try:
            found = await load_exchange(self._store, await find_exchange(self._store, exchange, now=self._now()))
            said = (Message("assistant", found.reply().choice.parts),) if found.frames else ()
            return media_of(ChatAnswer(messages=(*found.request().messages, *said)))
        except Fault:
            return ()

    def _base64_of(self, files: Sequence[str]) -> Iterator[str]:
        for path in files:
            data = self._read(path)
            if data is not None:
                yield base64.b64encode(data).decode("ascii")


def _digest(coded: str) -> str:
    return hashlib.sha256(coded.encode("ascii", "replace")).hexdigest()


W = TypeVar("W", bound=msgspec.Struct)

MOST_RUNS = 500
MOST_BYTES = 4 << 20
"""Of what a call is told: a case is text, and reading YAML takes its time. Pictures are in files beside a suite."""

_USUAL = 50
_MOST_KNOWN = 512


@dataclass(frozen=True, slots=True)
class EvalParts:
    """What the calls are made of. `folder` is that of the suites, below the evaluation's own; `drawing` makes chance
    that is the same each time; `environment` is what suites may name; `secrets` are values that no case may hold.
    `grown` is who runs something again that began so: its targets may have providers that others do not know."""

    evaluation: Evaluation
    store: Store
    folder: str
    drawing: Callable[[], Draw]
    now: Callable[[], float]
    environment: Mapping[str, str]
    secrets: Sequence[str] = ()
    grown: Callable[[EvalBegan], Evaluation] | None = None


class EvalCalls:
    """Answers the calls."""

    def __init__(self, parts: EvalParts) -> None:
        self._evaluation = parts.evaluation
        self._drawing = parts.drawing
        self.reruns = Reruns(parts.evaluation, parts.environment, parts.grown)
        self.suites = Suites(
            parts.evaluation,
            parts.store,
            parts.folder,
            environment=parts.environment,
            secrets=parts.secrets,
            now=parts.now,
        )
        self._cases = CaseShowing(parts.evaluation, self.suites.source)
        self._back = SentBack(parts.store, parts.now)
        self._media = WholeMedia(parts.store, parts.evaluation.files.read, parts.now)
        self._known: dict[str, tuple[int, tuple[TargetSummary, ...]]] = {}

    async def list_runs(self, query: Query) -> list[EvalBrief]:
        """The newest runs."""
        limit = min(query.number("limit", _USUAL), MOST_RUNS)
        runs = await self._runs(limit, query.text("suite"))
        return [brief(shown, await self._summaries(shown)) for shown in runs]

    async def show_run(self, run: str) -> EvalShown:
        """One run."""
        shown = await self._evaluation.show(run)
        return whole(shown, await self._summaries(shown), is_here=self.reruns.is_here(run))

    async def case(self, run: str, query: Query) -> CaseShown:
        """One try of a case."""
        shown = await self._evaluation.show(run)
        targets = [spec.name for spec in shown.standing.began.targets]
        target = query.text("target") or targets[0]
        key = (query.text("case"), target, query.number("trial", 0))
        # A suite's file is read for it, which may take a while.
        told = await asyncio.to_thread(self._cases.show_try, shown, key)
        edited = await self._back.find_edit(told.exchanges)
        if edited is None:
            return told
        if told.turns or told.run:
            return msgspec.structs.replace(told, is_edited=True)
        # What was asked for is not what was sent, and the page says "as sent".
        sent = edited.request().messages
        said = self._cases.observation(shown, key).messages
        answer = answer_shown(said, len(media_in(sent, ())))
        return msgspec.structs.replace(told, is_edited=True, messages=messages_shown(sent), answer=answer)

    async def media(self, run: str, number: str, query: Query) -> WebResponse:
        """The bytes of a picture or a file of one try, by its number in the blocks; with `turn` of that turn."""
        shown = await self._evaluation.show(run)
        key = (query.text("case"), query.text("target"), query.number("trial", 0))
        turn = query.number("turn", 0) if query.text("turn") else None
        seen = self._cases.observation(shown, key, turn)
        asked = seen.asked
        if turn is None and not seen.run:
            edited = await self._back.find_edit(seen.exchanges)
            asked = asked if edited is None else edited.request().messages
        parts = media_in(asked, seen.messages)
        if not number.isascii() or not number.isdecimal() or len(number) > 9 or int(number) >= len(parts):
            hint = "GET /api/evals/{run}/case has all of them."
            raise Fault(Code.USAGE, f"this try has no file {number[:20]!r}", hint=hint, status=404)
        files = files_of(shown.standing.cases[key[0]])
        return media(await self._media.of(parts[int(number)], seen.exchanges, files))

    async def adopt(self, run: str, body: AdoptWanted) -> SavedShown:
        """Write what a person changed in a request into its case."""
        shown = await self._evaluation.show(run)
        key = (body.case, body.target, body.trial)
        seen = self._cases.observation(shown, key)
        edited = await self._back.find_edit(seen.exchanges)
        if edited is None:
            hint = "Edit and re-run it first, or change the value in the suite."
            raise Fault(Code.USAGE, "nobody changed a request of this try", hint=hint, status=409)
        case = shown.standing.cases[body.case]
        _, source = await asyncio.to_thread(self.suites.source, case)
        changes = changes_of(source, messages_before_edit(edited, seen.asked), edited.request().messages)
        return await self.suites.write_values(shown.standing, case, changes, body.sha256, is_dry=body.dry)

    async def compare(self, query: Query) -> CompareShown:
        """Two runs, or two targets of one."""
        first, second = query.text("a"), query.text("b")
        if not first or not second:
            hint = "Name two runs: ?a=…&b=…"
            raise Fault(Code.INVALID_REQUEST, "two runs are compared", hint=hint, status=400)
        sides = await self._evaluation.show(first), await self._evaluation.show(second)
        targets = query.text("target_a"), query.text("target_b")
        # Thousands of cases take seconds to be drawn from, and requests go through this process meanwhile.
        return await asyncio.to_thread(compare_runs, *sides, targets, self._drawing())

    async def trend(self, query: Query) -> list[TrendPoint]:
        """A suite over its runs."""
        suite = query.text("suite")
        if not suite:
            hint = "Name it by its file or its name: ?suite=…"
            raise Fault(Code.INVALID_REQUEST, "no suite is named", hint=hint, status=400)
        limit = min(query.number("limit", _USUAL), MOST_RUNS)
        return await asyncio.to_thread(trend_of, await self._runs(limit, suite), self._drawing())

    async def rerun(self, run: str, body: RerunWanted) -> EvalShown:
        """Run cases again."""
        return await self.show_run(await self.reruns.again(run, body))

    async def stop(self, run: str, _told: Nothing) -> EvalShown:
        """Begin nothing more."""
        await self.reruns.stop(run)
        return await self.show_run(run)

    async def close(self) -> None:
        """Leave what is under way, so that it can be gone on with."""
        await self.reruns.close()

    async def _runs(self, limit: int, suite: str) -> list[RunSnapshot]:
        return [await self._evaluation.show(each.run) for each in await self._evaluation.list_runs(limit, suite)]

    async def _summaries(self, shown: RunSnapshot) -> tuple[TargetSummary, ...]:
        known = self._known.pop(shown.run, None)
        if known is None or known[0] != shown.version:
            results = shown.standing.results
            known = shown.version, await asyncio.to_thread(summarize, results, self._drawing(), resamples=0)
        self._known[shown.run] = known
        while len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        return known[1]


def eval_calls(evals: EvalCalls) -> Calls:
    """All calls below `/api/evals`."""
    suites = evals.suites
    return {
        "evals": {"GET": lambda call: evals.list_runs(Query(call.query))},
        "evals/compare": {"GET": lambda call: evals.compare(Query(call.query))},
        "evals/trend": {"GET": lambda call: evals.trend(Query(call.query))},
        "evals/suites": {"GET": lambda _call: suites.list_suites()},
        "evals/make": {"POST": _with_body(MakeWanted, suites.make)},
        "evals/save": {"POST": _with_body(SaveWanted, suites.save)},
        "evals/*": {"GET": lambda call: evals.show_run(_run(call))},
        "evals/*/case": {"GET": lambda call: evals.case(_run(call), Query(call.query))},
        "evals/*/case/media/*": {"GET": lambda call: evals.media(_run(call), call.names[1], Query(call.query))},
        "evals/*/case/save": {"POST": _with_run_and_body(CaseSaveWanted, suites.change)},
        "evals/*/case/adopt": {"POST": _with_run_and_body(AdoptWanted, evals.adopt)},
        "evals/*/case/undo": {"POST": _with_run_and_body(CaseUndoWanted, suites.undo)},
        "evals/*/rerun": {"POST": _with_run_and_body(RerunWanted, evals.rerun)},
        "evals/*/stop": {"POST": _with_run_and_body(Nothing, evals.stop)},
    }


def _run(call: ApiCall) -> str:
    return unquote(call.name)


def _with_body(kind: type[W], does: Callable[[W], Awaitable[object]]) -> Handler:
    async def handle(call: ApiCall) -> object:
        return await does(await read_body(call.receive, kind, MOST_BYTES))

    return handle


def _with_run_and_body(kind: type[W], does: Callable[[str, W], Awaitable[object]]) -> Handler:
    async def handle(call: ApiCall) -> object:
        return await does(_run(call), await read_body(call.receive, kind, MOST_BYTES))

    return handle
