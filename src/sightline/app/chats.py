"""The chats of a store, as the configuration has them."""

import time
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache

import msgspec

from sightline.app.configuration import Configuration
from sightline.app.machine import Ids, chance, is_alive, process_name
from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import choose
from sightline.catalog.facts import Prices
from sightline.catalog.provider import Provider
from sightline.chat.api.calls import ChatParts
from sightline.chat.core.sizing import ChatSettings
from sightline.chat.service.answerer import Answerer
from sightline.chat.service.chats import Chats
from sightline.chat.service.service import ChatService, chat_service
from sightline.errors import Fault
from sightline.exchange.engine import Engine
from sightline.exchange.hub import Hub
from sightline.gateway.models import list_models
from sightline.store.store import Logbook


def open_chat(
    loaded: Configuration, engine: Engine, hub: Hub, logbook: Logbook, answering: Answerer | None = None
) -> ChatParts:
    """The chats stored in this logbook. Each is read on first use. The caller closes them."""
    settings = chat_settings(loaded)
    ids = Ids(time.time_ns, chance())

    def make_id() -> str:
        return f"c{ids()[1:]}"

    def open_service(name: str) -> ChatService:
        return chat_service(
            engine,
            hub,
            logbook,
            name=name,
            catalog=loaded.catalog,
            has_key=loaded.has_key,
            settings=settings,
            make_id=make_id,
            answering=answering,
            default_model=loaded.settings.ask.model,
            process=process_name(),
            is_alive=is_alive,
        )

    now = engine.clock.now
    zone = datetime.now().astimezone().tzinfo
    assert zone is not None
    return ChatParts(
        chats=Chats(logbook, hub, open_service, now=now, make_id=make_id, secrets=engine.relay.secrets),
        hub=hub,
        now=now,
        settings=settings,
        prices=_model_prices(loaded.catalog, loaded.has_key),
        zone=zone,
        models=tuple(each.id for each in list_models(loaded.catalog, loaded.has_key)),
        toolsets=tuple(loaded.settings.tools),
    )


def chat_settings(loaded: Configuration) -> ChatSettings:
    """The table `[chat]` as the chat's own settings."""
    return ChatSettings(**msgspec.structs.asdict(loaded.settings.chat))


def _model_prices(catalog: Catalog, has_key: Callable[[Provider], bool]) -> Callable[[str], Prices | None]:
    @lru_cache(maxsize=1024)
    def prices(model: str) -> Prices | None:
        try:
            return choose(catalog, model, has_key=has_key).facts.prices
        except Fault:  # an imported pair may name an unknown model
            return None

    return prices
