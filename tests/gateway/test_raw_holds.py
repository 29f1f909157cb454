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
from tests.person import Person
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


def rule(gateway: Served, **fields: Any) -> Person:
    """Who decides about what this rule holds."""
    person = Person(gateway)
    held = {"filter": "method:POST path:*batches", "action": "hold", "phase": "request", **fields}
    person.put("/api/rules", [held])
    return person


def test_it_is_held_edited_and_sent_as_it_was_on_screen(gateway: Served, upstream: RawUpstream) -> None:
    person = rule(gateway)
    asking = Asking(gateway, BODY, {"Authorization": "Bearer sk-of-a-client-123"})
    view = person.view(asking.id)
    assert (view["state"], view["body_sha256"]) == ("held", sha256(BODY).hexdigest())
    head, body = view["sections"]
    assert head["text"].startswith("POST /v1/batches\n")
    assert "sk-of-a-client" not in head["text"]
    assert body["text"] == BODY.decode()
    assert upstream.seen == []
    view = person.edited(asking.id, op="set", pointer="/purpose", value="eval")
    edited = BODY.replace(b"batch", b"eval")
    assert (view["body_sha256"], view["dirty"]) == (sha256(edited).hexdigest(), True)
    assert gateway.body(asking.id, "sent") == edited
    assert person.edit(asking.id, op="delete", section="s2")[0] == 422
    assert person.act(asking.id, "answer", {"reply": {"parts": []}})[0] == 422
    assert person.release(asking.id, sha256(BODY).hexdigest())[0] == 409
    assert person.release(asking.id, view["body_sha256"])[0] == 200
    status, told = asking.answer()
    assert (status, told["sha256"]) == (200, sha256(edited).hexdigest())
    view = person.view(asking.id)
    assert (view["state"], view["hashes"]["sent"]) == ("finished", sha256(edited).hexdigest())
    assert gateway.body(asking.id, "original") == BODY
    assert [fact["kind"] for fact in view["facts"]][:4] == ["received", "held", "edited", "released"]


def test_it_can_be_dropped(gateway: Served, upstream: RawUpstream) -> None:
    person = rule(gateway)
    asking = Asking(gateway, BODY)
    assert person.act(asking.id, "drop")[0] == 200
    status, told = asking.answer()
    assert (status, "dropped" in told["error"]["message"]) == (400, True)
    assert upstream.seen == []


def test_a_body_that_is_too_long_to_keep_is_held_with_its_beginning_and_sent_whole(gateway: Served) -> None:
    person = rule(gateway)
    body = b"x" * (3 << 20)
    asking = Asking(gateway, body)
    assert [section["editable"] for section in person.view(asking.id)["sections"]] == [False, False]
    assert person.release(asking.id)[0] == 200
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
        person = Person(gateway)
        uncounted = "the cap daily cannot count this request: what POST /v1/batches costs at acme"
        for path, body, why in (
            ("/p/acme/v1/batches", BODY, uncounted),
            ("/p/acme/v1/embeddings", EMBED, "the cap daily (2"),
        ):
            upstream.seen.clear()
            asking = Asking(gateway, body, path=path)
            hold = person.view(asking.id)["hold"]
            assert hold["reason"].startswith(why), hold
            assert upstream.seen == []
            assert person.act(asking.id, "drop")[0] == 200
            assert asking.answer()[0] == 400
            asking = Asking(gateway, body, path=path)
            assert person.release(asking.id, sha256(body).hexdigest())[0] == 200
            assert asking.answer()[1]["sha256"] == sha256(body).hexdigest()
        (bucket,) = gateway.api("/api/caps")["caps"][0]["buckets"]
        assert (bucket["spent"] > 1, bucket["reserved"]) == (True, 0)  # what was let go counts, and the batch cannot


def test_embeddings_by_another_api_are_held_as_they_are_sent(upstream: RawUpstream, tmp_path: Path) -> None:
    config = f'[providers.far]\ndialect = "gemini"\nbase_url = "{upstream.url}/v1beta"\n{CAP}'
    with served(tmp_path, config + '[[routes]]\nmodel = "emb"\nprovider = "far"\n') as gateway:
        person, asking = Person(gateway), Asking(gateway, EMBED, path="/v1/embeddings")
        view = person.view(asking.id)
        assert json.loads(view["sections"][1]["text"])["requests"][0]["content"] == {"parts": [{"text": "x"}]}
        assert person.release(asking.id, view["body_sha256"])[0] == 200
        asking.answer()
        assert person.view(asking.id)["hashes"]["sent"] == view["body_sha256"]
        assert [seen.target for seen in upstream.seen] == ["/v1beta/models/emb:batchEmbedContents"]
