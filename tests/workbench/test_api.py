import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.desk_stage import DeskStage, desk_stage

CALLS = [
    ("GET", "/api/exchanges"),
    ("GET", "/api/exchanges/{id}"),
    ("GET", "/api/exchanges/{id}/body"),
    ("GET", "/api/exchanges/{id}/body?of=held"),
    ("GET", "/api/exchanges/{id}/reply"),
    ("GET", "/api/exchanges/{id}/diff"),
    ("POST", "/api/exchanges/{id}/edits"),
    ("POST", "/api/exchanges/{id}/release"),
    ("POST", "/api/exchanges/{id}/drop"),
    ("POST", "/api/exchanges/{id}/answer"),
    ("POST", "/api/exchanges/{id}/replay"),
    ("GET", "/api/rules"),
    ("PUT", "/api/rules"),
    ("GET", "/api/masks"),
    ("PUT", "/api/masks"),
    ("GET", "/api/interception"),
    ("PUT", "/api/interception"),
    ("GET", "/api/holds"),
    ("GET", "/api/filter"),
    ("GET", "/api/about"),
    ("GET", "/api/events"),
]
BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeskStage]:
    with desk_stage(tmp_path_factory.mktemp("api")) as made:
        yield made


@pytest.fixture(scope="module")
def held(stage: DeskStage) -> Iterator[str]:
    exchange, waiting = stage.hold(BODY)
    yield exchange
    stage.person.act(exchange, "drop")
    waiting.result(20)


def asked(stage: DeskStage, method: str, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    at = urlsplit(stage.server.url)
    connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=20)
    try:
        connection.request(method, path, b"{}" if method != "GET" else None, headers)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_whoever_has_no_token_or_comes_from_elsewhere_is_let_into_nothing(
    stage: DeskStage, held: str, method: str, path: str
) -> None:
    path = path.replace("{id}", held)
    token = f"Bearer {stage.server.token}"
    refused = [
        (401, {}),
        (401, {"authorization": "Bearer wrong"}),
        (401, {"authorization": f"Basic {stage.server.token}"}),
        (403, {"authorization": token, "host": "evil.example"}),
        (403, {"authorization": token, "origin": "http://evil.example"}),
        (403, {"authorization": token, "origin": "null"}),
        (403, {"authorization": token, "sec-fetch-site": "cross-site"}),
        (403, {"host": "evil.example"}),
    ]
    for status, headers in refused:
        got, told, body = asked(stage, method, path, **headers)
        assert (got, set(json.loads(body)["error"])) == (status, {"code", "message", "hint"})
        assert "access-control-allow-origin" not in told
    assert stage.person.view(held)["state"] == "held"


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_another_method_is_told_which_one_is_right(stage: DeskStage, held: str, method: str, path: str) -> None:
    path = path.replace("{id}", held)
    status, headers, body = asked(stage, "DELETE", path, authorization=f"Bearer {stage.server.token}")
    assert status == 405
    assert method in headers["allow"]
    assert json.loads(body)["error"]["hint"]


@pytest.mark.parametrize(
    "path", ["/api/nothing", "/api/exchanges/x/nothing", "/api/rules/1", "/api/exchanges/x/body/1"]
)
def test_what_is_not_there_is_not_found(stage: DeskStage, path: str) -> None:
    for method in ("GET", "POST", "PUT"):
        assert asked(stage, method, path, authorization=f"Bearer {stage.server.token}")[0] == 404


def test_every_call_is_documented() -> None:
    told = (Path(__file__).parents[2] / "docs/reference/http.md").read_text("utf-8")
    for _, path in CALLS:
        assert path.partition("?")[0] in told
