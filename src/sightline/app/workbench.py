"""The workbench put together from what it shows and acts on; the same for the program and for its tests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from sightline.agent.api.runs import Runs, run_calls
from sightline.catalog.catalog import Catalog
from sightline.catalog.provider import Provider
from sightline.chat.api.calls import ChatParts, chat_calls
from sightline.evals.api.calls import EvalCalls, eval_calls
from sightline.exchange.hub import Hub
from sightline.exchange.interception.holds import Holds
from sightline.exchange.interception.viewer import Viewer
from sightline.exchange.memory import Memory
from sightline.exchange.recording.records import Records
from sightline.exchange.relay import Relay
from sightline.exchange.resend import Resender
from sightline.store.folding import PriceList
from sightline.store.store import Store
from sightline.web.routes import Calls
from sightline.workbench.about import about
from sightline.workbench.access import Access
from sightline.workbench.api import Api
from sightline.workbench.calibration import calibration_calls
from sightline.workbench.command_relay import CommandCalls
from sightline.workbench.documents import Documents
from sightline.workbench.exchange_views import Showing
from sightline.workbench.exchanges import Exchanges
from sightline.workbench.hold_decisions import HoldDecisions
from sightline.workbench.interceptions import Interceptions
from sightline.workbench.providers import Providers
from sightline.workbench.replays import Replays
from sightline.workbench.shapes import Place
from sightline.workbench.workbench import Workbench


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
    resending: Resender | None = None
    chat: ChatParts | None = None
    runs: Runs | None = None
    evals: EvalCalls | None = None
    commands: CommandCalls | None = None
    providers: Providers | None = None
    toolsets: Sequence[str] = ()


def assemble_workbench(parts: Parts) -> Workbench:
    """The workbench."""
    relay = parts.relay
    holds = Holds(parts.memory, parts.now) if relay is None else relay.holds
    records = Records(parts.store, parts.now, parts.prices, None if relay is None else relay.unwritten)
    exchanges = Exchanges(records, parts.now, holds)
    viewing = Viewer(holds, records, parts.catalog, parts.memory)
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
        deciding=None if relay is None else HoldDecisions(holds, records, viewing, showing),
        interceptions=None if relay is None else Interceptions(holds),
        further={
            **calibration_calls(parts.memory, None if relay is None else relay.wait_until_learned),
            **({} if parts.chat is None else chat_calls(parts.chat, records)),
            **({} if parts.runs is None else run_calls(parts.runs)),
            **({} if parts.evals is None else eval_calls(parts.evals)),
            **({} if parts.providers is None else _provider_calls(parts.providers)),
        },
    )
    return Workbench(parts.access, api, parts.hub, lambda: exchanges.trouble, parts.commands)


def _provider_calls(providers: Providers) -> Calls:
    return {"providers": {"GET": lambda _call: providers.list_providers()}}


def _places(parts: Parts) -> tuple[Place, ...]:
    """What the page can open here."""
    others: tuple[tuple[Place, object], ...] = (("chat", parts.chat), ("runs", parts.runs), ("evals", parts.evals))
    return ("traffic", *(place for place, part in others if part is not None))
