"""What can be done with a raw exchange that is on record: show it, export it, find it and send it again."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.cli.program import main
from tests.gateway.test_raw_paths import ask
from tests.gateway_server import Served, served
from tests.person import Person
from tests.raw_upstream import RawRequest, RawUpstream, raw_upstream

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


def handle(request: RawRequest) -> None:
    if request.target.endswith("/picture"):
        request.read()
        request.answer(200, PNG, ("content-type", "image/png"))
    else:
        request.answer(200, b'{"got": "%b"}' % request.read()[:20].hex().encode(), ("content-type", "application/json"))


@pytest.fixture(scope="module")
def upstream() -> Iterator[RawUpstream]:
    with raw_upstream(handle) as made:
        yield made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("record")


@pytest.fixture(scope="module")
def gateway(upstream: RawUpstream, folder: Path) -> Iterator[Served]:
    config = f'[store]\nraw_body_mb = 1\n[providers.acme]\nbase_url = "{upstream.url}/v1"\n'
    with served(folder, config) as made:
        yield made


def shown(folder: Path, *arguments: str) -> int:
    return main([*arguments, "--data", str(folder / "data"), "--config", str(folder / "sightline.toml")])


def test_show_and_export_know_a_raw_exchange(
    gateway: Served, folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    response, _ = ask(gateway, "POST", "/p/acme/v1/picture", b'{"prompt": "a cat"}', {"X-Team": "blue"})
    name = response.headers["x-sightline-exchange"]
    gateway.api(f"/api/exchanges/{name}")
    assert shown(folder, "show", name) == 0
    said = capfdbinary.readouterr().out
    assert b"POST /v1/picture (raw-http)" in said
    assert b'{"prompt": "a cat"}' in said
    assert b"image/png, 264 bytes, sha256 " in said
    assert shown(folder, "show", name, "--as", "wire") == 0
    assert capfdbinary.readouterr().out == b'{"prompt": "a cat"}'
    assert shown(folder, "show", name, "--as", "curl") == 0
    assert b"x-team: blue" in capfdbinary.readouterr().out.lower()
    assert shown(folder, "show", name, "--as", "har") == 0
    (entry,) = json.loads(capfdbinary.readouterr().out)["log"]["entries"]
    assert (entry["request"]["method"], entry["response"]["content"]["encoding"]) == ("POST", "base64")
    assert shown(folder, "show", name, "--as", "html") == 0
    page = capfdbinary.readouterr().out
    assert b"data:image/png;base64," in page
    for form in ("canonical", "events"):
        assert shown(folder, "show", name, "--as", form) == 2
        assert b"forwarded unchanged" in capfdbinary.readouterr().err


def test_a_raw_exchange_is_found_by_its_method_and_dialect(gateway: Served) -> None:
    ask(gateway, "DELETE", "/p/acme/v1/files/f1")
    found = gateway.api("/api/exchanges?filter=method:DELETE%26dialect:raw-http%26path:*files*")["exchanges"]
    assert [line["path"] for line in found] == ["/v1/files/f1"]


def test_a_raw_exchange_is_sent_again_with_the_same_or_another_body(gateway: Served, upstream: RawUpstream) -> None:
    response, _ = ask(gateway, "PUT", "/p/acme/v1/things", b"one", {"content-type": "text/plain"})
    name = response.headers["x-sightline-exchange"]
    for body, sent in ((b"{}", b"one"), (b'{"body": "two"}', b"two")):
        status, answer = gateway.post(f"/api/exchanges/{name}/replay", body)
        assert status == 200
        again = Person(gateway).ended(answer["id"])
        assert (again["state"], again["origin"], again["method"]) == ("finished", name, "PUT")
        assert gateway.body(answer["id"], "sent") == sent
        assert upstream.seen[-1].method == "PUT"
    status, answer = gateway.post(f"/api/exchanges/{name}/replay", b'{"model": "gpt"}')
    assert (status, "another model" in answer["error"]["message"]) == (422, True)


def test_a_request_that_is_only_kept_in_part_is_not_sent_again(gateway: Served) -> None:
    response, _ = ask(gateway, "POST", "/p/acme/v1/files", b"x" * (2 << 20))
    name = response.headers["x-sightline-exchange"]
    view = gateway.api(f"/api/exchanges/{name}")
    assert (view["raw"]["request"]["kept"], view["raw"]["request"]["size"]) == (1 << 20, 2 << 20)
    assert gateway.body(name, "sent") == b"x" * (1 << 20)
    status, answer = gateway.post(f"/api/exchanges/{name}/replay")
    assert (status, "1,048,576 of the 2,097,152 bytes" in answer["error"]["message"]) == (422, True)
