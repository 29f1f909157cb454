"""A relay in another process: the requests of a command are sent by the server that runs with the same data folder.

The server's mode, rules, masks and limits thus apply to them, they are in its record, and its embedded model answers.
The command hands over the composed request byte for byte; the server treats it as a client's request, except that
retries are those of Sightline's own requests. The command itself retries nothing.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import ModelChoice
from sightline.catalog.loading import variables_in
from sightline.editing.comparing import SectionChange
from sightline.editing.masks import Mask
from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest, session_of
from sightline.exchange.client_response import ClientResponse, ResponseBody
from sightline.exchange.interception.hold import Release
from sightline.exchange.interception.kept_edits import FinalBody, final_body
from sightline.exchange.outbound import secrets_of_provider
from sightline.exchange.recorder import FactObserver
from sightline.exchange.relay_messages import (
    PATH,
    WAIT_PATH,
    EndFrame,
    FactFrame,
    Frame,
    FrameReader,
    HeadFrame,
    PieceFrame,
    RelayCall,
    WaitCall,
    read_changes,
    read_fact_entry,
    read_fault,
    read_message,
    write_call,
)
from sightline.model.exchange import Held, Released
from sightline.model.json import Json
from sightline.store.entries import FactEntry
from sightline.tokens.ledger import Ledger, Wait
from sightline.transport.http.client import HttpClient, Response
from sightline.transport.http.target import Timeouts
from sightline.transport.waiting import Clock
from sightline.wire.call import HttpRequest
from sightline.wire.jsontext import decode

_NO_TIMEOUT = Timeouts(connect=5.0, first_byte=0, idle=0)
"""A held request waits for a user. The connection shows whether the server, which is on this machine, is alive."""

_LONGEST_REFUSAL = 1 << 20


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server of this data folder, and the token that grants access to it."""

    url: str
    token: str

    def link_to(self, exchange: str) -> str:
        """The link that opens an exchange on the server's page."""
        return f"{self.url}/?token={self.token}#/x/{quote(exchange, safe='')}"


@dataclass(frozen=True, slots=True)
class RemoteHold:
    """A request, or the tool calls of its reply, at the moment of its release."""

    phase: Literal["request", "tool_calls"]
    draft: Release
    changes: tuple[SectionChange, ...] = ()


class RemoteHolds:
    """What is known here about the holds of the server: bodies that were changed before their release. `masks` is
    empty, because the server applies them."""

    masks: tuple[Mask, ...] = ()

    def __init__(self) -> None:
        self.released: dict[str, RemoteHold] = {}
        """By exchange, while observers are notified of its release."""

    def find(self, exchange: str) -> RemoteHold | None:
        """The hold of an exchange that is being released with another body than the one that was sent; None if there is
        none."""
        return self.released.get(exchange)


class RemoteRelay:
    """Sends through `server`. `catalog` and `environment` are the command's own; `ledger` counts what is sent, so that
    work in this process can be paced. `on_held` gets the link of each request that waits for a user. `masks` are those
    of the data folder, for previews; `observer` observes runs of this process from outside."""

    def __init__(
        self,
        server: RunningServer,
        client: HttpClient,
        *,
        catalog: Catalog,
        environment: Mapping[str, str],
        ledger: Ledger,
        clock: Clock,
        on_held: Callable[[str], None],
        masks: tuple[Mask, ...] = (),
        observer: object | None = None,
        is_recorded: bool = True,
    ) -> None:
        self.holds = RemoteHolds()
        self._server = server
        self._client = client
        self._catalog = catalog
        self._environment = environment
        self._ledger = ledger
        self._clock = clock
        self._on_held = on_held
        self._masks = masks
        self.observer = observer
        self._is_recorded = is_recorded
        keys = (key for each in catalog.providers.values() for key in secrets_of_provider(each, environment))
        self.secrets = tuple(dict.fromkeys(keys))

    async def start(self, request: ClientRequest, observer: FactObserver | None = None) -> ClientResponse:
        """Let the server send the request; the head of the response is complete when this returns. `observer` gets each
        fact except frames."""
        response = await self._call(PATH, self._relay_call(request))
        frames = self._read_frames(response)
        sent = self._ledger.add_request(request.provider, request.model, request.tokens, self._clock.now())
        try:
            while not isinstance(frame := await anext(frames), HeadFrame):
                if isinstance(frame, FactFrame):
                    self._on_fact_frame(frame, observer)
        except BaseException:
            await response.close()
            raise
        named = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in frame.headers}
        self._ledger.observe_headers(request.provider, request.model, named, self._clock.now())
        if frame.status >= 400:
            self._ledger.settle(sent, 0, self._clock.now())
        fault = None if frame.fault is None else read_fault(frame.fault)
        body = _RemoteBody(response, frames, lambda fact: self._on_fact_frame(fact, observer))
        body.relayed = ClientResponse(frame.exchange, frame.status, list(frame.headers), body, fault=fault)
        return body.relayed

    def final_body(self, request: ClientRequest) -> FinalBody:
        """The body that the server sends for this request, after its masks."""
        spoken, session = request.dialect, session_of(request)
        return final_body(request.body, spoken, request.model, self._masks if request.masks else (), session=session)

    async def wait(self, choice: ModelChoice, tokens: int) -> Wait:
        """How long a request of this size must wait, by the ledger of the server, which knows all requests."""
        response = await self._call(WAIT_PATH, WaitCall(choice.provider_name, choice.model, tokens, choice.facts))
        try:
            return read_message(await response.read(), Wait)
        except Fault as fault:
            raise fault if fault.code is Code.CONFIG else self._server_ended() from None

    def _relay_call(self, request: ClientRequest) -> RelayCall:
        provider = self._catalog.providers.get(request.provider)
        names = () if provider is None or provider.embedded else variables_in(provider)
        variables = {name: value for name in names if (value := self._environment.get(name, "").strip())}
        return RelayCall(asked=request, provider=provider, variables=variables, is_recorded=self._is_recorded)

    async def _call(self, path: str, call: RelayCall | WaitCall) -> Response:
        headers = (("authorization", f"Bearer {self._server.token}"), ("content-type", "application/msgpack"))
        request = HttpRequest("POST", self._server.url + path, headers, write_call(call))
        try:
            response = await self._client.send(request, _NO_TIMEOUT, past_proxy=True)
        except Fault:
            raise self._server_ended() from None
        if response.status != 200:
            raise await self._refusal_of(response)
        return response

    async def _read_frames(self, response: Response) -> AsyncIterator[Frame]:
        """The frames of a response as they arrive. A broken connection means that the server has ended."""
        reader = FrameReader()
        while True:
            try:
                data = await anext(response, b"")
            except Fault:
                data = b""
            if not data:
                raise self._server_ended()
            for frame in reader.feed(data):
                yield frame

    def _on_fact_frame(self, frame: FactFrame, observer: FactObserver | None) -> None:
        fact: FactEntry = read_fact_entry(frame.noted)
        if isinstance(fact.fact, Held):
            self._on_held(self._server.link_to(fact.exchange))
        if observer is None:
            return
        if isinstance(fact.fact, Released) and frame.body is not None:
            draft = Release(frame.body, fact.fact.sha256)
            self.holds.released[fact.exchange] = RemoteHold(frame.phase, draft, read_changes(frame.changes))
        try:
            observer(fact)
        finally:
            self.holds.released.pop(fact.exchange, None)

    async def _refusal_of(self, response: Response) -> Fault:
        try:
            document: Json = decode(await response.read(_LONGEST_REFUSAL))
        except Fault:
            document = None
        error = document.get("error") if isinstance(document, dict) else None
        words = error.get("message") if isinstance(error, dict) else None
        hint = "Is it another version of Sightline? Start it again, or send from this process with --apart."
        why = words if isinstance(words, str) and words else f"status {response.status}"
        return Fault(Code.CONFIG, f"the running server at {self._server.url} does not send this: {why}", hint=hint)

    def _server_ended(self) -> Fault:
        hint = "Start it again and repeat the command, or send from this process with --apart."
        message = f"the running server at {self._server.url} ended before the answer was complete"
        return Fault(Code.NETWORK, message, hint=hint)


class _RemoteBody(ResponseBody):
    """The body contained in the frames of a response; `relayed` is the response, once it is made."""

    relayed: ClientResponse

    def __init__(self, response: Response, frames: AsyncIterator[Frame], tell: Callable[[FactFrame], None]) -> None:
        self._response = response
        self._frames = frames
        self._on_fact_frame = tell

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for frame in self._frames:
            match frame:
                case FactFrame():
                    self._on_fact_frame(frame)
                case PieceFrame(data=data, fault=fault):
                    if fault is not None:
                        self.relayed.fault = read_fault(fault)
                    yield data
                case EndFrame(fault=fault):
                    if fault is not None:
                        raise read_fault(fault)
                    return
                case HeadFrame():
                    pass  # there is only one, and it was read

    async def leave(self) -> None:
        await self._response.close()  # so that the server stops
