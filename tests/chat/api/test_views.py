import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chat.api.http_stage import ChatDesk, chat_desk
from tests.local_model import needs_model
from tests.tool_desk import marks_in


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatDesk]:
    with chat_desk(tmp_path_factory.mktemp("views")) as made:
        made.ask("one")
        made.ask("two")
        yield made


def test_view_shows_what_will_be_sent(desk: ChatDesk) -> None:
    shown = desk.look("w")
    assert (shown["view"], shown["filter"], shown["topic"], shown["topic_path"]) == ("w", "", "", [])
    assert (shown["model"], shown["selected"], shown["provider"]) == ("acme/large", "acme/large", "acme")
    assert (shown["visible"], shown["rows"], shown["start"], shown["newest_hidden"]) == (2, 2, 0, False)
    assert shown["counter"]["text"] == "2 / 2"
    assert ["Visible", 2] in shown["counter"]["breakdown"]
    assert shown["room"]["limit"] == 8000
    assert shown["room"]["user"] == 100
    assert shown["history_tokens"] > 0
    assert (shown["sending"], shown["paused"], shown["last"], shown["tools_trouble"]) == ("", None, None, None)
    assert shown["inherited"]["toolsets"] == []


def test_what_is_left_out_of_a_view_stays_as_it_is(desk: ChatDesk) -> None:
    desk.look("w", filter='text:"two"')
    shown = desk.done("PUT", "views/w", {"model": "acme/small"})
    assert (shown["filter"], shown["model"], shown["visible"]) == ('text:"two"', "acme/small", 1)
    shown = desk.done("PUT", "views/w", {"model": ""})
    assert (shown["selected"], shown["model"]) == ("", "acme/large")


def test_the_newest_pair_may_be_hidden(desk: ChatDesk) -> None:
    assert desk.look("w", filter='text:"one"')["newest_hidden"] is True


def test_draft_tokens_are_shown_in_the_breakdown(desk: ChatDesk) -> None:
    breakdown = desk.done("GET", "views/v?text_tokens=12")["counter"]["breakdown"]
    assert breakdown[-1] == ["AUT", 12]
    assert all(label != "AUT" for label, _ in desk.done("GET", "views/v")["counter"]["breakdown"])


def test_last_send_is_shown_without_the_conversation(desk: ChatDesk) -> None:
    last = desk.done("GET", "views/v")["last"]
    assert (last["trim_summary"], last["trouble"]) == ("", None)
    assert (last["telemetry"]["stage"], last["telemetry"]["messages"], last["telemetry"]["selection"]) == (
        "success",
        [],
        [],
    )
    assert desk.pair(last["pair"])["telemetry"][-1]["messages"] != []


def test_a_wrong_filter_says_where(desk: ChatDesk) -> None:
    error = desk.refused(422, "PUT", "views/v", {"filter": "c'\U0001f600' & nothing:x"})
    assert error["details"] == {"column": 9, "length": 7}
    assert "there is no field" in error["message"]
    assert desk.done("GET", "views/v")["filter"] == ""


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ({"filter": 7}, 422),
        ({"filters": ""}, 422),
        ({"topic": "nowhere"}, 404),
        ({"model": "nobody-serves-this"}, 422),
        ({"filter": "model:x@"}, 200),
    ],
)
def test_what_a_view_cannot_be(desk: ChatDesk, wanted: dict[str, object], status: int) -> None:
    assert desk.call("PUT", "views/x", wanted)[0] == status


def test_unknown_view_is_reported_with_a_hint_to_create_it(desk: ChatDesk) -> None:
    for path in ("views/none", "views/none/rows", "views/none/place?pair=x"):
        assert "PUT /api/chat/views/{view}" in desk.refused(404, "GET", path)["hint"]
    for path in ("estimate", "preview", "send"):
        desk.refused(404, "POST", path, {"view": "none", "text": "x"})


def test_rows_come_in_pieces(desk: ChatDesk) -> None:
    whole = desk.done("GET", "views/v/rows?limit=500")
    assert (whole["total"], whole["from"], [row["user_text"] for row in whole["rows"]]) == (2, 0, ["one", "two"])
    second = desk.done("GET", "views/v/rows?from=1&limit=1")
    assert (second["from"], second["rows"]) == (1, whole["rows"][1:])
    assert desk.done("GET", "views/v/rows?from=99")["rows"] == []
    assert desk.done("GET", "views/v/rows?limit=0")["rows"] == []
    assert {row["standing"] for row in whole["rows"]} == {"included"}
    for query in ("from=-1", "limit=x", "from=1e3"):
        desk.refused(400, "GET", f"views/v/rows?{query}")


def test_a_pair_has_a_place_or_none(desk: ChatDesk) -> None:
    second = desk.rows()[1]["id"]
    assert desk.done("GET", f"views/v/place?pair={second}") == {"index": 1}
    assert desk.done("GET", "views/v/place?pair=nobody") == {"index": None}


def test_a_draft_is_measured(desk: ChatDesk) -> None:
    told = desk.done("POST", "estimate", {"view": "v", "text": "How large is this?"})
    assert 0 < told["low"] <= told["tokens"] <= told["high"]
    assert (told["limit"], told["fits"]) == (8000, True)
    assert told["line"].startswith("~")
    large = desk.done("POST", "estimate", {"view": "v", "text": "word " * 20_000})
    assert large["fits"] is False
    with_file = {"view": "v", "text": "", "attachments": [{"media_type": "text/plain", "data": "YWJj"}]}
    assert desk.done("POST", "estimate", with_file)["tokens"] > 0


def test_a_preview_of_nothing_and_of_too_much_says_why(desk: ChatDesk) -> None:
    nothing = desk.done("POST", "preview", {"view": "v", "text": " "})
    shares = [("User", 3), ("Assistant", 2), ("Options", len(json.loads(nothing["body"])) - 1)]
    assert [(each["label"], each["count"]) for each in nothing["shares"]] == shares
    assert nothing["trouble"]["message"] == "there is nothing to send"
    error = desk.refused(422, "POST", "send", {"view": "v", "text": "word " * 20_000})
    assert error["code"] == "user_prompt_too_large"
    assert len(desk.rows()) == 2


def test_a_preview_says_what_the_provider_does_not_take_of_a_tools_schema(tmp_path: Path) -> None:
    marks_in(tmp_path)
    config = '[providers.g]\ndialect = "gemini"\nbase_url = "http://127.0.0.1:9"\n[tools.marks]\nmcp = "marks.json"\n'
    with chat_desk(tmp_path, config) as desk:
        desk.done("PUT", "topics", {"toolsets": ["marks"]})
        desk.look(model="g/some")
        told = desk.done("POST", "preview", {"view": "v", "text": "Mark."})
        assert "marks__mark" in told["body"]
        (loss,) = told["losses"]
        assert loss["what"] == "uniqueItems at /properties/tags of the schema of marks__mark"
        assert told["additions"] == []
        desk.look(model="acme/large")
        assert desk.done("POST", "preview", {"view": "v", "text": "Mark."})["losses"] == []


def test_a_question_that_is_changed_is_sent_as_it_was_previewed(desk: ChatDesk) -> None:
    last = desk.ask("three?")["id"]
    wanted = {"view": "v", "text": "three!", "replaces": last}
    sha256 = desk.done("POST", "preview", wanted)["body_sha256"]
    alone = desk.done("POST", "preview", {"view": "v", "text": "three!"})["body_sha256"]
    assert alone != sha256
    desk.refused(409, "POST", "send", {**wanted, "expect_sha256": alone})
    again = desk.ask("three!", replaces=last, expect_sha256=sha256)
    assert hashlib.sha256(desk.upstream.seen[-1].body).hexdigest() == sha256
    desk.done("POST", "delete", {"ids": [again["id"]]})


def test_the_preview_for_the_embedded_model_names_no_address_that_is_none(desk: ChatDesk) -> None:
    desk.look("local", model="local/smollm2-135m-instruct")
    told = desk.done("POST", "preview", {"view": "local", "text": "Hello."})
    assert (told["provider"], told["url"]) == ("local", "the embedded model, on this machine")
    assert desk.done("POST", "preview", {"view": "v", "text": "x"})["url"].startswith("http://127.0.0.1:")


def test_a_preview_has_the_files_too(desk: ChatDesk) -> None:
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 30).decode()
    wanted = {
        "view": "v",
        "text": "Look.",
        "attachments": [{"name": "a.png", "media_type": "image/png", "data": png}],
    }
    assert png in desk.done("POST", "preview", wanted)["body"]


@needs_model
def test_the_embedded_model_counts_the_next_request_itself(tmp_path: Path) -> None:
    with chat_desk(tmp_path) as desk:
        model = "local/smollm2-135m-instruct"
        desk.done("PUT", "topics", {"parameters": {"max_tokens": 4}})
        desk.look("v", model=model)
        for words in ("Say hello.", "And again, in other words."):
            estimate = desk.done("POST", "estimate", {"view": "v", "text": words})
            preview = desk.done("POST", "preview", {"view": "v", "text": words})
            assert estimate["low"] == estimate["tokens"] == estimate["high"] == preview["tokens"]
            assert estimate["line"] == str(estimate["tokens"])
            assert 0 < estimate["prompt"] < estimate["tokens"]
            pair = desk.ended(desk.done("POST", "send", {"view": "v", "text": words})["pair"])
            assert pair["answer"]["usage"]["input_tokens"] == estimate["tokens"]


@pytest.fixture(scope="module")
def topics_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatDesk]:
    with chat_desk(tmp_path_factory.mktemp("topics")) as made:
        yield made


def listed(topics_desk: ChatDesk) -> dict[str, Any]:
    return {" > ".join(each["path"]): each for each in topics_desk.done("GET", "topics")}


def test_topics_are_a_tree_with_counts(topics_desk: ChatDesk) -> None:
    above = topics_desk.done("POST", "topics", {"name": "Science", "system_prompt": "Be exact.", "model": "acme/large"})
    below = topics_desk.done(
        "POST",
        "topics",
        {"name": "Physics", "parent": above["id"], "parameters": {"temperature": 0.5}, "style_directives": ["short"]},
    )
    assert (below["path"], below["direct"], below["total"]) == (["Science", "Physics"], 0, 0)
    topics_desk.look(topic=below["id"])
    topics_desk.ask("What is light?")
    assert topics_desk.sent[-1]["messages"][0] == {"role": "system", "content": "Be exact.\n\nshort"}
    assert topics_desk.sent[-1]["temperature"] == 0.5
    told = listed(topics_desk)
    assert list(told) == ["", "Science", "Science > Physics"]
    assert [(each["direct"], each["total"]) for each in told.values()] == [(0, 1), (0, 1), (1, 1)]
    shown = topics_desk.done("GET", "views/v")
    assert shown["inherited"]["system_prompt"] == "Be exact."
    topics_desk.look(topic="")


def test_what_is_left_out_of_a_change_stays_and_null_is_as_above(topics_desk: ChatDesk) -> None:
    topic = topics_desk.done("POST", "topics", {"name": "Art", "system_prompt": "Be kind.", "model": "acme/large"})[
        "id"
    ]
    changed = topics_desk.done("PUT", f"topics/{topic}", {"name": "Arts", "model": None})
    assert (changed["name"], changed["system_prompt"], changed["model"]) == ("Arts", "Be kind.", None)
    topics_desk.done("DELETE", f"topics/{topic}")
    assert "Arts" not in listed(topics_desk)
    topics_desk.refused(404, "DELETE", f"topics/{topic}")
    topics_desk.refused(404, "PUT", f"topics/{topic}", {"name": "x"})


def test_settings_of_the_root_topic_apply_everywhere(topics_desk: ChatDesk) -> None:
    for path in ("topics", "topics/"):
        assert topics_desk.done("PUT", path, {"system_prompt": "Everywhere."})["id"] == ""
    assert topics_desk.look("other", topic="")["inherited"]["system_prompt"] == "Everywhere."
    topics_desk.refused(400, "PUT", "topics", {"name": "Root"})
    topics_desk.done("PUT", "topics", {"system_prompt": None})


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ({}, 422),
        ({"name": ""}, 400),
        ({"name": "A", "parent": "none"}, 404),
        ({"name": "A", "parameters": {"temperature": 9}}, 422),
        ({"name": "A", "parameters": {"temp": 1}}, 422),
        ({"name": "A", "toolsets": ["shell"]}, 422),
        ({"name": "A", "id": "mine"}, 422),
    ],
)
def test_what_a_topic_cannot_be(topics_desk: ChatDesk, wanted: dict[str, object], status: int) -> None:
    topics_desk.refused(status, "POST", "topics", wanted)


@pytest.fixture(scope="module")
def preferences_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatDesk]:
    with chat_desk(tmp_path_factory.mktemp("preferences"), "[chat]\nuser_request_allowance = 700\n") as made:
        yield made


def test_settings_are_those_of_the_configuration_until_the_page_sets_others(preferences_desk: ChatDesk) -> None:
    told = preferences_desk.done("GET", "preferences")
    assert told["settings"]["userRequestAllowance"] == 700
    assert told["settings"]["charsPerToken"] == 3.5
    assert preferences_desk.done("GET", "views/v")["room"]["user"] == 700
    with preferences_desk.person.listening() as news:
        told = preferences_desk.done(
            "PUT", "preferences", {"settings": {**told["settings"], "userRequestAllowance": 50}}
        )
        while news.get(timeout=20).get("kind") != "preferences":
            pass
    assert told["settings"]["userRequestAllowance"] == 50
    assert preferences_desk.done("GET", "views/v")["room"]["user"] == 50
    preferences_desk.done("PUT", "preferences", {"settings": {}})
    assert preferences_desk.done("GET", "views/v")["room"]["user"] == 700


def test_what_is_as_configured_follows_the_configuration(tmp_path: Path) -> None:
    with chat_desk(tmp_path, "[chat]\nmax_trim_attempts = 4\n") as preferences_desk:
        preferences_desk.done(
            "PUT", "preferences", {"settings": preferences_desk.done("GET", "preferences")["settings"]}
        )
    with chat_desk(tmp_path, "[chat]\nmax_trim_attempts = 6\n") as preferences_desk:
        assert preferences_desk.done("GET", "preferences")["settings"]["maxTrimAttempts"] == 6


@pytest.mark.parametrize(
    "wanted",
    [
        {"settings": {"charsPerToken": 0}},
        {"settings": {"charsPerToken": "3"}},
        {"settings": {"chars_per_token": 3}},
        {"settings": []},
        {"setting": {}},
        {"saved_filters": [{"name": "a"}]},
        {"saved_filters": [{"name": "", "filter": ""}]},
        {"saved_filters": [{"name": "two words", "filter": ""}]},
        {"saved_filters": [{"name": "a&b", "filter": ""}]},
        {"saved_filters": [{"name": "a", "filter": "nothing:x"}]},
        {"saved_filters": [{"name": "a", "filter": "@b"}, {"name": "b", "filter": ""}]},
        {"saved_filters": [{"name": "a", "filter": "b"}, {"name": "a", "filter": "g"}]},
    ],
)
def test_what_cannot_be_set(preferences_desk: ChatDesk, wanted: dict[str, object]) -> None:
    before = preferences_desk.done("GET", "preferences")
    preferences_desk.refused(422, "PUT", "preferences", wanted)
    assert preferences_desk.done("GET", "preferences") == before


def test_a_saved_filter_is_called_by_its_name(preferences_desk: ChatDesk) -> None:
    preferences_desk.done("POST", "mark", {"ids": [preferences_desk.ask("one")["id"]], "star": 3})
    preferences_desk.ask("two")
    saved = [{"name": "good", "filter": "s>=2"}]
    assert preferences_desk.done("PUT", "preferences", {"saved_filters": saved})["saved_filters"] == saved
    shown = preferences_desk.look(filter="@good")
    assert (shown["filter"], [row["user_text"] for row in preferences_desk.rows()]) == ("@good", ["one"])
    error = preferences_desk.refused(422, "PUT", "views/v", {"filter": "@god"})
    assert '"@good"' in error["hint"]
    told = preferences_desk.done("GET", "filter?text=%40go")
    assert [each["text"] for each in told["completions"]] == ["@good"]
    preferences_desk.look(filter="")
