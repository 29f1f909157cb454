"""The API calls of the workbench by path and method."""

from collections.abc import Callable

from sightline.errors import Code, Fault
from sightline.web import replies
from sightline.web.asgi import AsgiScope, Receive, WebResponse
from sightline.web.bodies import Query
from sightline.web.routes import ApiCall, Calls, Handler, Routes
from sightline.workbench.exchange_views import Showing
from sightline.workbench.exchanges import Documents, Exchanges, Filtering, Replays
from sightline.workbench.interceptions import HoldDecisions, Interceptions
from sightline.workbench.shapes import About

READING = ("GET", "HEAD")


class Api:
    """`deciding` and `interceptions` are None if this server answers from the record: nothing is held there. `further`
    are the calls of the page's other views."""

    def __init__(
        self,
        *,
        exchanges: Exchanges,
        showing: Showing,
        replays: Replays,
        documents: Documents,
        about: Callable[[], About],
        deciding: HoldDecisions | None = None,
        interceptions: Interceptions | None = None,
        further: Calls | None = None,
    ) -> None:
        filtering = Filtering(exchanges)

        async def tell_about() -> About:
            return about()

        self._routes = Routes(
            {
                "exchanges": {
                    "GET": lambda call: exchanges.list_exchanges(Query(call.query)),
                    "POST": lambda call: documents.open(call.receive),
                },
                "exchanges/*": {"GET": lambda call: showing.view(call.name, Query(call.query))},
                "exchanges/*/body": {"GET": lambda call: exchanges.body(call.name, Query(call.query))},
                "exchanges/*/reply": {"GET": lambda call: showing.reply(call.name)},
                "exchanges/*/diff": {"GET": lambda call: showing.diff(call.name, Query(call.query))},
                "exchanges/*/replay": {"POST": lambda call: replays.start(call.name, call.receive)},
                "filter": {"GET": lambda call: filtering.describe(Query(call.query))},
                "about": {"GET": lambda _call: tell_about()},
                **_deciding(deciding),
                **_intercepting(interceptions),
                **(further or {}),
            }
        )

    async def answer(self, scope: AsgiScope, receive: Receive) -> WebResponse:
        """Handle one call; a Fault becomes an error response."""
        query = scope["query_string"].decode("latin-1")
        found = self._routes.find(scope["raw_path"].decode("latin-1").removeprefix("/api").strip("/"))
        if found is None:
            return replies.failure(replies.not_found(f"{scope['method']} {scope['raw_path'].decode('latin-1')[:200]}"))
        methods, names = found
        handler = methods.get("GET" if scope["method"] in READING else scope["method"])
        if handler is None:
            return replies.wrong_method(scope["method"], *(READING if tuple(methods) == ("GET",) else tuple(methods)))
        try:
            value = await handler(ApiCall(names, query, receive))
        except Fault as fault:
            return replies.failure(fault)
        return value if isinstance(value, WebResponse) else replies.json(value)


def _deciding(deciding: HoldDecisions | None) -> Calls:
    if deciding is None:
        order: dict[str, Handler] = {"POST": lambda _call: _nothing_held()}
        return {f"exchanges/*/{name}": order for name in ("edits", "release", "drop", "answer")}

    async def waiting() -> tuple[str, ...]:
        return deciding.waiting

    return {
        "exchanges/*/edits": {"POST": lambda call: deciding.edit(call.name, Query(call.query), call.receive)},
        "exchanges/*/release": {"POST": lambda call: deciding.release(call.name, call.receive)},
        "exchanges/*/drop": {"POST": lambda call: deciding.drop(call.name, call.receive)},
        "exchanges/*/answer": {"POST": lambda call: deciding.answer(call.name, call.receive)},
        "holds": {"GET": lambda _call: waiting()},
    }


def _intercepting(interceptions: Interceptions | None) -> Calls:
    if interceptions is None:
        return {}

    def telling(ask: Callable[[], object]) -> Handler:
        async def handle(_call: ApiCall) -> object:
            return ask()

        return handle

    return {
        "interception": {
            "GET": telling(lambda: interceptions.mode),
            "PUT": lambda call: interceptions.set_mode(call.receive),
        },
        "rules": {
            "GET": telling(lambda: interceptions.rules),
            "PUT": lambda call: interceptions.set_rules(call.receive),
        },
        "masks": {
            "GET": telling(lambda: interceptions.masks),
            "PUT": lambda call: interceptions.set_masks(call.receive),
        },
        "masks/*": {"DELETE": lambda call: interceptions.remove_mask(call.name)},
    }


async def _nothing_held() -> object:
    hint = "Start `sightline serve` without --replay."
    raise Fault(Code.USAGE, "this server answers from the record and holds nothing", hint=hint, status=409)
