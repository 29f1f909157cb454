import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.desk_stage import JSON, DeskStage, desk_stage
from tests.upstream import answer

PARTS = [
    {"type": "text", "text": "aaa"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
    {"type": "text", "text": "bbb"},
]
BODY = {
    "model": "m",
    "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": PARTS}],
    "unknown": {"kept": 1.50},
}
CALLED = {
    "model": "m",
    "messages": [
        {"role": "user", "content": "weather?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ],
}
VIEW = {"id", "state", "body_sha256", "dirty", "validity", "tokens", "losses", "sections", "facts", "hashes"}
TOOLS = [{"filter": "", "phase": "tool_calls"}]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeskStage]:
    with desk_stage(tmp_path_factory.mktemp("deciding")) as made:
        yield made


@pytest.fixture
def held(stage: DeskStage) -> Iterator[str]:
    """An exchange that is held, and dropped at the end if it still is."""
    exchange, waiting = stage.hold(BODY)
    yield exchange
    stage.person.act(exchange, "drop")
    waiting.result(20)


def test_an_edit_answers_the_new_view_and_is_on_record_by_then(stage: DeskStage, held: str) -> None:
    before = stage.person.view(held)
    after = stage.person.edited(held, op="set_text", section=before["sections"][1]["id"], text="aaaXbbb")
    assert set(after) >= VIEW
    assert (after["state"], after["dirty"], after["can_undo"]) == ("held", True, True)
    body = stage.server.body(held, "sent")
    assert sha256(body).hexdigest() == after["body_sha256"] != before["body_sha256"]
    assert [part.get("text") for part in json.loads(body)["messages"][1]["content"]] == ["aaaX", None, "bbb"]
    assert body == stage.server.body(held, "held")
    assert stage.server.body(held, "original") == stage.server.body(held, "received") == json.dumps(BODY).encode()
    assert after["facts"][-1]["operation"] == "set_text"
    assert after["facts"][-1]["after"] == after["body_sha256"]


def test_with_changed_it_answers_only_what_is_new(stage: DeskStage, held: str) -> None:
    view = stage.person.view(held)
    operation = {"op": "set_text", "section": view["sections"][0]["id"], "text": "Be brief."}
    status, told = stage.person.edit(held, "?changed=1", **operation)
    assert status == 200
    assert [section["text"] for section in told["sections"]] == ["Be brief."]
    assert told["order"] == [section["id"] for section in view["sections"]]
    assert "facts" not in told
    assert told["tokens"]["estimate"] > 0
    status, told = stage.person.edit(held, f"?changed={told['body_sha256']}", op="undo")
    assert ([section["text"] for section in told["sections"]], told["dirty"]) == (["Be kind."], False)
    status, told = stage.person.edit(held, f"?changed={'0' * 64}", op="redo")
    assert len(told["sections"]) == len(view["sections"]), "whoever has seen something else gets all"
    assert "order" not in told


def test_an_operation_that_is_meant_for_another_body_is_refused(stage: DeskStage, held: str) -> None:
    seen = stage.person.view(held)["body_sha256"]
    meant = {"op": "set", "pointer": "/model", "value": "n"}
    after = stage.person.edited(held, **meant, if_sha256=seen)["body_sha256"]
    assert after != seen
    status, told = stage.person.edit(held, op="set", pointer="/model", value="o", if_sha256=seen)
    assert (status, told["error"]["message"]) == (409, "the body has changed since the operation was made")
    assert stage.person.view(held)["body_sha256"] == after


@pytest.mark.parametrize(
    "operation",
    [
        {},
        {"op": "conjure"},
        {"op": "set_text", "section": "s99", "text": ""},
        {"op": "set_text", "section": "s1", "text": 5},
        {"op": "set_text", "section": "s1", "text": "x", "colour": "red"},
        {"op": "set_text", "section": "s1", "text": "x", "keep": "forever"},
        {"op": "set", "pointer": "/nowhere", "value": 1},
        {"op": "set", "pointer": "nowhere", "value": 1},
        {"op": "remove", "pointer": "/messages/9"},
        {"op": "move", "from": "/messages/9", "pointer": "/messages/0"},
        {"op": "set_body", "body": "{"},
        {"op": "set_body", "body": {"model": "m"}},
        {"op": "expand"},
        {"op": "expand", "keep": "all"},
        {"op": "undo", "keep": "all"},
    ],
)
def test_what_is_refused_changes_nothing_and_keeps_the_hold(stage: DeskStage, held: str, operation: Any) -> None:
    before = stage.person.view(held)
    status, told = stage.person.edit(held, **operation)
    assert 400 <= status < 500
    assert told["error"]["message"]
    assert told["error"]["hint"]
    after = stage.person.view(held)
    assert (after["state"], after["body_sha256"]) == ("held", before["body_sha256"])


def test_bodies_of_orders_that_are_no_json_object_are_refused(stage: DeskStage, held: str) -> None:
    for data in (b"{", b"[]", b'"x"'):
        status, told = stage.server.post(f"/api/exchanges/{held}/edits", data)
        assert (status, set(told)) == (400, {"error"})


def test_a_release_says_what_it_sends(stage: DeskStage) -> None:
    exchange, waiting = stage.hold(BODY)
    person = stage.person
    assert person.act(exchange, "release")[0] == 422
    assert person.act(exchange, "release", {"body_sha256": 5})[0] == 422
    assert person.release(exchange, "0" * 64)[0] == 409
    stale = person.view(exchange)["body_sha256"]
    fresh = person.edited(exchange, op="set", pointer="/unknown/kept", value=[1, "ü"])["body_sha256"]
    assert person.release(exchange, stale)[0] == 409
    shown = stage.server.body(exchange, "sent")
    assert person.release(exchange, fresh) == (200, {"id": exchange, "state": "sending", "body_sha256": fresh})
    assert waiting.result(20).status == 200
    assert stage.sent[-1] == shown
    assert sha256(stage.sent[-1]).hexdigest() == fresh
    assert person.release(exchange, fresh)[0] == 409
    assert person.edit(exchange, op="undo")[0] == 409
    view = person.ended(exchange)
    assert [view["hashes"]["sent"], view["body_sha256"]] == [fresh, fresh]
    assert view["dirty"] is True


def test_of_several_releases_at_once_exactly_one_wins(stage: DeskStage) -> None:
    exchange, waiting = stage.hold(BODY)
    shown = stage.person.view(exchange)["body_sha256"]
    count = len(stage.sent)
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: stage.person.release(exchange, shown)[0], range(8)))
    assert sorted(told) == [200] + [409] * 7
    assert waiting.result(20).status == 200
    assert len(stage.sent) == count + 1


def test_what_openai_would_refuse_is_shown_with_its_place_and_its_fix(stage: DeskStage) -> None:
    tool = {"type": "function", "function": {"name": "f", "strict": True, "parameters": {"type": "objekt"}}}
    exchange, waiting = stage.hold({**CALLED, "temperature": 7, "tools": [tool]})
    problems = {each["pointer"]: each for each in stage.person.view(exchange)["validity"]["problems"]}
    assert {"/temperature", "/tools/0/function/parameters/type"} <= problems.keys()
    for pointer, label in (
        ("/temperature", "Set it to 2"),
        ("/tools/0/function/parameters/type", "Say object"),
        ("/tools/0/function/parameters", "Say additionalProperties false"),
    ):
        view = stage.person.view(exchange)
        (found,) = [
            each["operations"]
            for problem in view["validity"]["problems"]
            if problem["pointer"] == pointer
            for each in problem["fixes"]
            if each["label"] == label
        ]
        stage.person.edited(exchange, op="batch", operations=found)
    assert stage.person.view(exchange)["validity"]["problems"] == []
    assert stage.person.release(exchange)[0] == 200
    assert waiting.result(20).status == 200


def test_what_is_not_valid_is_not_sent_until_it_is_mended(stage: DeskStage) -> None:
    exchange, waiting = stage.hold(CALLED)
    person = stage.person
    status, broken = person.edit(exchange, op="remove", pointer="/messages/2")
    if status == 200:
        assert broken["validity"]["ok"] is False
        (problem,) = [each for each in broken["validity"]["problems"] if each["severity"] == "error"]
        assert problem["section"] in {section["id"] for section in broken["sections"]}
        assert person.release(exchange)[0] == 422
        assert person.view(exchange)["state"] == "held"
        fix = problem["fixes"][0]["operations"]
        assert person.edited(exchange, op="batch", operations=fix)["validity"]["ok"] is True
    else:
        assert status == 422
    assert person.release(exchange)[0] == 200
    assert waiting.result(20).status == 200


def test_a_drop_is_an_error_for_the_client_with_the_persons_words(stage: DeskStage) -> None:
    exchange, waiting = stage.hold(BODY)
    count = len(stage.sent)
    assert stage.person.act(exchange, "drop", {"reason": 5})[0] == 422
    assert stage.person.act(exchange, "drop", {"reason": "not today"})[1]["state"] == "dropped"
    got = waiting.result(20)
    assert (got.status, got.exchange) == (400, exchange)
    assert "not today" in got.json()["error"]["message"]
    assert stage.person.view(exchange)["state"] == "dropped"
    assert stage.person.act(exchange, "drop")[0] == 409
    assert len(stage.sent) == count


def test_an_answer_by_hand_is_what_the_client_gets(stage: DeskStage) -> None:
    exchange, waiting = stage.hold(BODY)
    person, count = stage.person, len(stage.sent)
    for wrong in ({}, {"reply": 5}, {"reply": {"parts": []}}, {"reply": {"parts": [{"type": "?"}]}}):
        assert person.act(exchange, "answer", wrong)[0] == 422
    assert person.view(exchange)["state"] == "held"
    assert person.act(exchange, "answer", {"reply": {"parts": [{"type": "text", "text": "By hand."}]}})[0] == 200
    assert waiting.result(20).json()["choices"][0]["message"]["content"] == "By hand."
    view = person.ended(exchange)
    assert view["state"] == "finished"
    assert "answered" in [fact["kind"] for fact in view["facts"]]
    reply = person.get(f"/api/exchanges/{exchange}/reply")
    assert (reply["by_hand"], reply["reply"]["parts"][0]["text"]) == (True, "By hand.")
    assert len(stage.sent) == count


def test_two_holds_stand_in_their_order_and_do_not_end_each_other(stage: DeskStage) -> None:
    first, one = stage.hold(BODY, session="same")
    second, other = stage.hold({**BODY, "messages": [{"role": "user", "content": "again"}]}, session="same")
    assert stage.person.get("/api/holds") == [first, second]
    assert stage.person.view(first)["hold"]["queue"] == [first, second]
    assert stage.person.release(second)[0] == 200
    assert other.result(20).status == 200
    assert stage.person.view(first)["state"] == "held"
    stage.person.put("/api/rules", [])
    assert stage.person.view(first)["state"] == "held"
    assert stage.person.release(first)[0] == 200
    assert one.result(20).status == 200
    assert stage.person.get("/api/holds") == []


def test_what_never_was_is_not_found(stage: DeskStage) -> None:
    for call in ("edits", "release", "drop", "answer"):
        body = {"body_sha256": "0" * 64, "reply": {}, "op": "undo"}
        status, told = stage.person.act("x_nothing", call, body)
        assert (status, told["error"]["code"]) == (404, "usage")


def test_calls_of_a_reply_are_edited_dropped_and_released(stage: DeskStage) -> None:
    person = stage.person
    stage.says(calls=True)
    person.put("/api/interception", {"mode": "rules"})
    person.put("/api/rules", TOOLS)
    try:
        exchange, waiting = stage.hold(BODY)
        view = person.view(exchange)
        (call,) = view["sections"]
        assert (view["hold"]["phase"], call["text"], call["parts"][0]["call_id"]) == (
            "tool_calls", '{"city":"Rome"}', "call_1",
        )  # fmt: skip
        assert sha256(stage.server.body(exchange, "held")).hexdigest() == view["body_sha256"]
        assert stage.server.body(exchange, "sent") == json.dumps(BODY).encode()
        said = person.get(f"/api/exchanges/{exchange}/conversation")["sections"]
        assert [section["text"] for section in said][:2] == ["Be kind.", "aaabbb"], "what led to the calls"
        assert not any(section["editable"] for section in said)
        reply = person.get(f"/api/exchanges/{exchange}/reply")
        assert reply["reply"]["parts"][1]["arguments"] == '{"city":"Rome"}'
        broken = person.edited(exchange, op="set_text", section=call["id"], text="{")
        assert broken["validity"]["ok"] is False
        assert person.release(exchange)[0] == 422
        after = person.edit(exchange, "?changed=1", op="set_text", section=call["id"], text='{"city":"Bern"}')[1]
        assert [section["text"] for section in after["sections"]] == ['{"city":"Bern"}']
        diff = person.get(f"/api/exchanges/{exchange}/diff")
        assert [item["change"] for item in diff["items"]] == ["changed"]
        assert person.ask("GET", f"/api/exchanges/{exchange}/diff?against=previous")[0] == 422
        assert person.edit(exchange, op="expand")[0] == 422
        assert person.edit(exchange, op="delete", section=call["id"])[0] == 200
        assert person.get(f"/api/exchanges/{exchange}/diff")["items"][0]["change"] == "removed"
        assert person.edit(exchange, op="undo")[0] == 200
        assert person.release(exchange)[0] == 200
        function = waiting.result(20).json()["choices"][0]["message"]["tool_calls"][0]["function"]
        assert function == {"name": "weather", "arguments": '{"city":"Bern"}'}
        over = person.ended(exchange)
        assert over["body_sha256"] == over["hashes"]["sent"]
        shown = person.get(f"/api/exchanges/{exchange}/reply")
        assert (shown["by_hand"], shown["reply"]["parts"][1]["arguments"]) == (True, '{"city":"Bern"}')
        exchange, waiting = stage.hold(BODY)
        assert person.act(exchange, "drop", {"reason": "too far"})[0] == 200
        assert waiting.result(20).status == 400
    finally:
        person.put("/api/rules", [])
        person.put("/api/interception", {"mode": "every"})
        stage.says()


def test_an_edit_that_is_kept_is_made_again_on_the_next_request(stage: DeskStage) -> None:
    person = stage.person
    exchange, waiting = stage.hold(BODY, session="kept@lab")
    system = person.view(exchange)["sections"][0]["id"]
    person.edited(exchange, op="set_text", section=system, text="Be brief.", keep="project")
    (mask,) = person.get("/api/masks")
    assert (mask["scope"], mask["name"], mask["kind"]) == ("project", "lab", "patch")
    assert mask["hunks"] == [{"before": "Be ", "old": "kind", "new": "brief", "after": "."}]
    person.release(exchange)
    waiting.result(20)
    exchange, waiting = stage.hold(BODY, session="other@lab")
    view = person.view(exchange)
    assert (view["sections"][0]["text"], view["dirty"]) == ("Be brief.", True)
    assert [outcome["outcome"] for outcome in view["masks"]] == ["applied"]
    assert person.edited(exchange, op="reset")["sections"][0]["text"] == "Be kind."
    person.release(exchange)
    waiting.result(20)
    assert person.put("/api/masks", []) == []


def test_edits_are_kept_after_they_are_made_and_by_the_release(stage: DeskStage) -> None:
    person = stage.person
    exchange, waiting = stage.hold(BODY, session="kept@lab")
    system = person.view(exchange)["sections"][0]["id"]
    person.edited(exchange, op="set_text", section=system, text="Be brief.")
    assert person.edit(exchange, op="keep", scope="forever")[0] == 400
    view = person.edited(exchange, op="keep", scope="session")
    (mask,) = person.get("/api/masks")
    assert (view["kept"], mask["name"]) == ([mask["id"]], "kept@lab")
    person.edited(exchange, op="undo")
    assert person.get("/api/masks") == []
    person.edited(exchange, op="redo")
    assert [each["id"] for each in person.get("/api/masks")] == [mask["id"]]
    assert person.edited(exchange, op="reset")["kept"] == []
    assert person.get("/api/masks") == []
    shown = person.edited(exchange, op="set_text", section=system, text="Be terse.")["body_sha256"]
    assert person.act(exchange, "release", {"body_sha256": shown, "keep": "always"})[0] == 422
    assert person.act(exchange, "release", {"body_sha256": shown, "keep": "all"})[0] == 200
    waiting.result(20)
    assert [each["scope"] for each in person.get("/api/masks")] == ["all"]
    exchange, waiting = stage.hold(BODY, session="other")
    assert person.view(exchange)["sections"][0]["text"] == "Be terse."
    person.release(exchange)
    waiting.result(20)
    assert person.put("/api/masks", []) == []


def test_a_request_that_leans_on_stored_state_is_written_out(tmp_path: Path) -> None:
    reply = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": [
            {
                "type": "message",
                "id": "m1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Hello.", "annotations": []}],
            }
        ],
    }
    with desk_stage(tmp_path, "openai-responses") as stage:
        stage.upstream.script = [answer(200, json.dumps(reply).encode(), JSON)]
        person = stage.person
        exchange, waiting = stage.hold({"model": "m", "input": "hi"})
        person.release(exchange)
        waiting.result(20)
        exchange, waiting = stage.hold({"model": "m", "input": "and now?", "previous_response_id": "resp_1"})
        view = person.edited(exchange, op="expand")
        assert [section["text"] for section in view["sections"][:3]] == ["hi", "Hello.", "and now?"]
        assert view["facts"][-1]["operation"] == "expand"
        assert person.edited(exchange, op="undo")["dirty"] is False
        person.edited(exchange, op="redo")
        person.release(exchange)
        waiting.result(20)
        assert "previous_response_id" not in json.loads(stage.sent[-1])
        exchange, waiting = stage.hold({"model": "m", "input": "and?", "previous_response_id": "resp_unknown"})
        status, told = person.edit(exchange, op="expand")
        assert (status, "resp_unknown" in told["error"]["message"]) == (422, True)
        person.act(exchange, "drop")
        waiting.result(20)
