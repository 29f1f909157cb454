"""The calls for pairs and views: show them, preview the next send, and edit and mark pairs."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from sightline.chat.api import requests, shapes
from sightline.chat.api.files import media, parts_from_uploads, size_of
from sightline.chat.api.filters import read_filter
from sightline.chat.api.requests import OneChat, load_with, not_there
from sightline.chat.core import facts
from sightline.chat.core.pair import ChatAnswer, MessagePair, Trouble, kind_of, name_of
from sightline.chat.core.plan import SendTelemetry
from sightline.chat.core.sizing import TokenBand, band
from sightline.chat.core.view import View
from sightline.chat.service.blocks import blocks_of, media_of
from sightline.chat.service.sends import EstimateShown, SendPreview
from sightline.chat.service.views import Looking, ViewSend
from sightline.editing.document import DocumentReading, options_of, tools_of
from sightline.errors import Code, Fault
from sightline.exchange.outbound import Prepared
from sightline.model.exchange import Budgeted
from sightline.model.parts import Part
from sightline.model.request import Role
from sightline.tokens.cost import cost_of
from sightline.web.asgi import WebResponse
from sightline.web.bodies import Query
from sightline.web.replies import FaultShown
from sightline.wire.jsontext import decode, encode
from sightline.wire.pointer import resolve

_PAIR_FIELDS = frozenset(shapes.PairShown.__struct_fields__) & frozenset(MessagePair.__struct_fields__)
_ANSWER_FIELDS = frozenset(shapes.AnswerShown.__struct_fields__) - {"blocks", "citations", "cost"}
"""Fields that are shown as they are in the pair and in the answer, unless they are replaced."""


def answer_of(chat: OneChat, pair: MessagePair) -> ChatAnswer | None:
    """The answer of a pair; while it is being sent, what has arrived so far."""
    if pair.state != "sending":
        return pair.answer
    so_far = chat.service.sends.so_far(pair.id)
    return so_far if so_far is not None and so_far.messages else None


def show_answer(chat: OneChat, answer: ChatAnswer, model: str) -> shapes.AnswerShown:
    cost = answer.cost
    if cost is None and answer.usage is not None and not answer.run:  # an answer from before costs were stored
        known = cost_of(answer.usage, chat.parts.prices(model))
        cost = None if known is None else known.dollars
    fields = {name: getattr(answer, name) for name in _ANSWER_FIELDS}
    return shapes.AnswerShown(
        **fields,
        blocks=blocks_of(answer),
        citations=tuple(shapes.CitationShown(each.title, each.url, each.cited_text) for each in answer.citations),
        cost=cost,
    )


def earlier_answers(pair: MessagePair) -> tuple[ChatAnswer, ...]:
    """The earlier answers, including the one that is kept until a new one has arrived."""
    is_kept = pair.state == "sending" and pair.answer is not None
    return (*pair.earlier, pair.answer) if is_kept and pair.answer is not None else pair.earlier


def _pair_fields(chat: OneChat, pair: MessagePair, view: View | None) -> dict[str, Any]:
    answer = answer_of(chat, pair)
    model = pair.asking or pair.model
    topics = chat.service.chat.history.topics
    return {name: getattr(pair, name) for name in _PAIR_FIELDS} | {
        "topic_path": topics.path(pair.topic) if pair.topic in topics else (),
        "attachments": tuple(
            shapes.AttachmentShown(n, kind_of(part), name_of(part), *size_of(part))
            for n, part in enumerate(pair.attachments)
        ),
        "answer": None if answer is None else show_answer(chat, answer, model),
        "earlier": len(earlier_answers(pair)),
        "trouble": trouble(pair.trouble),
        "standing": "hidden" if view is None else view.standing(pair.id),
        "tokens": TokenBand(0, 0, 0) if view is None else band(view.size(pair)),
        "run": pair.run or ("" if answer is None else answer.run),
    }


def trouble(cause: Trouble | None) -> shapes.TroubleShown | None:
    """The trouble that is shown instead of an answer."""
    return None if cause is None else msgspec.convert(cause, shapes.TroubleShown, from_attributes=True)


_MARKS: Mapping[str, Callable[..., facts.ChatFact]] = {
    "star": facts.PairsStarred,
    "flag": facts.PairsFlagged,
    "topic": facts.PairsMoved,
    "hand": facts.PairsHandled,
}


async def get_pair(chat: OneChat, pair: str, query: Query) -> shapes.PairOpened:
    """A pair; with `view`, as it is in that view."""
    found = await _find(chat, pair)
    telemetry = chat.service.sends.telemetry(pair) or await _telemetry_of(chat, found.exchange)
    fields = _pair_fields(chat, found, await _view(chat, query))
    earlier = tuple(show_answer(chat, each, found.model) for each in earlier_answers(found))
    return shapes.PairOpened(**fields, earlier_answers=earlier, telemetry=telemetry)


async def get_media(chat: OneChat, pair: str, number: str, query: Query) -> WebResponse:
    """The bytes of a file of the question; with `of=answer`, of an image in the answer; with `earlier=N`, in that
    earlier answer."""
    found, of = await _find(chat, pair), query.text("of") or "question"
    if of not in ("question", "answer"):
        hint = "of is question or answer."
        raise Fault(Code.INVALID_REQUEST, f"there are no files of {of[:40]!r}", hint=hint, status=400)
    parts = found.attachments if of == "question" else _of_answer(chat, found, query)
    if not number.isascii() or not number.isdecimal() or len(number) > 9 or int(number) >= len(parts):
        raise not_there(f"file of this {of}", number)
    return media(parts[int(number)])


async def edit_pair(chat: OneChat, pair: str, wanted: requests.EditWanted, query: Query) -> shapes.PairOpened:
    """Change the text of the question or of the answer."""
    await _find(chat, pair)
    if wanted.user_text is None and wanted.assistant_text is None:
        hint = "Give user_text, assistant_text, or both."
        raise Fault(Code.INVALID_REQUEST, "there is nothing to change", hint=hint, status=422)
    await chat.service.chat.happen(facts.PairEdited(pair, wanted.user_text, wanted.assistant_text))
    return await get_pair(chat, pair, query)


async def swap_answer(chat: OneChat, pair: str, wanted: requests.SwapWanted, query: Query) -> shapes.PairOpened:
    await _find(chat, pair)
    await chat.service.chat.happen(facts.AnswerSwapped(pair, wanted.index))
    return await get_pair(chat, pair, query)


async def mark_pairs(chat: OneChat, wanted: requests.MarkWanted) -> shapes.Versioned:
    return await _happen(chat, wanted.ids, _mark(wanted))


async def delete_pairs(chat: OneChat, wanted: requests.IdsWanted) -> shapes.Versioned:
    return await _happen(chat, wanted.ids, facts.PairsDeleted(wanted.ids))


async def restore_pairs(chat: OneChat, wanted: requests.IdsWanted) -> shapes.Versioned:
    return await _happen(chat, wanted.ids, facts.PairsRestored(wanted.ids))


async def _happen(chat: OneChat, ids: tuple[str, ...], fact: facts.ChatFact) -> shapes.Versioned:
    history = await load_with(chat, ids)
    if isinstance(fact, facts.PairsMoved) and fact.topic not in history.topics:
        raise not_there("topic", fact.topic)
    await chat.service.chat.happen(fact)
    return shapes.Versioned(chat.service.chat.version)


async def _find(chat: OneChat, pair: str) -> MessagePair:
    return (await load_with(chat, (pair,))).get(pair)


async def _telemetry_of(chat: OneChat, exchange: str) -> tuple[SendTelemetry, ...]:
    """The recorded telemetry of an earlier send, if it is still stored."""
    if not exchange:
        return ()
    try:
        recorded = [entry.fact for entry in await chat.records.facts(exchange)]
    except Fault:
        return ()  # it was deleted by the retention policy, or recorded on another machine
    return tuple(msgspec.convert(each.telemetry, SendTelemetry) for each in recorded if isinstance(each, Budgeted))


async def _view(chat: OneChat, query: Query) -> View | None:
    return (await chat.service.views.get(query.text("view"))).view if "view" in query else None


def _of_answer(chat: OneChat, pair: MessagePair, query: Query) -> tuple[Part, ...]:
    answer = answer_of(chat, pair)
    if "earlier" in query:
        answers, index = earlier_answers(pair), query.number("earlier", 0)
        if index >= len(answers):
            raise not_there("earlier answer", str(index))
        answer = answers[index]
    return () if answer is None else media_of(answer)


def _mark(wanted: requests.MarkWanted) -> facts.ChatFact:
    given = [(name, value) for name in _MARKS if (value := getattr(wanted, name)) is not None]
    if len(given) != 1:
        hint = f"Give one of {', '.join(_MARKS)}."
        raise Fault(Code.INVALID_REQUEST, "it is one mark at a time", hint=hint, status=422)
    ((name, value),) = given
    return _MARKS[name](wanted.ids, value)


MOST_ROWS = 200
EMBEDDED = "the embedded model, on this machine"


async def update_view(chat: OneChat, view: str, wanted: requests.ViewWanted) -> shapes.ViewShown:
    """Create a view, or change its filter, model or topic."""
    history = await chat.service.chat.load()
    if wanted.topic is not None and wanted.topic not in history.topics:
        raise not_there("topic", wanted.topic)
    expression = None if wanted.filter is None else read_filter(chat, wanted.filter)
    looking = await chat.service.views.set_view(
        view, filter=wanted.filter, expression=expression, model=wanted.model, topic=wanted.topic
    )
    return _view_shown(chat, looking)


async def get_view(chat: OneChat, view: str, query: Query) -> shapes.ViewShown:
    """The current state of a view. `text_tokens` is the size of the draft."""
    tokens = query.number("text_tokens", -1)
    return _view_shown(chat, await chat.service.views.get(view), tokens if tokens >= 0 else None)


async def get_rows(chat: OneChat, view: str, query: Query) -> shapes.RowsShown:
    """Some of the pairs on screen."""
    first, limit = query.number("from", 0), min(query.number("limit", MOST_ROWS), MOST_ROWS)
    looking = await chat.service.views.get(view)
    rows = looking.rows
    pairs, total = rows.pairs[first : first + limit], len(rows.pairs)
    shown = tuple(shapes.PairShown(**_pair_fields(chat, pair, looking.view)) for pair in pairs)
    return shapes.RowsShown(chat.service.chat.version, total, min(first, total), shown)


async def find_place(chat: OneChat, view: str, query: Query) -> shapes.PlaceShown:
    looking = await chat.service.views.get(view)
    return shapes.PlaceShown(looking.rows.place(query.text("pair")))


async def estimate_question(chat: OneChat, wanted: requests.QuestionWanted) -> EstimateShown:
    parts = parts_from_uploads(wanted.attachments)
    return await chat.service.sends.estimate(wanted.view, wanted.text, parts, replaces=wanted.replaces)


async def preview_send(chat: OneChat, wanted: requests.PreviewWanted) -> shapes.PreviewShown:
    """The exact body of the next send."""
    preview = await chat.service.sends.preview(
        wanted.view,
        wanted.text,
        parts_from_uploads(wanted.attachments),
        before=wanted.before,
        replaces=wanted.replaces,
    )
    return _preview_shown(preview)


def _view_shown(chat: OneChat, looking: Looking, text_tokens: int | None = None) -> shapes.ViewShown:
    service, view, rows = chat.service, looking.view, looking.rows
    history, fault = service.chat.history, looking.trouble
    newest = history.newest
    return shapes.ViewShown(
        view=looking.id,
        version=service.chat.version,
        filter=looking.filter,
        model=view.model,
        selected=looking.model,
        provider=looking.choice.provider_name,
        topic=view.topic,
        topic_path=history.topics.path(view.topic),
        inherited=msgspec.convert(view.inherited, shapes.InheritedShown, from_attributes=True),
        visible=len(view.visible),
        rows=len(rows.pairs),
        start=rows.start,
        newest_hidden=newest is not None and view.standing(newest.id) == "hidden",
        counter=looking.counter(text_tokens),
        room=msgspec.convert(view.shown_room, shapes.RoomShown, from_attributes=True),
        history_tokens=view.figures.history,
        sending=service.sends.sending,
        paused=service.sends.paused,
        last=None if looking.last is None else _last(looking.last),
        tools_trouble=None if fault is None else FaultShown(fault.code.value, fault.message, fault.hint),
    )


def _last(sent: ViewSend) -> shapes.LastShown:
    latest = sent.telemetry[-1] if sent.telemetry else None
    if latest is not None:  # the numbers, without the conversation
        latest = msgspec.structs.replace(latest, messages=(), selection=(), trimming_removed=())
    return shapes.LastShown(
        pair=sent.pair, telemetry=latest, trim_summary=sent.trim_summary, trouble=trouble(sent.trouble)
    )


def _preview_shown(preview: SendPreview) -> shapes.PreviewShown:
    prepared, estimate, trouble = preview.prepared, preview.estimate, preview.trouble
    return shapes.PreviewShown(
        body="" if prepared is None else prepared.body.decode("utf-8", "replace"),
        body_sha256="" if prepared is None else prepared.sha256,
        dialect="" if prepared is None else prepared.dialect,
        provider="" if prepared is None else prepared.choice.provider_name,
        model="" if prepared is None else prepared.choice.model,
        url="" if prepared is None else _address(prepared),
        tokens=0 if estimate is None else estimate.tokens,
        low=0 if estimate is None else estimate.low,
        high=0 if estimate is None else estimate.high,
        included=preview.included,
        left_out_preflight=preview.left_out_preflight,
        losses=() if prepared is None else prepared.report.losses,
        additions=() if prepared is None else prepared.report.additions,
        shares=() if prepared is None else shares_of(prepared.dialect, prepared.body),
        trouble=None if trouble is None else FaultShown(trouble.code, trouble.message, trouble.hint),
    )


_LABELS: Mapping[Role, str] = {
    "system": "System",
    "developer": "System",
    "user": "User",
    "assistant": "Assistant",
    "tool": "Tool results",
}


def shares_of(dialect: str, body: bytes) -> tuple[shapes.BodyShare, ...]:
    """What a body consists of, in its own order: the messages by role, the tools, and the rest as options. Empty if its
    dialect cannot read it."""
    reading = DocumentReading.of(dialect, decode(body))
    if reading.request is None:
        return ()
    sizes: dict[str, list[int]] = {}
    for message in reading.request.messages:
        value = resolve(reading.document, message.at)
        sizes.setdefault(_LABELS[message.role], []).append(len(encode(value).decode()))
    for tool in tools_of(reading):
        sizes.setdefault("Tools", []).append(len(encode(resolve(reading.document, tool.at)).decode()))
    for place, value in options_of(reading).items():
        sizes.setdefault("Options", []).append(len(place) + len(encode(value).decode()))
    return tuple(shapes.BodyShare(label, len(each), sum(each)) for label, each in sizes.items())


def _address(prepared: Prepared) -> str:
    """The address of a request. That of the embedded model exists only while it runs, and no one else can use it."""
    if prepared.choice.provider.embedded:
        return EMBEDDED
    url = prepared.call.url
    return url if isinstance(url, str) else f"{url.prefix}${url.name}{url.suffix}"
