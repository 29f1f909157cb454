"""The calls about a view: its state, the size of the next question, and what would be sent."""

import msgspec

from sightline.chat.api.bodies import EstimateWanted, PreviewWanted, ViewWanted
from sightline.chat.api.files import parts_from_uploads
from sightline.chat.api.filters import Filters
from sightline.chat.api.pairs import PairShowing, trouble
from sightline.chat.api.refusals import not_there
from sightline.chat.api.shapes import (
    CounterShown,
    EstimateShown,
    InheritedShown,
    LastShown,
    PausedShown,
    PlaceShown,
    PreviewShown,
    RoomShown,
    RowsShown,
    ViewShown,
)
from sightline.chat.core.plan import SendTelemetry
from sightline.chat.service.previews import SendPreview
from sightline.chat.service.service import ChatService
from sightline.chat.service.views import Looking, ViewSend
from sightline.errors import Fault
from sightline.exchange.prepare import Prepared
from sightline.web.bodies import Query
from sightline.web.replies import FaultShown

MOST_ROWS = 200
EMBEDDED = "the embedded model, on this machine"


class ViewCalls:
    """Answers from the service's views."""

    def __init__(self, service: ChatService, filters: Filters, showing: PairShowing) -> None:
        self._service = service
        self._filters = filters
        self._showing = showing

    async def update(self, view: str, wanted: ViewWanted) -> ViewShown:
        """Change its filter, model or topic."""
        history = await self._service.chat.load()
        if wanted.topic is not None and wanted.topic not in history.topics:
            raise not_there("topic", wanted.topic)
        expression = None if wanted.filter is None else self._filters.read(wanted.filter)
        looking = await self._service.views.set_view(
            view, filter=wanted.filter, expression=expression, model=wanted.model, topic=wanted.topic
        )
        return self._view_shown(looking)

    async def get(self, view: str, query: Query) -> ViewShown:
        """The current state; `text_tokens` is the size of the draft."""
        tokens = query.number("text_tokens", -1)
        return self._view_shown(await self._service.views.get(view), tokens if tokens >= 0 else None)

    async def rows(self, view: str, query: Query) -> RowsShown:
        """Some of the pairs on screen."""
        first, limit = query.number("from", 0), min(query.number("limit", MOST_ROWS), MOST_ROWS)
        looking = await self._service.views.get(view)
        rows = looking.rows
        pairs = rows.slice(first, limit)
        shown = tuple(self._showing.row(pair, looking.view) for pair in pairs)
        return RowsShown(self._service.chat.version, rows.total, min(first, rows.total), shown)

    async def place(self, view: str, query: Query) -> PlaceShown:
        """The position of a pair on screen."""
        looking = await self._service.views.get(view)
        return PlaceShown(looking.rows.place(query.text("pair")))

    async def estimate(self, wanted: EstimateWanted) -> EstimateShown:
        """The size of a draft."""
        sized = await self._service.previews.estimate(
            wanted.view, wanted.text, parts_from_uploads(wanted.attachments), replaces=wanted.replaces
        )
        estimate = sized.estimate
        return EstimateShown(
            estimate.tokens, estimate.low, estimate.high, sized.limit, sized.fits, sized.line, sized.prompt
        )

    async def preview(self, wanted: PreviewWanted) -> PreviewShown:
        """The exact body of the next send."""
        preview = await self._service.previews.preview(
            wanted.view,
            wanted.text,
            parts_from_uploads(wanted.attachments),
            before=wanted.before,
            replaces=wanted.replaces,
        )
        return _preview_shown(preview)

    def _view_shown(self, looking: Looking, text_tokens: int | None = None) -> ViewShown:
        service, view, rows = self._service, looking.view, looking.rows
        history, inherited = service.chat.history, looking.view.inherited
        newest, paused = history.newest, service.sends.paused
        return ViewShown(
            view=looking.id,
            version=service.chat.version,
            filter=looking.filter,
            model=view.model,
            selected=looking.model,
            provider=looking.choice.provider_name,
            topic=view.topic,
            topic_path=history.topics.path(view.topic),
            inherited=InheritedShown(
                system_prompt=inherited.system_prompt,
                instructions=inherited.instructions,
                model=inherited.model,
                style_directives=inherited.style_directives,
                parameters=inherited.parameters,
                toolsets=inherited.toolsets,
            ),
            visible=len(view.visible),
            rows=rows.total,
            start=rows.start,
            newest_hidden=newest is not None and view.standing(newest.id) == "hidden",
            counter=_counter(looking, text_tokens),
            room=_room(looking),
            history_tokens=view.history_tokens,
            sending=service.sends.sending,
            paused=None if paused is None else PausedShown(paused.line, paused.can_go_at),
            last=None if looking.last is None else _last(looking.last),
            tools_trouble=_fault(looking.trouble),
        )


def _counter(looking: Looking, text_tokens: int | None) -> CounterShown:
    counter = looking.counter
    prompt = () if text_tokens is None else (("AUT", text_tokens),)
    return CounterShown(
        text=counter.text,
        predicted=counter.predicted,
        visible=counter.visible,
        trimmed=counter.trimmed,
        predicted_then=counter.predicted_then,
        breakdown=(*counter.breakdown, *prompt),
    )


def _room(looking: Looking) -> RoomShown:
    room = looking.view.room
    return RoomShown(
        limit=room.limit,
        system=room.system,
        tools=room.tools,
        user=room.user,
        reply=room.reply,
        usable=room.usable,
        history=room.history,
    )


def _last(sent: ViewSend) -> LastShown:
    telemetry = sent.telemetry[-1] if sent.telemetry else None
    return LastShown(
        pair=sent.pair,
        telemetry=None if telemetry is None else _in_short(telemetry),
        trim_summary=sent.trim_summary,
        trouble=trouble(sent.trouble),
    )


def _in_short(telemetry: SendTelemetry) -> SendTelemetry:
    """The numbers of a telemetry record, without the conversation."""
    return msgspec.structs.replace(telemetry, messages=(), selection=(), trimming_removed=())


def _preview_shown(preview: SendPreview) -> PreviewShown:
    prepared, estimate, trouble = preview.prepared, preview.estimate, preview.trouble
    return PreviewShown(
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
        trouble=None if trouble is None else FaultShown(trouble.code, trouble.message, trouble.hint),
    )


def _address(prepared: Prepared) -> str:
    """The address it goes to. The embedded model has one only while it runs, and no one else can use it."""
    if prepared.choice.provider.embedded:
        return EMBEDDED
    url = prepared.call.url
    return url if isinstance(url, str) else f"{url.prefix}${url.name}{url.suffix}"


def _fault(fault: Fault | None) -> FaultShown | None:
    return None if fault is None else FaultShown(fault.code.value, fault.message, fault.hint)
