import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.provider import Provider
from sightline.wire.call import HttpRequest
from sightline.workbench.providers import Providers
from tests.background import upstream_in_background
from tests.gateway_server import Served, served
from tests.shared_servers import free_port
from tests.upstream import Upstream, says

CATALOG = Catalog(
    providers={
        "far": Provider(base_url="https://far.test/v1", key_env="FAR_KEY"),
        "lost": Provider(base_url="https://lost.test/v1", key_env="LOST_KEY", key_help="Ask at the desk."),
        "open": Provider(base_url="https://open.test/v1"),
        "here": Provider(base_url="http://127.0.0.1:1/v1"),
        "claude": Provider(base_url="http://localhost:2", dialect="anthropic"),
        "named": Provider(base_url="${NAMED_URL}/v1"),
        "local": Provider(embedded=True, default_model="smol"),
    }
)


def test_those_on_this_machine_are_asked_and_others_are_not() -> None:
    asked: list[str] = []

    async def probe(request: HttpRequest) -> str:
        asked.append(f"{request.method} {request.url}")
        return "" if ":1/" in request.url else "Nothing listens there."

    async def embedded() -> str:
        return "It starts with its first request."

    found = Providers(CATALOG, lambda each: each.key_env != "LOST_KEY", {}, probe, embedded)
    told = {each.name: (each.ready, each.why) for each in asyncio.run(found.list_providers())}
    assert told == {
        "far": (True, "FAR_KEY is set."),
        "lost": (False, "LOST_KEY is not set. Ask at the desk."),
        "open": (True, "The client's own credential is passed on."),
        "here": (True, ""),
        "claude": (False, "Nothing listens there."),
        "named": (False, "the variable NAMED_URL is not set."),
        "local": (False, "It starts with its first request."),
    }
    assert asked == ["GET http://127.0.0.1:1/v1/models", "GET http://localhost:2/v1/models"]


@pytest.fixture
def acme() -> Iterator[Upstream]:
    with upstream_in_background() as upstream:
        yield upstream


@pytest.fixture
def server(acme: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.delenv("SIGHTLINE_LOCAL_URL", raising=False)
    config = f'[providers.up]\nbase_url = "{acme.url}/v1"\n[providers.down]\nbase_url = "http://127.0.0.1:{free_port()}/v1"\n'
    with served(tmp_path, config) as gateway:
        yield gateway


def test_the_server_asks_when_it_is_asked(server: Served, acme: Upstream) -> None:
    acme.script = [says({"data": []})]
    told = {each["name"]: (each["ready"], each["why"]) for each in server.api("/api/providers")}
    assert told["up"] == (True, "")
    assert told["down"][0] is False
    assert told["down"][1].startswith("Nothing listens at 127.0.0.1:")
    assert told["local"][0] is False, "it has not been started"
    assert [seen.target for seen in acme.seen] == ["/v1/models"]
