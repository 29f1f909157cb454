"""The page's API and the rooms that it serves: traffic, chat, runs, evals.

A server loads this module with the first such call (`Parts.open_api`), so that one that only relays requests never has
this code in memory.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from importlib.metadata import version

from sightline.agent.api.runs import Runs, run_calls
from sightline.agent.service.approvers import SavedRules
from sightline.agent.tools.opening import Toolsets
from sightline.app.configuration import Configuration
from sightline.app.engine import relay_of, why_no_embedded_model
from sightline.app.evals import evals_of, evaluation_of, suites_place
from sightline.app.machine import Ids, SystemClock, is_alive, own_command, process_name, random_digits
from sightline.app.server import Parts, Sending
from sightline.app.tools import runner_of, toolsets_of
from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import choose
from sightline.catalog.facts import Prices
from sightline.catalog.provider import Provider
from sightline.chat.api.calls import chat_calls
from sightline.chat.api.requests import ChatParts
from sightline.chat.service.answerer import Answerer
from sightline.chat.service.chat import ChatContext
from sightline.chat.service.chats import Chats, ChatService, chat_service
from sightline.chat.service.views import Models
from sightline.errors import Fault
from sightline.evals.api.calls import EvalCalls, eval_calls
from sightline.exchange.engine import Engine
from sightline.exchange.hub import Hub
from sightline.exchange.interception.holds import Holds
from sightline.exchange.interception.viewer import Viewer
from sightline.exchange.recording.records import Records
from sightline.exchange.request_counter import RequestCounter
from sightline.gateway.models import list_models
from sightline.plugins.loading import Plugins, list_panels, plugin_calls
from sightline.store.store import Logbook
from sightline.telemetry.metrics import TEXT_FORMAT, Metrics
from sightline.transport.http.client import probe
from sightline.web.asgi import WebResponse
from sightline.web.bodies import Query
from sightline.web.replies import GUARDED
from sightline.web.routes import Calls
from sightline.workbench.api import (
    Api,
    Providers,
    about,
    calibration_calls,
    exchange_calls,
    hold_calls,
    interception_calls,
    read_only,
)
from sightline.workbench.cache_report import CacheReports
from sightline.workbench.cache_turns import TurnExaminer
from sightline.workbench.context import measure_context
from sightline.workbench.costs import report_costs
from sightline.workbench.exchange_views import Showing
from sightline.workbench.exchanges import Exchanges, Forgetting
from sightline.workbench.interceptions import HoldDecisions, Interceptions
from sightline.workbench.page_settings import RecordCalls, SavedTrafficFilters, cap_calls
from sightline.workbench.session_lines import SessionLines
from sightline.workbench.sessions import Sessions
from sightline.workbench.shapes import About, Place
from sightline.workbench.sharing import SharingCalls


@dataclass(frozen=True, slots=True)
class _SendingViews:
    """The rooms that send their own requests."""

    chat: ChatParts
    runs: Runs
    evals: EvalCalls
    toolsets: Toolsets


@dataclass(frozen=True, slots=True)
class OpenRooms:
    """The API, and what has to be closed. `own` is None in a server that answers from recorded exchanges, which sends
    nothing."""

    api: Api
    own: _SendingViews | None

    async def leave_runs(self) -> None:
        """Leave runs in a state from which they can be resumed, before their requests are aborted."""
        if self.own is not None:
            await self.own.evals.close()
            await self.own.runs.close()

    async def close(self, grace: float) -> None:
        """End background work that no client waits for."""
        if self.own is not None:
            await self.own.chat.chats.close(grace)
            await self.own.toolsets.close()


def open_rooms(parts: Parts) -> OpenRooms:
    own = None if parts.sending is None else _open_own(parts, parts.sending)
    return OpenRooms(_assemble_api(parts, own), own)


def _open_own(parts: Parts, sending: Sending) -> _SendingViews:
    loaded, means, relay, record, hub = parts.loaded, sending.means, sending.relay, parts.store, parts.hub
    clock = SystemClock()
    engine = Engine(relay, sending.aside, RequestCounter(means.memory), means.memory, clock)
    runner, toolsets = runner_of(loaded, engine, record.logbook, store=record, hub=hub), toolsets_of(loaded)
    rules = SavedRules(sending.folder)
    chat = open_chat(loaded, engine, hub, record.logbook, Answerer(engine, runner, toolsets.open_toolsets, rules))
    root, suites = suites_place(loaded)
    evaluation = evaluation_of(
        loaded, engine, record, root, hub=hub, runner=runner, toolsets=toolsets, client=means.client
    )
    evals = evals_of(
        loaded,
        evaluation,
        record,
        suites,
        clock,
        relaying=lambda other: relay_of(other, means, hub, relay.holds, relay.own),
    )
    chat.chats.main.chat.warm()
    return _SendingViews(chat, Runs(runner, toolsets, chat.chats.resume_run, rules), evals, toolsets)


def _assemble_api(parts: Parts, own: _SendingViews | None) -> Api:
    sending, loaded = parts.sending, parts.loaded
    catalog = loaded.catalog
    holds = Holds(parts.memory, parts.now) if sending is None else sending.relay.holds
    records = Records(parts.store, parts.now, loaded.prices, parts.unwritten)
    exchanges = Exchanges(records, parts.now, holds)
    viewing = Viewer(holds, records, catalog, parts.memory)
    showing = Showing(holds, records, viewing)
    plugins = loaded.plugins or Plugins()
    sharing = SharingCalls(
        parts.store,
        catalog,
        parts.now,
        loaded.settings.export.patterns,
        finders=plugins.redactors(),
        exporters=plugins.exporters(),
        read_foreign=None if loaded.plugins is None else loaded.plugins.read_foreign,
    )

    def describe() -> About:
        return about(
            version("sightline"),
            parts.address,
            catalog,
            loaded.has_key,
            places=_places(parts),
            program=own_command(),
            toolsets=tuple(loaded.settings.tools),
            workers=1 if parts.workers is None else parts.workers.serving,
            panels=list_panels(plugins),
            formats=sharing.formats.values(),
        )

    resending = None if sending is None else sending.resending
    forgetting = Forgetting(records, parts.hub, parts.now, None if own is None else own.chat.chats.erase)
    calls: Calls = {
        "about": {"GET": read_only(describe)},
        **exchange_calls(exchanges, showing, resending, forgetting),
        **hold_calls(None if sending is None else HoldDecisions(holds, records, viewing, showing)),
        **({} if sending is None else interception_calls(Interceptions(holds, parts.hub))),
        **_reading_calls(parts, records, viewing, sharing),
        **_settings_calls(parts),
        **({} if sending is None else _sending_calls(parts, sending)),
        **cap_calls(None if sending is None else sending.means.caps),
        **({} if own is None else chat_calls(own.chat, records)),
        **({} if own is None else run_calls(own.runs)),
        **({} if own is None else eval_calls(own.evals)),
        **plugin_calls(plugins),
        **parts.further,
    }
    return Api(calls)


def _reading_calls(parts: Parts, records: Records, viewing: Viewer, sharing: SharingCalls) -> Calls:
    """The calls that read the record."""
    examiner = TurnExaminer(viewing, parts.now)
    caches = CacheReports(examiner)
    prices = parts.loaded.prices
    sessions = Sessions(examiner, parts.now)
    lines = SessionLines(records, parts.now)
    return {
        "cache": {"GET": lambda call: caches.read(Query(call.query))},
        "context": {"GET": lambda call: measure_context(viewing, parts.now, Query(call.query).text("session"))},
        "share": {"POST": lambda call: sharing.share(call.receive)},
        "import": {"POST": lambda call: sharing.import_file(call.receive)},
        "sessions": {"GET": lambda call: lines.list(Query(call.query))},
        "sessions/*": {"GET": lambda call: sessions.read(call.name)},
        "turns": {"GET": lambda call: sessions.details(Query(call.query))},
        "exchanges/*/place": {"GET": lambda call: sessions.place(call.name)},
        "costs": {"GET": lambda call: report_costs(parts.store, prices, parts.now, Query(call.query))},
    }


def _settings_calls(parts: Parts) -> Calls:
    """The calls for the user's settings on the page."""
    filters = SavedTrafficFilters(parts.store.logbook, parts.now)
    calls: Calls = {
        **calibration_calls(parts.memory, parts.wait_until_learned),
        "filters": {"GET": lambda _call: filters.read(), "PUT": lambda call: filters.replace(call.receive)},
    }
    if parts.retention is None:
        return calls
    record = RecordCalls(parts.retention, parts.record_place)
    return {
        **calls,
        "record": {"GET": lambda _call: record.read(), "PUT": lambda call: record.replace(call.receive)},
    }


def _sending_calls(parts: Parts, sending: Sending) -> Calls:
    """The calls about providers and metrics."""
    means, loaded = sending.means, parts.loaded
    providers = Providers(
        loaded.catalog,
        loaded.has_key,
        loaded.environment,
        probe=partial(probe, means.client),
        embedded=lambda: why_no_embedded_model(means.embedded, means.client),
    )
    return {
        "metrics": {"GET": lambda _call: _scrape(parts, sending.metrics)},
        "providers": {"GET": lambda _call: providers.list_providers()},
    }


async def _scrape(parts: Parts, metrics: Metrics) -> WebResponse:
    """The metrics of all processes in the format of Prometheus. Counting begins with the first scrape."""
    metrics.is_counting = True
    if parts.workers is not None:
        together = Metrics(0)
        for packed in (metrics.pack(), *await parts.workers.metrics()):
            together.add(packed)
        metrics = together
    return WebResponse(200, metrics.prometheus().encode(), [(b"content-type", TEXT_FORMAT), *GUARDED])


def _places(parts: Parts) -> tuple[Place, ...]:
    """The views that this server's page offers."""
    sends: tuple[Place, ...] = () if parts.sending is None else ("chat", "runs", "evals")
    return ("traffic", *sends, *(() if parts.example is None else ("example",)))


def open_chat(loaded: Configuration, engine: Engine, hub: Hub, logbook: Logbook, answering: Answerer) -> ChatParts:
    """The chats stored in this logbook. Each is read on first use. The caller closes them."""
    ids = Ids(time.time_ns, random_digits())
    context = ChatContext(
        logbook=logbook,
        hub=hub,
        settings=loaded.settings.chat,
        now=engine.clock.now,
        make_id=lambda: f"c{ids()[1:]}",
        secrets=engine.relay.secrets,
        process=process_name(),
        is_alive=is_alive,
    )

    def open_service(name: str) -> ChatService:
        models = Models(loaded.catalog, loaded.has_key, engine.memory, loaded.settings.ask.model)
        return chat_service(context, models, answering, name)

    zone = datetime.now().astimezone().tzinfo
    assert zone is not None
    return ChatParts(
        chats=Chats(context, open_service),
        prices=_model_prices(loaded.catalog, loaded.has_key),
        zone=zone,
        models=tuple(each.id for each in list_models(loaded.catalog, loaded.has_key)),
        toolsets=tuple(loaded.settings.tools),
    )


def _model_prices(catalog: Catalog, has_key: Callable[[Provider], bool]) -> Callable[[str], Prices | None]:
    @lru_cache(maxsize=1024)
    def prices(model: str) -> Prices | None:
        try:
            return choose(catalog, model, has_key=has_key).facts.prices
        except Fault:  # an imported pair may name an unknown model
            return None

    return prices
