"""A request that is passed on as it came can be held, looked at, edited by pointer, released and dropped."""

import json
import threading
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.test_raw_paths import ask, echo
from tests.gateway_server import Served, served
from tests.raw_upstream import RawUpstream, raw_upstream

BODY = b'{"input": "x",  "purpose": "batch", "n": [1, 2]}'


@pytest.fixture(scope="module")
def upstream() -> Iterator[RawUpstream]:
    with raw_upstream(echo) as made:
        yield made


@pytest.fixture(scope="module")
def gateway(upstream: RawUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    config = f'[store]\nraw_body_mb = 1\n[providers.acme]\nbase_url = "{upstream.url}/v1"\n'
    with served(tmp_path_factory.mktemp("holds"), config) as made:
        yield made


@pytest.fixture(autouse=True)
def _fresh(upstream: RawUpstream) -> None:
    upstream.seen.clear()


class Asking:
    """A request that is under way in a thread of its own."""

    def __init__(
        self, gateway: Served, body: bytes, headers: dict[str, str] | None = None, path: str = "/p/acme/v1/batches"
    ) -> None:
        self._got: list[Any] = []
        self._thread = threading.Thread(target=lambda: self._got.append(ask(gateway, "POST", path, body, headers)))
        self._thread.start()
        while not (held := gateway.api("/api/exchanges?filter=state:held")["exchanges"]):
            assert self._thread.is_alive()
        self.id = held[0]["id"]

    def answer(self) -> tuple[int, Any]:
        self._thread.join(30)
        response, body = self._got[0]
        return response.status, json.loads(body)


def rule(gateway: Served, **fields: Any) -> None:
    import urllib.request

    data = json.dumps(
        [{"filter": "method:POST path:*batches", "action": "hold", "phase": "request", **fields}]
    ).encode()
    headers = {"authorization": f"Bearer {gateway.token}", "content-type": "application/json"}
    request = urllib.request.Request(f"{gateway.url}/api/rules", data, headers, method="PUT")
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 200


def test_it_is_held_edited_and_sent_as_it_was_on_screen(gateway: Served, upstream: RawUpstream) -> None:
    rule(gateway)
    asking = Asking(gateway, BODY, {"Authorization": "Bearer sk-of-a-client-123"})
    view = gateway.api(f"/api/exchanges/{asking.id}")
    assert (view["state"], view["body_sha256"]) == ("held", sha256(BODY).hexdigest())
    head, body = view["sections"]
    assert head["text"].startswith("POST /v1/batches\n")
    assert "sk-of-a-client" not in head["text"]
    assert body["text"] == BODY.decode()
    assert upstream.seen == []
    status, view = gateway.post(
        f"/api/exchanges/{asking.id}/edits", b'{"op": "set", "pointer": "/purpose", "value": "eval"}'
    )
    edited = BODY.replace(b"batch", b"eval")
    assert (status, view["body_sha256"], view["dirty"]) == (200, sha256(edited).hexdigest(), True)
    assert gateway.body(asking.id, "sent") == edited
    assert gateway.post(f"/api/exchanges/{asking.id}/edits", b'{"op": "delete", "section": "s2"}')[0] == 422
    assert gateway.post(f"/api/exchanges/{asking.id}/answer", b'{"reply": {"parts": []}}')[0] == 422
    stale = json.dumps({"body_sha256": sha256(BODY).hexdigest()}).encode()
    assert gateway.post(f"/api/exchanges/{asking.id}/release", stale)[0] == 409
    fresh = json.dumps({"body_sha256": view["body_sha256"]}).encode()
    assert gateway.post(f"/api/exchanges/{asking.id}/release", fresh)[0] == 200
    status, told = asking.answer()
    assert (status, told["sha256"]) == (200, sha256(edited).hexdigest())
    view = gateway.api(f"/api/exchanges/{asking.id}")
    assert (view["state"], view["hashes"]["sent"]) == ("finished", sha256(edited).hexdigest())
    assert gateway.body(asking.id, "original") == BODY
    assert [fact["kind"] for fact in view["facts"]][:4] == ["received", "held", "edited", "released"]


def test_it_can_be_dropped(gateway: Served, upstream: RawUpstream) -> None:
    rule(gateway)
    asking = Asking(gateway, BODY)
    assert gateway.post(f"/api/exchanges/{asking.id}/drop")[0] == 200
    status, told = asking.answer()
    assert (status, "dropped" in told["error"]["message"]) == (400, True)
    assert upstream.seen == []


def test_a_body_that_is_too_long_to_keep_is_held_with_its_beginning_and_sent_whole(gateway: Served) -> None:
    rule(gateway)
    body = b"x" * (3 << 20)
    asking = Asking(gateway, body)
    view = gateway.api(f"/api/exchanges/{asking.id}")
    assert [section["editable"] for section in view["sections"]] == [False, False]
    fresh = json.dumps({"body_sha256": view["body_sha256"]}).encode()
    assert gateway.post(f"/api/exchanges/{asking.id}/release", fresh)[0] == 200
    status, told = asking.answer()
    assert (status, told["sha256"]) == (200, sha256(body).hexdigest())


def test_what_no_rule_holds_passes(gateway: Served) -> None:
    rule(gateway)
    assert json.loads(ask(gateway, "PUT", "/p/acme/v1/batches", BODY)[1])["sha256"] == sha256(BODY).hexdigest()
    rule(gateway, action="drop")
    response, _ = ask(gateway, "POST", "/p/acme/v1/batches", BODY)
    assert response.status == 400


EMBED = b'{"model": "emb", "input": "x"}'
CAP = '[[caps]]\nname = "daily"\ntokens = 1\naction = "hold"\n'


def test_a_cap_that_holds_lets_a_person_decide_about_it(upstream: RawUpstream, tmp_path: Path) -> None:
    config = f'[providers.acme]\nbase_url = "{upstream.url}/v1"\n{CAP}'
    with served(tmp_path, config) as gateway:
        for path, body, why in (
            (
                "/p/acme/v1/batches",
                BODY,
                "the cap daily cannot count this request: what POST /v1/batches costs at acme",
            ),
            ("/p/acme/v1/embeddings", EMBED, "the cap daily (2"),
        ):
            upstream.seen.clear()
            asking = Asking(gateway, body, path=path)
            view = gateway.api(f"/api/exchanges/{asking.id}")
            assert view["hold"]["reason"].startswith(why), view["hold"]
            assert upstream.seen == []
            assert gateway.post(f"/api/exchanges/{asking.id}/drop")[0] == 200
            assert asking.answer()[0] == 400
            asking = Asking(gateway, body, path=path)
            shown = json.dumps({"body_sha256": sha256(body).hexdigest()}).encode()
            assert gateway.post(f"/api/exchanges/{asking.id}/release", shown)[0] == 200
            assert asking.answer()[1]["sha256"] == sha256(body).hexdigest()
        (bucket,) = gateway.api("/api/caps")["caps"][0]["buckets"]
        assert (bucket["spent"] > 1, bucket["reserved"]) == (True, 0)  # what was let go counts, and the batch cannot


def test_embeddings_by_another_api_are_held_as_they_are_sent(upstream: RawUpstream, tmp_path: Path) -> None:
    config = f'[providers.far]\ndialect = "gemini"\nbase_url = "{upstream.url}/v1beta"\n{CAP}'
    with served(tmp_path, config + '[[routes]]\nmodel = "emb"\nprovider = "far"\n') as gateway:
        asking = Asking(gateway, EMBED, path="/v1/embeddings")
        view = gateway.api(f"/api/exchanges/{asking.id}")
        assert json.loads(view["sections"][1]["text"])["requests"][0]["content"] == {"parts": [{"text": "x"}]}
        shown = json.dumps({"body_sha256": view["body_sha256"]}).encode()
        assert gateway.post(f"/api/exchanges/{asking.id}/release", shown)[0] == 200
        asking.answer()
        assert gateway.api(f"/api/exchanges/{asking.id}")["hashes"]["sent"] == view["body_sha256"]
        assert [seen.target for seen in upstream.seen] == ["/v1beta/models/emb:batchEmbedContents"]
