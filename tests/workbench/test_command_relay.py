import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.facts import Facts
from sightline.catalog.provider import Provider
from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.relay import Relay
from sightline.exchange.relay_messages import (
    EndFrame,
    FactFrame,
    Frame,
    FrameReader,
    HeadFrame,
    PieceFrame,
    RelayCall,
    WaitCall,
    read_fact_entry,
    read_fault,
    read_message,
    write_call,
)
from sightline.tokens.ledger import Ledger, Wait
from sightline.workbench.command_relay import MOST_OTHERS, CommandCalls
from tests.fake_clock import FakeClock
from tests.gateway_server import Served, served
from tests.http_call import Answer, call
from tests.relay_stage import asks
from tests.upstream import LAST, Upstream, chunk, cut, head, pieces, says

KEY = "the-configured-key-0815"
WHOLE = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}
SSE = [("Content-Type", "text/event-stream")]


@pytest.fixture
def server(acme: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("ACME_KEY", KEY)
    config = f'[providers.acme]\nbase_url = "{acme.url}/v1"\nkey_env = "ACME_KEY"\n'
    with served(tmp_path, config) as gateway:
        yield gateway


def called(server: Served, path: str, data: bytes, *, token: str = "", method: str = "POST") -> Answer:
    packed = {"content-type": "application/msgpack"}
    return call(method, server.url + path, data, token=token or server.token, headers=packed)


def relayed(server: Served, asked: ClientRequest, **more: Any) -> list[Frame]:
    data = write_call(RelayCall(asked=asked, **more))
    return list(FrameReader().feed(called(server, "/api/relay", data).body))


def test_facts_head_and_body_come_in_their_order(server: Served, acme: Upstream) -> None:
    acme.script = [says({"error": {"message": "busy"}}, 503), says(WHOLE)]
    frames = relayed(server, asks("openai-chat", provider="acme", session="s", is_own=True))
    kinds = [type(read_fact_entry(each.noted).fact).__name__ for each in frames if isinstance(each, FactFrame)]
    assert kinds == ["Received", "AttemptStarted", "AttemptStarted", "ExchangeFinished"]
    heads = [each for each in frames if isinstance(each, HeadFrame)]
    assert [(each.status, each.fault) for each in heads] == [(200, None)]
    assert json.loads(b"".join(each.data for each in frames if isinstance(each, PieceFrame))) == WHOLE
    assert frames[-1] == EndFrame()
    assert server.api(f"/api/exchanges/{heads[0].exchange}")["state"] == "finished"
    assert acme.seen[-1].header("authorization") == f"Bearer {KEY}"


def test_what_is_not_to_be_recorded_is_not(server: Served, acme: Upstream) -> None:
    acme.script = [says(WHOLE)]
    frames = relayed(server, asks("openai-chat", provider="acme"), is_recorded=False)
    assert frames[-1] == EndFrame()
    assert server.api("/api/exchanges")["exchanges"] == []


def test_faults_are_sent_along_with_the_error_in_the_client_dialect(server: Served, acme: Upstream) -> None:
    acme.script = [says({"error": {"message": "no"}}, 401), cut(head(200, SSE), chunk(b": hi\n\n"), how="eof")]
    [refused] = [each for each in relayed(server, asks("openai-chat", provider="acme")) if isinstance(each, HeadFrame)]
    assert read_fault(refused.fault).code is Code.AUTH
    frames = relayed(server, asks("openai-chat", provider="acme", stream=True))
    faults = [each.fault for each in frames if isinstance(each, PieceFrame | EndFrame) and each.fault is not None]
    assert len(faults) == 1


def test_only_the_token_opens_it_and_nothing_else_is_understood(server: Served) -> None:
    for path in ("/api/relay", "/api/relay/wait"):
        for status, data, more in (
            (401, b"", {"token": "not-the-token-not-the-token"}),
            (400, b"\xc0", {}),
            (405, None, {"method": "GET"}),
        ):
            refused = called(server, path, cast(bytes, data), **cast(Any, more))
            assert refused.status == status, (path, refused)


def test_rate_limit_wait_is_returned(server: Served) -> None:
    asked = WaitCall("acme", "m", 900, Facts(tpm=100))
    wait = read_message(called(server, "/api/relay/wait", write_call(asked)).body, Wait)
    assert wait.is_endless
    assert wait.limit == "tpm"


# --- who sends ---


def relays() -> tuple[CommandCalls, list[tuple[str, Provider, dict[str, str], bool]]]:
    made: list[tuple[str, Provider, dict[str, str], bool]] = []

    def make_relay(name: str, provider: Provider, environment: Any, like: Relay) -> Relay:
        made.append((name, provider, dict(environment), like == cast(Relay, "own")))
        return cast(Relay, object())

    return (
        CommandCalls(
            cast(Relay, "own"),
            cast(Relay, "aside"),
            catalog=Catalog(providers={"acme": ACME, "bare": BARE, "local": LOCAL}),
            environment={"ACME_KEY": "of-the-server", "AWS_SECRET": "never"},
            make_relay=make_relay,
            ledger=Ledger(),
            clock=FakeClock(),
        ),
        made,
    )


ACME = Provider(base_url="https://acme.test/v1", key_env="ACME_KEY")
BARE = Provider(base_url="https://bare.test/v1", key_env="BARE_KEY")
LOCAL = Provider(embedded=True)


def relay_call(name: str, provider: Provider | None, *, is_recorded: bool = True, **variables: str) -> RelayCall:
    asked = asks("openai-chat", provider=name)
    return RelayCall(asked=asked, provider=provider, variables=variables, is_recorded=is_recorded)


def test_provider_known_to_both_sides_uses_the_server_key() -> None:
    known, made = relays()
    assert known.relay_for(relay_call("acme", ACME, ACME_KEY="of-the-command")) == cast(Relay, "own")
    assert known.relay_for(relay_call("acme", ACME, is_recorded=False)) == cast(Relay, "aside")
    assert known.relay_for(relay_call("", None)) == cast(Relay, "own")
    assert known.relay_for(relay_call("local", LOCAL)) == cast(Relay, "own")
    assert made == []


def test_a_key_that_the_server_lacks_comes_from_the_command() -> None:
    known, made = relays()
    first = known.relay_for(relay_call("bare", BARE, BARE_KEY="brought"))
    assert known.relay_for(relay_call("bare", BARE, BARE_KEY="brought")) is first
    assert known.relay_for(relay_call("bare", BARE)) == cast(Relay, "own"), "which says that the key is not set"
    assert known.relay_for(relay_call("bare", BARE, BARE_KEY="another")) is not first
    assert [environment["BARE_KEY"] for _, _, environment, _ in made] == ["brought", "another"]


def test_no_key_of_the_server_goes_to_an_address_of_the_commands() -> None:
    known, made = relays()
    evil = Provider(base_url="https://evil.test/v1", key_env="AWS_SECRET")
    known.relay_for(relay_call("acme", evil))
    known.relay_for(relay_call("new", evil, is_recorded=False))
    assert made == [("acme", evil, {}, True), ("new", evil, {}, False)]
    with pytest.raises(Fault, match="no embedded model"):
        known.relay_for(relay_call("acme", LOCAL))


def test_few_of_them_are_kept() -> None:
    known, made = relays()
    for number in range(MOST_OTHERS + 1):
        known.relay_for(relay_call("bare", BARE, BARE_KEY=str(number)))
    known.relay_for(relay_call("bare", BARE, BARE_KEY=str(MOST_OTHERS)))
    assert len(made) == MOST_OTHERS + 1
    known.relay_for(relay_call("bare", BARE, BARE_KEY="0"))
    assert len(made) == MOST_OTHERS + 2


def test_server_shutdown_is_reported_to_running_commands(server: Served, acme: Upstream) -> None:
    gate = asyncio.Event()
    acme.script = [pieces(head(200, SSE), chunk(b": hi\n\n"), gate, LAST)]
    other = Provider(base_url=f"{acme.url}/v1")
    data = write_call(RelayCall(asked=asks("openai-chat", provider="mine", stream=True), provider=other))
    headers = {"authorization": f"Bearer {server.token}"}
    request = urllib.request.Request(f"{server.url}/api/relay", data, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        reader = FrameReader()
        frames: list[Frame] = []
        while not any(isinstance(each, PieceFrame) for each in frames):
            frames += reader.feed(answer.read1(65536))
        server.listening.end()
        frames += reader.feed(answer.read())
    assert isinstance(frames[-1], EndFrame)
    last = [each for each in frames if isinstance(each, PieceFrame | EndFrame) and each.fault is not None]
    assert last
    assert "shutting down" in read_fault(cast(bytes, last[0].fault)).message
