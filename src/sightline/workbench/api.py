"""The API calls of the workbench by path and method, and what the page needs to know about this server: models,
providers, clients, dialects, and the calibration of token estimates."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from sightline.catalog.catalog import Catalog, facts_of
from sightline.catalog.clients import KNOWN_CLIENTS, KnownClient
from sightline.catalog.provider import Provider
from sightline.dialects.dialect import Dialect, Target
from sightline.dialects.endpoint import address
from sightline.dialects.registry import dialects
from sightline.errors import Code, Fault
from sightline.exchange.memory import Memory
from sightline.exchange.recording.formats import ShareFormat
from sightline.exchange.resend import Resender
from sightline.gateway.models import list_models
from sightline.model.json import Json
from sightline.model.parts import Text
from sightline.model.report import Report
from sightline.model.request import Message, Request
from sightline.tokens.calibration import Lesson
from sightline.transport.http.target import target
from sightline.web import replies
from sightline.web.asgi import AsgiScope, Receive, WebResponse
from sightline.web.bodies import Query, read_body
from sightline.web.routes import ApiCall, Calls, Handler, Routes
from sightline.wire.call import HttpRequest, RequestTemplate
from sightline.workbench.exchange_views import Showing
from sightline.workbench.exchanges import Exchanges, Forgetting, describe_filter, open_document, start_replay
from sightline.workbench.interceptions import HoldDecisions, Interceptions
from sightline.workbench.shapes import About, ClientShown, DialectShown, ModelShown, PanelShown, Place, ProviderShown


def about(
    version: str,
    address: str,
    catalog: Catalog,
    has_key: Callable[[Provider], bool],
    *,
    program: str = "sightline",
    places: tuple[Place, ...] = ("traffic",),
    toolsets: Sequence[str] = (),
    workers: int = 1,
    panels: Sequence[PanelShown] = (),
    formats: Iterable[ShareFormat] = (),
) -> About:
    """Describe this server for the page. `program` is how a shell starts this program."""
    models = [
        ModelShown(each.id.removeprefix(f"{each.provider}/"), each.provider, each.facts.context_window)
        for each in list_models(catalog, has_key)
    ]
    known = {(each.id, each.provider) for each in models}
    return About(
        version=version,
        address=address,
        places=places,
        models=(*models, *(each for each in _models_without_key(catalog) if (each.id, each.provider) not in known)),
        providers=tuple(_provider(name, each, has_key) for name, each in catalog.providers.items()),
        clients=tuple(_client(each, address, program) for each in KNOWN_CLIENTS),
        dialects=tuple(filter(None, (_dialect(each, catalog) for each in dialects()))),
        toolsets=tuple(toolsets),
        workers=workers,
        panels=tuple(panels),
        formats=tuple(formats),
        program=program,
    )


def _models_without_key(catalog: Catalog) -> Iterator[ModelShown]:
    """Configured models of providers that need no key. It is not known whether such a provider is running, so these
    models are not offered to clients; the user who configured them can choose them."""
    for owner, provider in catalog.providers.items():
        if not provider.key_env and not provider.embedded:
            own = (name.removeprefix(f"{owner}/") for name in catalog.models if name.startswith(f"{owner}/"))
            for model in dict.fromkeys(filter(None, (provider.default_model, *own))):
                yield ModelShown(model, owner, facts_of(catalog, owner, model).context_window)


def _client(client: KnownClient, address: str, program: str) -> ClientShown:
    command = f"{program} run -- {client.program}" if client.program else ""
    return ClientShown(client.title, command, client.environment(address), client.note)


def _provider(name: str, provider: Provider, has_key: Callable[[Provider], bool]) -> ProviderShown:
    if provider.embedded or has_key(provider):
        is_passed_on = not provider.embedded and not provider.has_credential
        return ProviderShown(name, ready=True, why="The client's own credential is passed on." if is_passed_on else "")
    return ProviderShown(name, ready=False, why=f"{provider.key_env} is not set. {provider.key_help}".strip())


def _dialect(dialect: Dialect, catalog: Catalog) -> DialectShown | None:
    """What the page needs to know about a dialect; None for a dialect of a failing plug-in, for which the page has no
    form."""
    editing = dialect.editing
    # If several providers are its home, the last one is used, as for routing.
    home = next((name for name, each in reversed(catalog.providers.items()) if dialect.name in each.home), "")
    messages: dict[str, Json] = {}
    for role in ("user", "assistant"):
        request = Request("", (Message(role, (Text("New message"),)),))
        try:
            body = dialect.write_request(request, Target(), Report())
        except Fault:
            return None
        written = body.get(editing.container) if isinstance(body, dict) else None
        if isinstance(written, list) and written:
            messages[role] = written[0]
    return DialectShown(
        name=dialect.name,
        label=dialect.name.removeprefix(f"{home}-"),
        home=home,
        container=editing.container,
        roles=tuple(editing.roles),
        messages=messages,
    )


Probe: TypeAlias = Callable[[HttpRequest], Awaitable[str]]
"""Returns why a server does not answer; empty if it does."""


@dataclass(frozen=True, slots=True)
class Providers:
    """Reports the state of each provider. `embedded` returns why the embedded model does not answer now; empty if it
    does."""

    catalog: Catalog
    has_key: Callable[[Provider], bool]
    environment: Mapping[str, str]
    probe: Probe
    embedded: Callable[[], Awaitable[str]]

    async def list_providers(self) -> tuple[ProviderShown, ...]:
        """The current state of each provider. One that is `ready` without a reason has answered."""
        return tuple(await asyncio.gather(*(self._provider_state(*each) for each in self.catalog.providers.items())))

    async def _provider_state(self, name: str, provider: Provider) -> ProviderShown:
        if provider.embedded:
            why = await self.embedded()
            return ProviderShown(name, ready=not why, why=why)
        if not self.has_key(provider):
            return _provider(name, provider, self.has_key)
        try:
            request = RequestTemplate("GET", address(provider, provider.dialect, "/models"), (), b"").fill(
                self.environment
            )
            is_here = target(request.url).origin.is_loopback
        except Fault as fault:
            return ProviderShown(name, ready=False, why=f"{fault.message}.")
        if is_here:
            why = await self.probe(request)
            return ProviderShown(name, ready=not why, why=why)
        why = f"{provider.key_env} is set." if provider.key_env else "The client's own credential is passed on."
        if provider.sign:
            why = f"Its requests are signed ({provider.sign})."
        return ProviderShown(name, ready=True, why=why)


class ForgetWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Forget the calibration of this model, given as `provider/model` or only its name; if empty, of all models."""

    model: str = ""


class LearnedShown(msgspec.Struct, frozen=True):
    """The calibration of each model: its estimates are multiplied by `factor`, plus `added`."""

    lessons: tuple[Lesson, ...]


class ForgottenShown(msgspec.Struct, frozen=True):
    """What was forgotten, by model and kind of request."""

    forgotten: tuple[str, ...]


def calibration_calls(memory: Memory, settle: Callable[[], Awaitable[None]]) -> Calls:
    """The calls that list and forget the calibration. `settle` waits until pending counts are learned, so that they are
    included."""

    async def lessons() -> LearnedShown:
        await settle()
        return LearnedShown(tuple(memory.lessons()))

    async def forget(call: ApiCall) -> ForgottenShown:
        body = await read_body(call.receive, ForgetWanted)
        await settle()
        return ForgottenShown(tuple(memory.forget(body.model)))

    return {"learned": {"GET": lambda _call: lessons()}, "learned/forget": {"POST": forget}}


class Api:
    """Answers API calls."""

    def __init__(self, calls: Calls) -> None:
        self._routes = Routes(calls)

    async def answer(self, scope: AsgiScope, receive: Receive) -> WebResponse:
        """Handle one call; a Fault becomes an error response."""
        query = scope["query_string"].decode("latin-1")
        found = self._routes.find(scope["raw_path"].decode("latin-1").removeprefix("/api").strip("/"))
        if found is None:
            return replies.failure(replies.not_found(f"{scope['method']} {scope['raw_path'].decode('latin-1')[:200]}"))
        methods, names = found
        handler = methods.get("GET" if scope["method"] in replies.READING else scope["method"])
        if handler is None:
            return replies.wrong_method(
                scope["method"], *(replies.READING if tuple(methods) == ("GET",) else tuple(methods))
            )
        try:
            value = await handler(ApiCall(names, query, receive))
        except Fault as fault:
            return replies.failure(fault)
        return value if isinstance(value, WebResponse) else replies.json(value)


def exchange_calls(exchanges: Exchanges, showing: Showing, resending: Resender | None, forgetting: Forgetting) -> Calls:
    """The calls about recorded exchanges. `resending` is None if this server answers from the record, because nothing
    is sent then."""
    return {
        "exchanges": {
            "GET": lambda call: exchanges.list_exchanges(Query(call.query)),
            "POST": lambda call: open_document(resending, call.receive),
        },
        "exchanges/*": {
            "GET": lambda call: showing.view(call.name, Query(call.query)),
            "DELETE": lambda call: forgetting.forget_one(call.name),
        },
        "snippets": {"GET": lambda call: exchanges.snippets(Query(call.query))},
        "forget": {"POST": lambda call: forgetting.forget(call.receive)},
        "exchanges/*/body": {"GET": lambda call: exchanges.body(call.name, Query(call.query))},
        "exchanges/*/reply": {"GET": lambda call: showing.reply(call.name)},
        "exchanges/*/diff": {"GET": lambda call: showing.diff(call.name, Query(call.query))},
        "exchanges/*/conversation": {"GET": lambda call: showing.conversation(call.name)},
        "exchanges/*/replay": {"POST": lambda call: start_replay(exchanges, resending, call.name, call.receive)},
        "filter": {"GET": lambda call: describe_filter(exchanges, Query(call.query))},
    }


def hold_calls(deciding: HoldDecisions | None) -> Calls:
    """The calls that act on held exchanges. `deciding` is None if nothing is held, and every action is refused."""
    if deciding is None:
        order: dict[str, Handler] = {"POST": lambda _call: _nothing_held()}
        return {f"exchanges/*/{name}": order for name in ("edits", "release", "drop", "answer")}

    return {
        "exchanges/*/edits": {"POST": lambda call: deciding.edit(call.name, Query(call.query), call.receive)},
        "exchanges/*/release": {"POST": lambda call: deciding.release(call.name, call.receive)},
        "exchanges/*/drop": {"POST": lambda call: deciding.drop(call.name, call.receive)},
        "exchanges/*/answer": {"POST": lambda call: deciding.answer(call.name, call.receive)},
        "holds": {"GET": read_only(lambda: deciding.waiting)},
    }


def interception_calls(interceptions: Interceptions) -> Calls:
    return {
        "interception": {
            "GET": read_only(lambda: interceptions.mode),
            "PUT": lambda call: interceptions.set_mode(call.receive),
        },
        "rules": {
            "GET": read_only(lambda: interceptions.rules),
            "PUT": lambda call: interceptions.set_rules(call.receive),
        },
        "masks": {
            "GET": read_only(lambda: interceptions.masks),
            "PUT": lambda call: interceptions.set_masks(call.receive),
            "POST": lambda call: interceptions.add_mask(call.receive),
        },
        "masks/*": {"DELETE": lambda call: interceptions.remove_mask(call.name)},
    }


def read_only(get: Callable[[], object]) -> Handler:
    """A call that only reads a value."""

    async def handle(_call: ApiCall) -> object:
        return get()

    return handle


async def _nothing_held() -> object:
    hint = "Start `sightline serve` without --replay."
    raise Fault(Code.USAGE, "this server answers from the record and holds nothing", hint=hint, status=409)
