"""The chat's calls by path and method, each with who answers it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import TypeVar
from urllib.parse import unquote

import msgspec

from sightline.chat.api import bodies as body
from sightline.chat.api.command_calls import Commanding
from sightline.chat.api.compactions import CompactionCalls
from sightline.chat.api.files import Files
from sightline.chat.api.filters import Filters
from sightline.chat.api.pair_showing import ModelPrices, PairShowing
from sightline.chat.api.pairs import PairCalls
from sightline.chat.api.preferences import PreferenceCalls
from sightline.chat.api.refusals import refusing
from sightline.chat.api.sends import SendCalls
from sightline.chat.api.topics import TopicCalls
from sightline.chat.api.views import ViewCalls
from sightline.chat.core.settings import ChatSettings
from sightline.chat.core.topics import ROOT
from sightline.chat.service.service import ChatService
from sightline.exchange.recording.records import Records
from sightline.web.bodies import Nothing, Query, read_body
from sightline.web.routes import ApiCall, Calls, Handler

W = TypeVar("W", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class ChatParts:
    """What the chat's calls are made of: the service, and what only they have to know. `settings` are as configured,
    `models` are the names to offer, `toolsets` those of the configuration."""

    service: ChatService
    settings: ChatSettings
    prices: ModelPrices
    zone: tzinfo
    models: Sequence[str] = ()
    toolsets: Sequence[str] = ()


def chat_calls(parts: ChatParts, records: Records) -> Calls:
    """All calls below `/api/chat`."""
    service = parts.service
    filters = Filters(service.chat, parts.zone, parts.models)
    showing = PairShowing(service, parts.prices)
    files = Files(service, filters)
    calls: dict[str, dict[str, Handler]] = {
        **_about_views(ViewCalls(service, filters, showing)),
        **_about_pairs(PairCalls(service, showing, records), SendCalls(service)),
        **_about_topics(TopicCalls(service, parts.toolsets)),
        **_about_compaction(CompactionCalls(service)),
        **_about_preferences(PreferenceCalls(service.chat, parts.settings)),
        "command": {"POST": _with_body(body.CommandWanted, Commanding(service, filters).run)},
        "export": {"GET": lambda call: files.export(Query(call.query))},
        "import": {"POST": lambda call: files.bring_in(Query(call.query), call.receive)},
        "filter": {"GET": lambda call: filters.describe(Query(call.query))},
    }
    return {
        f"chat/{path}": {method: refusing(handler) for method, handler in methods.items()}
        for path, methods in calls.items()
    }


def _about_views(views: ViewCalls) -> dict[str, dict[str, Handler]]:
    async def update(call: ApiCall) -> object:
        return await views.update(_name(call), await read_body(call.receive, body.ViewWanted))

    return {
        "views/*": {"GET": lambda call: views.get(_name(call), Query(call.query)), "PUT": update},
        "views/*/rows": {"GET": lambda call: views.rows(_name(call), Query(call.query))},
        "views/*/place": {"GET": lambda call: views.place(_name(call), Query(call.query))},
        "estimate": {"POST": _with_body(body.EstimateWanted, views.estimate)},
        "preview": {"POST": _with_body(body.PreviewWanted, views.preview)},
    }


def _about_pairs(pairs: PairCalls, sends: SendCalls) -> dict[str, dict[str, Handler]]:
    async def reask(call: ApiCall) -> object:
        return await sends.reask(_name(call), await read_body(call.receive, body.ReaskWanted))

    async def edit(call: ApiCall) -> object:
        return await pairs.edit(_name(call), await read_body(call.receive, body.EditWanted), Query(call.query))

    async def swap(call: ApiCall) -> object:
        return await pairs.swap(_name(call), await read_body(call.receive, body.SwapWanted), Query(call.query))

    async def cancel(_nothing: Nothing) -> object:
        return await sends.cancel()

    return {
        "send": {"POST": _with_body(body.SendWanted, sends.send)},
        "cancel": {"POST": _with_body(Nothing, cancel)},
        "resume": {"POST": _with_body(body.ResumeWanted, sends.resume)},
        "pairs/*": {"GET": lambda call: pairs.get(_name(call), Query(call.query))},
        "pairs/*/media/*": {"GET": lambda call: pairs.media(_name(call), call.names[1], Query(call.query))},
        "pairs/*/reask": {"POST": reask},
        "pairs/*/edit": {"POST": edit},
        "pairs/*/swap": {"POST": swap},
        "mark": {"POST": _with_body(body.MarkWanted, pairs.mark)},
        "delete": {"POST": _with_body(body.IdsWanted, pairs.delete)},
        "restore": {"POST": _with_body(body.IdsWanted, pairs.restore)},
    }


def _about_topics(topics: TopicCalls) -> dict[str, dict[str, Handler]]:
    async def change(call: ApiCall) -> object:
        return await topics.change(_name(call), await read_body(call.receive, body.TopicChangeWanted))

    async def change_root(change: body.TopicChangeWanted) -> object:
        return await topics.change(ROOT, change)

    return {
        "topics": {
            "GET": lambda _call: topics.list_topics(),
            "POST": _with_body(body.TopicWanted, topics.add),
            "PUT": _with_body(body.TopicChangeWanted, change_root),  # the topic of all topics has an empty id
        },
        "topics/*": {"PUT": change, "DELETE": lambda call: topics.remove(_name(call))},
    }


def _about_compaction(compactions: CompactionCalls) -> dict[str, dict[str, Handler]]:
    return {
        "compaction": {"POST": _with_body(body.CompactionWanted, compactions.accept)},
        "compaction/draft": {"POST": _with_body(body.DraftWanted, compactions.draft)},
        "compaction/compare": {"POST": _with_body(body.CompareWanted, compactions.compare)},
        "compaction/undo": {"POST": _with_body(body.CompactionUndoWanted, compactions.undo)},
    }


def _about_preferences(preferences: PreferenceCalls) -> dict[str, dict[str, Handler]]:
    return {
        "preferences": {
            "GET": lambda _call: preferences.get(),
            "PUT": _with_body(body.PreferencesWanted, preferences.update),
        }
    }


def _with_body(kind: type[W], act: Callable[[W], Awaitable[object]]) -> Handler:
    """A call that needs nothing but its body."""

    async def handle(call: ApiCall) -> object:
        return await act(await read_body(call.receive, kind))

    return handle


def _name(call: ApiCall) -> str:
    """The id in the path; imported ones may hold anything."""
    return unquote(call.name)
