import asyncio

import pytest

from sightline.transport.http.client import HttpClient
from sightline.transport.http.proxies import Proxies
from sightline.transport.http.trust import Trust
from sightline.transport.probing import probe
from sightline.wire.call import HttpRequest
from tests.shared_servers import free_port
from tests.upstream import Play, Upstream, answer, cut, says


def asked(step: Play | None) -> tuple[str, str]:
    async def story() -> tuple[str, str]:
        async with Upstream() as server, HttpClient(trust=Trust(environment={}), proxies=Proxies.of({})) as client:
            server.script = [step or cut()]
            url = server.url if step is not None else f"http://127.0.0.1:{free_port()}"
            why = await probe(client, HttpRequest("GET", f"{url}/v1/models", (), b""))
            return why, url.removeprefix("http://")

    return asyncio.run(story())


@pytest.mark.parametrize("step", [says({"data": []}), says({"error": {}}, 401)])
def test_what_lists_its_models_or_wants_a_key_answers(step: Play) -> None:
    assert asked(step)[0] == ""


def test_another_server_at_the_same_place_is_none_of_ours() -> None:
    why, place = asked(answer(404, b"<html>"))
    assert why == f"What listens at {place} has no list of models (status 404)."


def test_nobody_there_is_said() -> None:
    why, place = asked(None)
    assert why == f"Nothing listens at {place}."
    why, place = asked(cut(how="eof"))
    assert why.startswith(f"{place} does not answer: ")
