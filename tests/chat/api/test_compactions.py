from collections.abc import Iterator

import pytest

from tests.chat.api.http_stage import ChatDesk, chat_desk
from tests.upstream import says


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatDesk]:
    with chat_desk(tmp_path_factory.mktemp("compactions")) as made:
        yield made


def test_what_to_do_is_said_to_the_model(desk: ChatDesk) -> None:
    pair = desk.ask("one")["id"]
    desk.done("POST", "compaction/draft", {"view": "v", "ids": [pair], "instruction": "In one word."})
    assert desk.sent[-1]["messages"][-1] == {"role": "user", "content": "In one word."}


def test_a_draft_that_fails_changes_nothing(desk: ChatDesk) -> None:
    pair = desk.ask("two")["id"]
    before = desk.done("GET", "views/v")["version"]
    desk.upstream.script = [says({"error": {"message": "bad key", "code": "invalid_api_key"}}, 401)]
    error = desk.refused(422, "POST", "compaction/draft", {"view": "v", "ids": [pair]})
    assert (error["code"], error["message"]) == ("auth", "bad key")
    assert desk.done("GET", "views/v")["version"] == before
    desk.answers("Fine.")


@pytest.mark.parametrize(
    ("path", "value", "status"),
    [
        ("compaction/draft", {"view": "v", "ids": []}, 422),
        ("compaction/draft", {"view": "v", "ids": ["none"]}, 404),
        ("compaction/compare", {"view": "v", "ids": ["none"], "text": "x"}, 404),
        ("compaction", {"ids": ["none"], "text": "x"}, 404),
        ("compaction", {"ids": ["none"]}, 422),
        ("compaction/undo", {"id": "none"}, 404),
        ("compaction/undo", {}, 422),
    ],
)
def test_what_cannot_be_summed_up(desk: ChatDesk, path: str, value: dict[str, object], status: int) -> None:
    desk.refused(status, "POST", path, value)


def test_a_summary_needs_words_and_only_a_summary_is_undone(desk: ChatDesk) -> None:
    pair = desk.ask("three")["id"]
    desk.refused(400, "POST", "compaction", {"ids": [pair], "text": " "})
    desk.refused(400, "POST", "compaction/undo", {"id": pair})
    nothing = desk.done("POST", "compaction/compare", {"view": "v", "ids": [pair], "text": ""})
    assert nothing["after"]["tokens"] == 0
