import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from sightline.errors import Code, Fault
from sightline.exchange.interception.holds import Holds
from sightline.exchange.memory import Memory
from sightline.exchange.recording.exchange_record import RecordedExchange
from sightline.exchange.recording.records import Records
from sightline.filters.parsing import parse
from sightline.model.exchange import (
    AttemptStarted,
    Edited,
    ExchangeCancelled,
    ExchangeFailed,
    ExchangeFinished,
    Fact,
    FrameArrived,
    Received,
    Released,
    Translated,
)
from sightline.model.reply import Usage
from sightline.model.report import Loss
from sightline.store.entries import BodyEntry, FactEntry
from sightline.store.summary import Summary
from sightline.web.bodies import Query
from sightline.workbench.exchange_views import fact_shown, line, original_sha256, view
from sightline.workbench.exchanges import Exchanges, sort_lines
from sightline.workbench.workbench import FOLDER
from tests.desk_stage import DeskStage, desk_stage
from tests.http_call import call
from tests.server.running import ListStore, Running, running


@pytest.fixture
def store() -> ListStore:
    store = ListStore()
    for number in range(5):
        exchange = f"x_{number}"
        store.record(
            [
                BodyEntry("aa", b'{"model": "m"}'),
                BodyEntry("bb", b'{"model":"n"}'),
                FactEntry(exchange, 0, float(number), Received("anthropic", "m", "aa")),
                FactEntry(exchange, 1, 1.0, AttemptStarted(1, "acme", "bb")),
                FactEntry(exchange, 2, 1.0, FrameArrived(b"<b>o", 0.1)),
                FactEntry(exchange, 3, 1.0, FrameArrived(b"k</b>", 0.2)),
                FactEntry(exchange, 4, 2.0, ExchangeFinished("stop", 200)),
            ]
        )
    return store


def over(store: ListStore) -> Exchanges:
    records = Records(store, lambda: 10.0, lambda _provider, _model: None)
    return Exchanges(records, lambda: 10.0, Holds(Memory(Path("/nonexistent"), lambda: 10.0), lambda: 10.0))


def listed(store: ListStore, query: str) -> list[str]:
    found = asyncio.run(over(store).list_exchanges(Query(query)))["exchanges"]
    return [each["id"] for each in json.loads(json.dumps(found))]


def test_lists_are_newest_first_and_go_on_from_the_last_seen(store: ListStore) -> None:
    assert listed(store, "") == ["x_4", "x_3", "x_2", "x_1", "x_0"]
    assert listed(store, "limit=2") == ["x_4", "x_3"]
    assert listed(store, "limit=2&before=x_3") == ["x_2", "x_1"]


@pytest.mark.parametrize(
    ("told", "taken"), [("", 100), ("0", 1), ("-3", 1), ("500", 500), ("501", 500), ("9" * 30, 500)]
)
def test_a_limit_out_of_range_is_brought_into_it(store: ListStore, told: str, taken: int) -> None:
    listed(store, f"limit={told}")
    assert store.found[-1] == (parse(""), "", taken)


@pytest.mark.parametrize("told", ["x", "1.5", "1e3", "1;2"])
def test_a_limit_that_is_no_number_is_refused(store: ListStore, told: str) -> None:
    with pytest.raises(Fault) as caught:
        listed(store, f"limit={told}")
    assert caught.value.status == 400


def test_the_filter_is_the_one_language(store: ListStore) -> None:
    listed(store, "filter=model%3Aclaude-*%20%26%20tokens%3E5k")
    assert store.found[-1][0] == parse("model:claude-* & tokens>5k")
    with pytest.raises(Fault) as caught:
        listed(store, "filter=model%3A(")
    assert caught.value.hint


@pytest.mark.parametrize(
    ("query", "body"),
    [
        ("", b'{"model":"n"}'),
        ("of=sent", b'{"model":"n"}'),
        ("of=received", b'{"model": "m"}'),
        ("of=original", b'{"model": "m"}'),
        ("of=reply", b"<b>ok</b>"),
    ],
)
def test_bodies_are_exact(store: ListStore, query: str, body: bytes) -> None:
    answer = asyncio.run(over(store).body("x_1", Query(query)))
    assert (answer.status, answer.body) == (200, body)
    assert b"html" not in dict(answer.headers)[b"content-type"]


def test_unknown_body_is_rejected(store: ListStore) -> None:
    with pytest.raises(Fault) as caught:
        asyncio.run(over(store).body("x_1", Query("of=thoughts")))
    assert caught.value.code is Code.INVALID_REQUEST
    for query in ("", "of=held"):
        with pytest.raises(Fault) as caught:
            asyncio.run(over(store).body("x_9", Query(query)))
        assert caught.value.status == 404


def test_what_is_not_held_has_no_held_body(store: ListStore) -> None:
    with pytest.raises(Fault) as caught:
        asyncio.run(over(store).body("x_1", Query("of=held")))
    assert caught.value.status == 409


def test_a_body_that_the_record_has_forgotten_is_not_found(store: ListStore) -> None:
    store.entries = [each for each in store.entries if isinstance(each, FactEntry)]
    with pytest.raises(Fault) as caught:
        asyncio.run(over(store).body("x_1", Query("")))
    assert caught.value.status == 404


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as made:
        made.store.record(
            [
                FactEntry("x_1", 0, 1.0, Received("anthropic", "claude-9", "aa", session="my task")),
                FactEntry("x_1", 1, 1.0, AttemptStarted(1, "acme", "aa")),
                FactEntry("x_1", 2, 2.0, ExchangeFinished("stop", 200, tools=("weather",))),
            ]
        )
        yield made


def looked(server: Running, **query: str) -> tuple[int, dict[str, object]]:
    status, told = server.api(f"/api/filter?{urlencode(query)}")
    return status, told


def texts(server: Running, **query: str) -> list[str]:
    return [offer["text"] for offer in looked(server, **query)[1]["completions"]]


def test_a_filter_that_can_be_read(server: Running) -> None:
    assert looked(server, text="model:claude-* ", at="0")[1]["ok"] is True
    assert looked(server)[1]["ok"] is True


def test_what_has_been_there_is_offered(server: Running) -> None:
    assert texts(server, text="model:") == ["model:claude-9"]
    assert texts(server, text="session:") == ['session:"my task"']
    assert texts(server, text="tool:w") == ["tool:weather"]
    assert texts(server, text="provider:") == ["provider:acme"]
    assert texts(server, text="sess & model:x", at="4") == ["session:"]


def test_filter_error_position_is_counted_in_utf_16_units(server: Running) -> None:
    _, told = looked(server, text='text:"😀" & colour:red')
    error = told["error"]
    assert (told["ok"], error["column"], error["length"]) == (False, 13, 6)
    assert error["hint"]
    assert "^" not in error["hint"]
    offers = looked(server, text='text:"😀" & mod', at="15")[1]["completions"]
    assert offers == [{"text": "model:", "label": "model", "help": "the model that was asked for", "from": 12}]


def test_a_filter_that_is_far_too_long_is_a_mistake_too(server: Running) -> None:
    error = looked(server, text="a" * 10_001)[1]["error"]
    assert "10001" in error["message"]


def test_a_rule_cannot_ask_for_a_place_in_a_list(server: Running) -> None:
    assert looked(server, text="latest:5")[1]["ok"] is True
    assert looked(server, text="latest:5", **{"for": "rules"})[1]["ok"] is False
    assert texts(server, text="late", **{"for": "rules"}) == []
    assert looked(server, **{"for": "cooking"})[0] == 400


@pytest.mark.parametrize("at", ["x", "-1", "1.5", "9" * 13])
def test_a_cursor_that_is_nowhere_is_refused(server: Running, at: str) -> None:
    assert looked(server, text="a", at=at)[0] == 400
    assert looked(server, text="a", at="999")[0] == 200


SUMMARY = Summary(id="x_1", at=5.0, state="sending", dialect="anthropic", model="m")
RECEIVED = Received("anthropic", "m", "aa", path="/v1/messages")


def noted(*facts: Fact) -> RecordedExchange:
    entries = (FactEntry("x_1", number, float(number), fact) for number, fact in enumerate(facts))
    return RecordedExchange(SUMMARY, tuple(entries), b"", b"")


def test_a_line_has_every_field_that_lists_promise() -> None:
    assert line(SUMMARY) == {
        "id": "x_1", "state": "sending", "dialect": "anthropic", "provider": "", "model": "m", "session": "",
        "at": 5.0, "status": None,
    }  # fmt: skip
    assert line(Summary(id="x_2", at=1.0, status=200, losses=2))["losses"] == 2


def test_a_view_of_what_has_just_come() -> None:
    shown = view(noted(RECEIVED))
    assert shown["state"] == "received"
    assert shown["body_sha256"] == "aa"
    assert shown["hashes"] == {"received": "aa", "sent": None, "reply": None}
    assert shown["dirty"] is False
    assert shown["tokens"] == {}
    assert not shown["losses"]
    assert shown["facts"][0]["kind"] == "received"
    assert not {"sections", "validity", "fault"} & set(shown)


def test_a_view_of_what_is_over() -> None:
    exchange = noted(
        RECEIVED,
        Translated("openai-chat", "bb", 1, (Loss("/top_k", "top_k", "no such option", "option"),)),
        AttemptStarted(1, "acme", "bb"),
        FrameArrived(b"\xc3", 0.1),
        FrameArrived(b"\xa9", 0.2),
        Translated("anthropic", "dd", 1, (Loss("/x", "x", "no such field", "identity"),)),
        ExchangeFinished(
            "stop", status=200, sha256="cc", usage=Usage(input_tokens=3, output_tokens=4, extras={"a": 1})
        ),
    )
    shown = view(exchange)
    assert shown["state"] == "finished"
    assert shown["body_sha256"] == "bb"
    assert shown["hashes"] == {"received": "aa", "sent": "bb", "reply": "cc"}
    assert shown["tokens"] == {"input_tokens": 3, "output_tokens": 4}
    first, second = shown["losses"]
    assert first == {"pointer": "/top_k", "what": "top_k", "why": "no such option", "severity": "option"}
    assert second["pointer"] == "/x"
    assert exchange.reply_body == "é".encode()


def test_a_failure_shows_its_fault() -> None:
    shown = view(noted(RECEIVED, ExchangeFailed("network", "gone", "Try again.")))
    fault = {"code": "network", "message": "gone", "hint": "Try again."}
    assert shown["fault"] == fault
    assert shown["facts"][1]["fault"] == fault
    assert shown["hashes"] == {"received": "aa", "sent": None, "reply": None}


def test_the_body_is_the_one_that_was_last_on_its_way() -> None:
    assert view(noted(RECEIVED, Edited("set", "aa", "dd")))["body_sha256"] == "dd"
    released = noted(RECEIVED, Edited("set", "aa", "dd"), Released("ee"), ExchangeCancelled())
    assert view(released)["body_sha256"] == "ee"


def test_the_original_is_what_stood_before_the_first_edit() -> None:
    translated = Translated("openai-chat", "bb", 0)
    assert original_sha256([RECEIVED]) == "aa"
    assert original_sha256([RECEIVED, translated, Edited("mask", "bb", "cc"), Released("cc")]) == "bb"
    assert original_sha256([RECEIVED, AttemptStarted(1, "acme", "aa"), Translated("anthropic", "dd", 1)]) == "aa"


def test_what_left_other_than_it_came_is_dirty() -> None:
    edited = noted(RECEIVED, Edited("set_text", "aa", "dd"), Released("dd"), AttemptStarted(1, "acme", "dd"))
    assert view(edited)["dirty"] is True
    assert view(noted(RECEIVED, AttemptStarted(1, "acme", "aa")))["dirty"] is False


def test_frame_bytes_are_returned_as_base64() -> None:
    assert fact_shown(FactEntry("x_1", 2, 7.0, FrameArrived(b"hi", 0.5))) == {
        "n": 2, "at": 7.0, "kind": "frame", "data": "aGk=", "after": 0.5, "size": 2,
    }  # fmt: skip
    assert fact_shown(FactEntry("x_1", 2, 7.0, FrameArrived(b"hi", 0.5)), has_data=False) == {
        "n": 2, "at": 7.0, "kind": "frame", "after": 0.5, "size": 2,
    }  # fmt: skip


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
    answer = call(method, stage.server.url + path, b"{}" if method != "GET" else None, headers=headers)
    return answer.status, answer.headers, answer.body


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_requests_without_token_or_from_another_origin_are_rejected(
    stage: DeskStage, held: str, method: str, path: str
) -> None:
    path = path.replace("{id}", held)
    token = f"Bearer {stage.server.token}"
    refused = [
        (401, {}),
        (401, {"authorization": "Bearer wrong"}),
        (401, {"authorization": f"Basic {stage.server.token}"}),
        (401, {"cookie": "sightline_1=wrong"}),
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
def test_wrong_method_is_answered_with_the_allowed_method(stage: DeskStage, held: str, method: str, path: str) -> None:
    path = path.replace("{id}", held)
    status, headers, body = asked(stage, "PATCH", path, authorization=f"Bearer {stage.server.token}")
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


def line_of(name: str, **values: object) -> Summary:
    return Summary(id=name, at=1.0, **values)  # type: ignore[arg-type]


def sorted_ids(lines: list[Summary], sort: str, before: str = "", limit: int = 10) -> list[str]:
    return [each.id for each in sort_lines(lines, sort, before=before, limit=limit)]


def test_lines_are_sorted_by_a_column_with_unknown_values_last_and_in_pages() -> None:
    lines = [line_of("x_1", cost=2.0), line_of("x_2"), line_of("x_3", cost=5.0), line_of("x_4", cost=0.5)]
    assert sorted_ids(lines, "-cost") == ["x_3", "x_1", "x_4", "x_2"]
    assert sorted_ids(lines, "cost") == ["x_4", "x_1", "x_3", "x_2"]
    assert sorted_ids(lines, "-cost", limit=2) == ["x_3", "x_1"]
    assert sorted_ids(lines, "-cost", before="x_1") == ["x_4", "x_2"]
    assert sorted_ids(lines, "cost", before="x_3") == ["x_2"]
    texts = [line_of("x_1", model="b"), line_of("x_2"), line_of("x_3", session="S", client="c", model="A")]
    assert sorted_ids(texts, "model") == ["x_3", "x_1", "x_2"]
    assert sorted_ids(texts, "-client") == ["x_3", "x_2", "x_1"]
    assert sorted_ids([line_of("x_1", output_tokens=3), line_of("x_2", input_tokens=9)], "-tokens") == ["x_2", "x_1"]
    tries = [line_of("x_1"), line_of("x_2", attempts=1, tools=("b",)), line_of("x_3", attempts=3, tools=("A", "c"))]
    assert sorted_ids(tries, "attempts") == ["x_2", "x_3", "x_1"]
    assert sorted_ids(tries, "tool") == ["x_3", "x_2", "x_1"]


def test_every_column_of_the_page_can_be_sorted_by() -> None:
    names = re.findall(r'^    name: "(\w+)",$', (FOLDER / "views/traffic/columns.js").read_text("utf-8"), re.MULTILINE)
    assert len(names) > 10
    for name in names:
        assert sorted_ids([line_of("x_1"), line_of("x_2")], name) == ["x_1", "x_2"]


def test_a_column_that_does_not_exist_is_refused(store: ListStore) -> None:
    with pytest.raises(Fault) as caught:
        listed(store, "sort=colour")
    assert (caught.value.code, caught.value.status) == (Code.INVALID_REQUEST, 400)
    assert "cost" in caught.value.hint


def send(stage: DeskStage, text: str, session: str = "one") -> str:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    return stage.ask(body, session=session).result(30).exchange


def test_what_is_found_is_shown_where_it_is(tmp_path: Path) -> None:
    with desk_stage(tmp_path) as stage:
        stage.person.put("/api/interception", {"mode": "off"})
        far = send(stage, "word " * 50 + "the Walrus\nsings" + " tail" * 50)
        plain = send(stage, "nothing of it")
        replied = stage.person.get(f"/api/snippets?{urlencode({'filter': 'hello', 'ids': plain})}")
        found = stage.person.get(f"/api/snippets?{urlencode({'filter': 'walrus !zebra', 'ids': f'{far},{plain}'})}")
        assert found["words"] == ["walrus"]
        (snippet,) = found["snippets"]
        assert (snippet["id"], snippet["of"], snippet["hit"]) == (far, "request", "Walrus")
        assert (snippet["before"][0], snippet["before"][-9:]) == ("…", "word the ")
        assert (snippet["after"][:11], snippet["after"][-1]) == (" sings tail", "…")
        assert replied["snippets"][0]["of"] == "reply"
        assert stage.person.get(f"/api/snippets?{urlencode({'filter': 'session:one', 'ids': far})}") == {
            "words": [],
            "snippets": [],
        }
        status, refused = stage.person.ask("GET", f"/api/snippets?filter=a&ids={','.join(['x_1'] * 51)}")
        assert (status, refused["error"]["code"]) == (400, "invalid_request")


def test_requests_of_evals_are_left_out_or_alone_where_that_is_asked_for(tmp_path: Path) -> None:
    with desk_stage(tmp_path) as stage:
        stage.person.put("/api/interception", {"mode": "off"})
        own, of_eval = send(stage, "mine"), send(stage, "graded", "eval:e_1")

        def ids(query: str) -> list[str]:
            return [each["id"] for each in stage.person.get(f"/api/exchanges?{query}")["exchanges"]]

        assert (ids(""), ids("evals=0"), ids("evals=only")) == ([of_eval, own], [own], [of_eval])
        assert stage.person.get("/api/costs?by=model&evals=only")["total"]["requests"] == 1
        stage.person.put("/api/interception", {"mode": "every"})
        held, waiting = stage.hold({"model": "m", "messages": []}, session="eval:e_2")
        assert ids("evals=0") == [held, own]  # what waits for a decision is not hidden
        stage.person.act(held, "drop")
        waiting.result(30)


def test_saved_filters_are_kept_and_a_bad_list_changes_nothing(tmp_path: Path) -> None:
    wanted = {"filters": [{"name": "Costly", "filter": "cost>1"}, {"name": "Failed", "filter": "error"}]}
    with desk_stage(tmp_path) as stage:
        assert stage.person.get("/api/filters") == {"filters": []}
        assert stage.person.put("/api/filters", wanted) == wanted
        for bad in (
            [{"name": "a", "filter": "x"}, {"name": "A", "filter": "y"}],
            [{"name": " ", "filter": "x"}],
            [{"name": "a", "filter": "colour:red"}],
        ):
            status, refused = stage.person.ask("PUT", "/api/filters", {"filters": bad})
            assert status == 422, refused
    with desk_stage(tmp_path) as stage:
        assert stage.person.get("/api/filters") == wanted


def test_every_field_of_a_line_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/http.md").read_text()
    about_lines = page.partition("A line of the list always has")[2].partition("\n###")[0]
    assert [name for name in Summary.__struct_fields__ if f"`{name}`" not in about_lines] == []
