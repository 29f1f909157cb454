"""The workbench put together from what it shows and acts on; the same for the program and for its tests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from sightline.catalog.catalog import Catalog
from sightline.catalog.provider import Provider
from sightline.engine.holds import Holds
from sightline.engine.hub import Hub
from sightline.engine.memory import Memory
from sightline.engine.recording.records import Records
from sightline.engine.relay import Relay
from sightline.engine.resending import Resending
from sightline.engine.viewing import Viewing
from sightline.server.workbench.about import about
from sightline.server.workbench.access import Access
from sightline.server.workbench.api import Api
from sightline.server.workbench.chatting.calls import ChatParts, chat_calls
from sightline.server.workbench.deciding import Deciding
from sightline.server.workbench.documents import Documents
from sightline.server.workbench.evaluating.calls import Evals, eval_calls
from sightline.server.workbench.exchanges import Exchanges
from sightline.server.workbench.interceptions import Interceptions
from sightline.server.workbench.learned import learned_calls
from sightline.server.workbench.providers import Providers
from sightline.server.workbench.relaying import CommandCalls
from sightline.server.workbench.replays import Replays
from sightline.server.workbench.routes import Calls
from sightline.server.workbench.runs import Runs, run_calls
from sightline.server.workbench.shapes import Place
from sightline.server.workbench.showing import Showing
from sightline.server.workbench.workbench import Workbench
from sightline.store.folding import PriceList
from sightline.store.store import Store


@dataclass(frozen=True, slots=True)
class Parts:
    """What a workbench is made of. `relay`, `resending`, `chat`, `runs`, `evals` and `commands` are absent where the
    server answers from the record: then nothing is held and nothing is sent."""

    access: Access
    hub: Hub
    store: Store
    memory: Memory
    catalog: Catalog
    has_key: Callable[[Provider], bool]
    address: str
    now: Callable[[], float]
    prices: PriceList
    relay: Relay | None = None
    resending: Resending | None = None
    chat: ChatParts | None = None
    runs: Runs | None = None
    evals: Evals | None = None
    commands: CommandCalls | None = None
    providers: Providers | None = None
    toolsets: Sequence[str] = ()


def assembled(parts: Parts) -> Workbench:
    """The workbench."""
    relay = parts.relay
    holds = Holds(parts.memory, parts.now) if relay is None else relay.holds
    records = Records(parts.store, parts.now, parts.prices, None if relay is None else relay.unwritten)
    exchanges = Exchanges(records, parts.now, holds)
    viewing = Viewing(holds, records, parts.catalog, parts.memory)
    showing = Showing(holds, records, viewing)
    api = Api(
        exchanges=exchanges,
        showing=showing,
        replays=Replays(exchanges, parts.resending),
        documents=Documents(parts.resending),
        about=lambda: about(
            version("sightline"),
            parts.address,
            parts.catalog,
            parts.has_key,
            places=_places(parts),
            toolsets=parts.toolsets,
        ),
        deciding=None if relay is None else Deciding(holds, records, viewing, showing),
        interceptions=None if relay is None else Interceptions(holds),
        further={
            **learned_calls(parts.memory, None if relay is None else relay.learned),
            **({} if parts.chat is None else chat_calls(parts.chat, records)),
            **({} if parts.runs is None else run_calls(parts.runs)),
            **({} if parts.evals is None else eval_calls(parts.evals)),
            **({} if parts.providers is None else _provider_calls(parts.providers)),
        },
    )
    return Workbench(parts.access, api, parts.hub, lambda: exchanges.trouble, parts.commands)


def _provider_calls(providers: Providers) -> Calls:
    return {"providers": {"GET": lambda _call: providers.listed()}}


def _places(parts: Parts) -> tuple[Place, ...]:
    """What the page can open here."""
    others: tuple[tuple[Place, object], ...] = (("chat", parts.chat), ("runs", parts.runs), ("evals", parts.evals))
    return ("traffic", *(place for place, part in others if part is not None))
