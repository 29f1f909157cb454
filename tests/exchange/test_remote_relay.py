import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import choose
from sightline.catalog.facts import Model
from sightline.catalog.provider import Provider
from sightline.errors import Code, Fault
from sightline.exchange.relay_messages import (
    EndFrame,
    FactFrame,
    Frame,
    HeadFrame,
    PieceFrame,
    RelayCall,
    WaitCall,
    read_message,
    write_call,
    write_fact_entry,
    write_fault,
    write_frame,
)
from sightline.exchange.remote_relay import RemoteRelay, RunningServer
from sightline.model.exchange import AttemptStarted, Edited, Held, Released
from sightline.store.entries import FactEntry
from sightline.tokens.ledger import Ledger, Wait
from sightline.transport.http.client import HttpClient
from sightline.transport.http.dialling import Trust
from sightline.transport.http.target import Proxies
from tests.fake_clock import FakeClock
from tests.relay_stage import asks, taken
from tests.upstream import LAST, Upstream, answer, chunk, cut, head, pieces, says

ACME = Provider(base_url="https://acme.test/v1", key_env="ACME_KEY", env_headers={"x-team": "TEAM"})
CATALOG = Catalog(providers={"acme": ACME}, models={"m": Model(providers=("acme",), rpm=3)})
ENVIRONMENT = {"ACME_KEY": "the-secret", "OTHER_KEY": "not-yours"}


class Stage:
    """A remote relay whose server is a script."""

    def __init__(self, server: Upstream, client: HttpClient) -> None:
        self.server = server
        self.links: list[str] = []
        self.ledger = Ledger()
        self.relay = RemoteRelay(
            RunningServer(server.url, "tok"),
            client,
            catalog=CATALOG,
            environment=ENVIRONMENT,
            ledger=self.ledger,
            clock=FakeClock(),
            on_held=self.links.append,
        )


@asynccontextmanager
async def open_stage() -> AsyncIterator[Stage]:
    async with Upstream() as server, HttpClient(trust=Trust(environment={}), proxies=Proxies.of({})) as client:
        yield Stage(server, client)


def framed(*frames: Frame) -> Any:
    return pieces(head(200), *(chunk(write_frame(each)) for each in frames), LAST)


def fact(value: Any, **more: Any) -> FactFrame:
    return FactFrame(write_fact_entry(FactEntry("x", 0, 1.0, value)), **more)


HEAD = HeadFrame("x", 200, ((b"content-type", b"application/json"),))


async def test_a_request_goes_to_the_server_with_the_variables_of_its_provider_alone() -> None:
    async with open_stage() as stage:
        attempt = AttemptStarted(1, "acme", "abc", "", "", 0.0, "m", "openai-chat")
        stage.server.script = [framed(fact(attempt), HEAD, PieceFrame(b"{"), PieceFrame(b"}"), EndFrame())]
        told: list[FactEntry] = []
        asked = asks("openai-chat", provider="acme", tokens=9)
        got = await taken(await stage.relay.start(asked, told.append))
        assert (got.exchange, got.status, got.pieces) == ("x", 200, [b"{", b"}"])
        assert [noted.fact for noted in told] == [attempt]
        [seen] = stage.server.seen
        assert (seen.method, seen.target, seen.header("authorization")) == ("POST", "/api/relay", "Bearer tok")
        call = read_message(seen.body, RelayCall)
        assert (call.asked, call.provider, call.variables) == (asked, ACME, {"ACME_KEY": "the-secret"})
        assert stage.relay.secrets == ("the-secret",)
        assert stage.ledger.usage("acme", "m", 0.0).tpm == 9, "work here can be paced by it"


async def test_held_exchange_is_linked_and_released_body_readable_until_the_end() -> None:
    async with open_stage() as stage:
        stage.server.script = [
            framed(fact(Held()), fact(Edited("set_text", "a", "b")), fact(Released("b"), body=b"{}"), HEAD, EndFrame())
        ]
        drafts: list[Any] = []
        await taken(await stage.relay.start(asks("openai-chat"), lambda _: drafts.append(stage.relay.holds.find("x"))))
        assert stage.links == [f"{stage.server.url}/?token=tok#/x/x"]
        assert [None if each is None else (each.phase, each.draft.data, each.draft.sha256) for each in drafts] == [
            None,
            None,
            ("request", b"{}", "b"),
        ]
        assert stage.relay.holds.find("x") is None


async def test_faults_come_as_they_are() -> None:
    async with open_stage() as stage:
        refused = write_fault(Fault(Code.AUTH, "no key", status=401))
        stage.server.script = [
            framed(HeadFrame("x", 401, (), refused), PieceFrame(b"{}"), EndFrame()),
            framed(HEAD, PieceFrame(b"a", write_fault(Fault(Code.TIMEOUT_IDLE, "quiet"))), EndFrame()),
            framed(HEAD, EndFrame(write_fault(Fault(Code.UPSTREAM_PROTOCOL, "torn")))),
        ]
        first = await stage.relay.start(asks("openai-chat"))
        assert (first.fault.code, first.status) == (Code.AUTH, 401)
        second = await stage.relay.start(asks("openai-chat"))
        assert [piece async for piece in second] == [b"a"]
        assert second.fault.code is Code.TIMEOUT_IDLE
        with pytest.raises(Fault, match="torn"):
            await taken(await stage.relay.start(asks("openai-chat")))


@pytest.mark.parametrize(
    "step",
    [
        cut(),
        cut(head(200), how="eof"),
        cut(head(200), chunk(write_frame(HEAD)), how="eof"),
        pieces(head(200), chunk(write_frame(HEAD)), chunk(write_frame(PieceFrame(b"a"))), LAST),
    ],
)
async def test_server_that_ends_midway_is_reported(step: Any) -> None:
    async with open_stage() as stage:
        stage.server.script = [step]
        with pytest.raises(Fault, match="ended before the answer was complete") as caught:
            await taken(await stage.relay.start(asks("openai-chat")))
        assert caught.value.code is Code.NETWORK
        assert "--apart" in caught.value.hint
        assert len(stage.server.seen) == 1, "nothing is sent twice"


async def test_a_server_that_does_not_take_it_says_why() -> None:
    async with open_stage() as stage:
        stage.server.script = [says({"error": {"message": "no such call"}}, 404), answer(500, b"oops")]
        for why in ("no such call", "status 500"):
            with pytest.raises(Fault, match=f"does not send this: {why}") as caught:
                await stage.relay.start(asks("openai-chat"))
            assert caught.value.code is Code.CONFIG


async def test_limits_are_those_of_the_server() -> None:
    async with open_stage() as stage:
        stage.server.script = [answer(200, write_call(Wait(3.0, "used_up", "rpm", 3.0))), answer(200, b"\xc0"), cut()]
        choice = choose(CATALOG, "m", has_key=lambda _: True)
        assert await stage.relay.wait(choice, 70) == Wait(3.0, "used_up", "rpm", 3.0)
        [seen] = stage.server.seen
        asked = read_message(seen.body, WaitCall)
        assert (asked.provider, asked.model, asked.tokens, asked.facts.rpm) == ("acme", "m", 70, 3)
        with pytest.raises(Fault, match="do not understand"):
            await stage.relay.wait(choice, 70)
        with pytest.raises(Fault, match="ended before"):
            await stage.relay.wait(choice, 70)


async def test_a_provider_that_the_command_does_not_know_is_the_servers() -> None:
    async with open_stage() as stage:
        stage.server.script = [framed(HEAD, EndFrame())]
        await taken(await stage.relay.start(asks("openai-chat", provider="")))
        call = read_message(stage.server.seen[0].body, RelayCall)
        assert (call.provider, call.variables) == (None, {})
        assert json.loads(call.asked.body)["model"] == "m"
