"""The parts of the living chat, put together."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sightline.catalog.catalog import Catalog
from sightline.catalog.provider import Provider
from sightline.chat.core.settings import ChatSettings
from sightline.chat.service.answerer import Answerer, DirectAnswerer
from sightline.chat.service.chat import Chat
from sightline.chat.service.compaction import Compacting
from sightline.chat.service.models import Models
from sightline.chat.service.previews import Previews
from sightline.chat.service.resumed_run import interrupted_ending
from sightline.chat.service.sends import Sends
from sightline.chat.service.views import Views
from sightline.exchange.engine import Engine
from sightline.exchange.hub import Hub
from sightline.store.logbook import Logbook


@dataclass(frozen=True, slots=True)
class ChatService:
    """What a page can do with the chat."""

    chat: Chat
    views: Views
    sends: Sends
    previews: Previews
    compacting: Compacting

    async def close(self, grace: float) -> None:
        """Let what is under way end within so many seconds; what does not is broken off, and kept as far as it came."""
        await self.sends.close(grace)
        await self.chat.close()


def chat_service(
    engine: Engine,
    hub: Hub,
    logbook: Logbook,
    *,
    catalog: Catalog,
    has_key: Callable[[Provider], bool],
    settings: ChatSettings,
    make_id: Callable[[], str],
    default_model: str = "",
    answering: Answerer | None = None,
    process: str = "",
    is_alive: Callable[[str], bool] = lambda _process: True,
) -> ChatService:
    """The chat of a logbook; it is read when it is first asked for. `process` is a name that no other process has, with
    its machine before a colon, and `is_alive` tells of such a name of this machine whether that process still runs."""
    asking = answering or DirectAnswerer(engine)
    chat = Chat(
        logbook,
        hub,
        settings=settings,
        now=engine.clock.now,
        make_id=make_id,
        secrets=engine.relay.secrets,
        process=process,
        is_alive=is_alive,
    )
    chat.recover(partial(interrupted_ending, asking, engine.clock.now))
    models = Models(catalog, has_key, engine.memory, default_model)
    views = Views(chat, models, asking)
    return ChatService(
        chat,
        views,
        Sends(chat, views, models, engine=engine, hub=hub, answering=asking),
        Previews(views, engine),
        Compacting(chat, views, engine),
    )
