"""The calls below `/api/evals`, and the runs that they start."""

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
from sightline.evals.api.case_showing import CaseShowing, answer_shown, media_in, messages_shown
from sightline.evals.api.figures import brief, compare_runs, trend_of, whole
from sightline.evals.api.reruns import Reruns
from sightline.evals.api.shapes import (
    AdoptWanted,
    CaseSaveWanted,
    CaseShown,
    CaseUndoWanted,
    CompareShown,
    EvalBrief,
    EvalShown,
    MakeWanted,
    RerunWanted,
    SavedShown,
    SaveWanted,
    TrendPoint,
)
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
    """Finds edits in the record."""

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        self._store = store
        self._now = now

    async def find_edit(self, exchanges: Sequence[str]) -> RecordedExchange | None:
        """The last of these exchanges that a user edited, if the record still has it."""
        for each in reversed(exchanges):
            try:
                summary = await find_exchange(self._store, each, now=self._now())
                found = await load_exchange(self._store, summary, needs_bodies=False)
                if any(isinstance(entry.fact, Edited) for entry in found.facts):
                    return await load_exchange(self._store, summary)
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
        raise _unclear("messages were added or taken away")
    found: list[tuple[Path, str]] = []
    for one, other, place in zip(original, sent, places, strict=True):
        before, after = of_message(one), of_message(other)
        if before != after:
            found += _texts(before, after, place)
    if not found:
        raise _unclear("the messages are as they were")
    return [(path, _restore_variables(value, source)) for path, value in found]


def _places(source: Json, messages: Sequence[Message]) -> list[tuple[Path, Json]]:
    """The path and value of each message in the case; nothing for messages from elsewhere."""
    nowhere: list[tuple[Path, Json]] = [((), None)] * len(messages)
    key = next((name for name in _INPUTS if isinstance(source, dict) and name in source), "")
    written = source[key] if key and isinstance(source, dict) else None
    if isinstance(written, str):
        # The suite's own messages come before those of the case.
        return [*nowhere[1:], ((key,), written)] if messages else []
    if not isinstance(written, list) or len(written) > len(messages):
        return nowhere
    own = [((key, index, "content"), _content(each)) for index, each in enumerate(written)]
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
    raise _unclear("it is not one text in the case")


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
    """The key that holds the text of a part."""
    return next((key for key in ("value", "text") if part.get("type") == "text" and key in part), None)


def _unclear(why: str) -> Fault:
    hint = "Open the request and make a case of it, or change the file by hand."
    return Fault(Code.USAGE, f"what was changed cannot be written into the case: {why}", hint=hint, status=409)


class WholeMedia:
    """`read` returns the content of a file below the suites' folder, or None."""

    def __init__(self, store: Store, read: Callable[[str], bytes | None], now: Callable[[], float]) -> None:
        self._store = store
        self._read = read
        self._now = now

    async def of(self, part: Media, exchanges: Sequence[str], files: Sequence[str]) -> Media:
        """The part with its bytes from these exchanges or files; unchanged if none has them."""
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
        """All media of an exchange; empty if the record no longer has it."""
        try:
            found = await load_exchange(self._store, await find_exchange(self._store, exchange, now=self._now()))
            answer = (Message("assistant", found.reply().choice.parts),) if found.frames else ()
            return media_of(ChatAnswer(messages=(*found.request().messages, *answer)))
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
"""The most bytes of a request body. A case is text, and parsing YAML is slow; images are in files beside the suite."""

_USUAL = 50
_MOST_KNOWN = 512


@dataclass(frozen=True, slots=True)
class EvalParts:
    """What the calls need. `folder` holds the suites, below the evaluation's root; `drawing` makes a reproducible
    random source; `environment` is what suites may refer to; `secrets` are values that no case may contain. `grown`
    returns the evaluation that reruns a suite whose targets have providers of their own."""

    evaluation: Evaluation
    store: Store
    folder: str
    drawing: Callable[[], Draw]
    now: Callable[[], float]
    environment: Mapping[str, str]
    secrets: Sequence[str] = ()
    grown: Callable[[EvalBegan], Evaluation] | None = None


class EvalCalls:
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
        shown = await self._evaluation.show(run)
        return whole(shown, await self._summaries(shown), is_here=self.reruns.is_here(run))

    async def case(self, run: str, query: Query) -> CaseShown:
        """Show one trial of a case."""
        shown = await self._evaluation.show(run)
        targets = [spec.name for spec in shown.standing.began.targets]
        target = query.text("target") or targets[0]
        key = (query.text("case"), target, query.number("trial", 0))
        # It parses the suite's file, which may be slow.
        trial = await asyncio.to_thread(self._cases.show_try, shown, key)
        edited = await self._back.find_edit(trial.exchanges)
        if edited is None:
            return trial
        if trial.turns or trial.run:
            return msgspec.structs.replace(trial, is_edited=True)
        # The page says "as sent", which differs from the case after an edit.
        sent = edited.request().messages
        messages = self._cases.observation(shown, key).messages
        answer = answer_shown(messages, len(media_in(sent, ())))
        return msgspec.structs.replace(trial, is_edited=True, messages=messages_shown(sent), answer=answer)

    async def media(self, run: str, number: str, query: Query) -> WebResponse:
        """The bytes of an image or file of one trial, by its number in the blocks; `turn` selects a turn."""
        shown = await self._evaluation.show(run)
        key = (query.text("case"), query.text("target"), query.number("trial", 0))
        turn = query.number("turn", 0) if query.text("turn") else None
        seen = self._cases.observation(shown, key, turn)
        sent = seen.asked
        if turn is None and not seen.run:
            edited = await self._back.find_edit(seen.exchanges)
            sent = sent if edited is None else edited.request().messages
        parts = media_in(sent, seen.messages)
        if not number.isascii() or not number.isdecimal() or len(number) > 9 or int(number) >= len(parts):
            hint = "GET /api/evals/{run}/case has all of them."
            raise Fault(Code.USAGE, f"this try has no file {number[:20]!r}", hint=hint, status=404)
        files = files_of(shown.standing.cases[key[0]])
        return media(await self._media.of(parts[int(number)], seen.exchanges, files))

    async def adopt(self, run: str, body: AdoptWanted) -> SavedShown:
        """Write a user's edit of a held request into its case."""
        shown = await self._evaluation.show(run)
        key = (body.case, body.target, body.trial)
        seen = self._cases.observation(shown, key)
        edited = await self._back.find_edit(seen.exchanges)
        if edited is None:
            hint = "Edit and re-run it first, or change the value in the suite."
            raise Fault(Code.USAGE, "no request of this trial was edited", hint=hint, status=409)
        case = shown.standing.cases[body.case]
        _, source = await asyncio.to_thread(self.suites.source, case)
        changes = changes_of(source, messages_before_edit(edited, seen.asked), edited.request().messages)
        return await self.suites.write_values(shown.standing, case, changes, body.sha256, is_dry=body.dry)

    async def compare(self, query: Query) -> CompareShown:
        """Compare two runs, or two targets of one."""
        first, second = query.text("a"), query.text("b")
        if not first or not second:
            hint = "Name two runs: ?a=…&b=…"
            raise Fault(Code.INVALID_REQUEST, "two runs are compared", hint=hint, status=400)
        sides = await self._evaluation.show(first), await self._evaluation.show(second)
        targets = query.text("target_a"), query.text("target_b")
        # Resampling thousands of cases takes seconds, and this process also relays requests.
        return await asyncio.to_thread(compare_runs, *sides, targets, self._drawing())

    async def trend(self, query: Query) -> list[TrendPoint]:
        """The results of a suite over its runs."""
        suite = query.text("suite")
        if not suite:
            hint = "Name it by its file or its name: ?suite=…"
            raise Fault(Code.INVALID_REQUEST, "no suite is named", hint=hint, status=400)
        limit = min(query.number("limit", _USUAL), MOST_RUNS)
        return await asyncio.to_thread(trend_of, await self._runs(limit, suite), self._drawing())

    async def rerun(self, run: str, body: RerunWanted) -> EvalShown:
        return await self.show_run(await self.reruns.again(run, body))

    async def stop(self, run: str, _told: Nothing) -> EvalShown:
        await self.reruns.stop(run)
        return await self.show_run(run)

    async def close(self) -> None:
        """Interrupt the runs under way; they can be resumed."""
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
