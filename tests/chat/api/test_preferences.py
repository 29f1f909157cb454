from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chat.api.http_stage import ChatDesk, chat_desk


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatDesk]:
    with chat_desk(tmp_path_factory.mktemp("preferences"), "[chat]\nuser_request_allowance = 700\n") as made:
        yield made


def test_settings_are_those_of_the_configuration_until_the_page_sets_others(desk: ChatDesk) -> None:
    told = desk.done("GET", "preferences")
    assert told["settings"]["userRequestAllowance"] == 700
    assert told["settings"]["charsPerToken"] == 3.5
    assert desk.done("GET", "views/v")["room"]["user"] == 700
    with desk.person.listening() as news:
        told = desk.done("PUT", "preferences", {"settings": {**told["settings"], "userRequestAllowance": 50}})
        while news.get(timeout=20).get("kind") != "preferences":
            pass
    assert told["settings"]["userRequestAllowance"] == 50
    assert desk.done("GET", "views/v")["room"]["user"] == 50
    desk.done("PUT", "preferences", {"settings": {}})
    assert desk.done("GET", "views/v")["room"]["user"] == 700


def test_what_is_as_configured_follows_the_configuration(tmp_path: Path) -> None:
    with chat_desk(tmp_path, "[chat]\nmax_trim_attempts = 4\n") as desk:
        desk.done("PUT", "preferences", {"settings": desk.done("GET", "preferences")["settings"]})
    with chat_desk(tmp_path, "[chat]\nmax_trim_attempts = 6\n") as desk:
        assert desk.done("GET", "preferences")["settings"]["maxTrimAttempts"] == 6


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
        {"saved_filters": [{"name": "a", "filter": "nothing"}]},
        {"saved_filters": [{"name": "a", "filter": "@b"}, {"name": "b", "filter": ""}]},
        {"saved_filters": [{"name": "a", "filter": "b"}, {"name": "a", "filter": "g"}]},
    ],
)
def test_what_cannot_be_set(desk: ChatDesk, wanted: dict[str, object]) -> None:
    before = desk.done("GET", "preferences")
    desk.refused(422, "PUT", "preferences", wanted)
    assert desk.done("GET", "preferences") == before


def test_a_saved_filter_is_called_by_its_name(desk: ChatDesk) -> None:
    desk.done("POST", "mark", {"ids": [desk.ask("one")["id"]], "star": 3})
    desk.ask("two")
    saved = [{"name": "good", "filter": "s>=2"}]
    assert desk.done("PUT", "preferences", {"saved_filters": saved})["saved_filters"] == saved
    shown = desk.look(filter="@good")
    assert (shown["filter"], [row["user_text"] for row in desk.rows()]) == ("@good", ["one"])
    error = desk.refused(422, "PUT", "views/v", {"filter": "@god"})
    assert '"@good"' in error["hint"]
    told = desk.done("GET", "filter?text=%40go")
    assert [each["text"] for each in told["completions"]] == ["@good"]
    desk.look(filter="")
