import json
from collections.abc import Iterator

import pytest

from sightline.chat.api.files import MOST_IMPORTED
from tests.chat.api.http_stage import ChatDesk, chat_desk

MARKDOWN = b"# Old\n\n## User\n\nWhat is 1 + 1?\n\n## Assistant\n\n2\n"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatDesk]:
    with chat_desk(tmp_path_factory.mktemp("files")) as made:
        made.ask("one")
        made.done("POST", "mark", {"ids": [made.ask("two")["id"]], "star": 2})
        yield made


def exported(desk: ChatDesk, query: str) -> tuple[dict[str, str], str]:
    answer = desk.raw("GET", f"export?{query}")
    assert answer.status == 200, answer.body
    assert answer.headers["x-content-type-options"] == "nosniff"
    return answer.headers, answer.body.decode()


def test_a_chat_goes_out_to_be_read(desk: ChatDesk) -> None:
    headers, text = exported(desk, "view=v&as=markdown")
    assert headers["content-type"] == "text/markdown; charset=utf-8"
    assert 'filename="chat.md"' in headers["content-disposition"]
    assert text.count("### User") == 2


def test_a_filter_says_what_goes_out(desk: ChatDesk) -> None:
    _, text = exported(desk, "view=v&filter=s2&as=json")
    told = json.loads(text)
    assert (told["count"], told["filterInput"], [each["userText"] for each in told["pairs"]]) == (1, "s2", ["two"])
    desk.look("narrow", filter="s0")
    assert json.loads(exported(desk, "view=narrow")[1])["count"] == 1
    assert json.loads(exported(desk, "view=narrow&filter=")[1])["count"] == 2
    assert json.loads(exported(desk, "")[1])["count"] == 2


def test_a_chat_goes_out_to_train_with(desk: ChatDesk) -> None:
    headers, text = exported(desk, "view=v&as=jsonl&name=train.jsonl")
    assert 'filename="train.jsonl"' in headers["content-disposition"]
    assert len(text.splitlines()) == 2
    _, text = exported(desk, "view=v&as=jsonl&whole_topics=1")
    assert [len(json.loads(line)["messages"]) for line in text.splitlines()] == [4]


def test_what_cannot_go_out(desk: ChatDesk) -> None:
    assert "markdown" in desk.refused(400, "GET", "export?as=markdwn")["hint"]
    desk.refused(400, "GET", "export?filter=s2")
    desk.refused(400, "GET", "export?as=jsonl&whole_topics=maybe")
    desk.refused(404, "GET", "export?view=none")
    assert desk.refused(422, "GET", "export?view=v&filter=nothing")["details"] == {"column": 1, "length": 7}


def test_a_text_comes_in(desk: ChatDesk) -> None:
    tried = desk.raw("POST", "import?name=old.md&dry_run=1", MARKDOWN).json()
    assert (tried["pairs"], tried["skipped"], tried["format"]) == (1, 0, "markdown")
    assert all(row["user_text"] != "What is 1 + 1?" for row in desk.rows())
    assert desk.raw("POST", "import?name=old.md", MARKDOWN).json() == tried
    [row] = [row for row in desk.rows() if row["user_text"] == "What is 1 + 1?"]
    assert row["answer"]["text"] == "2"
    again = desk.raw("POST", "import?name=old.md", MARKDOWN).json()
    assert (again["pairs"], again["skipped"], again["topics"]) == (0, 1, 0)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"  ",
        b"{",
        b"{}",
        b"[]",
        b"just words",
        b"PK\x03\x04 zip",
        b"\xff\xfe\xfd",
        b"[" * 5000 + b"]" * 5000,
        b'{"schema":"sightline-chat/1","pairs":[{"id":"a","kept":{"answer":7}}]}',
        b'{"schema":"sightline-chat/1","topics":[{"id":7}],"pairs":[]}',
    ],
)
def test_what_is_no_chat_does_not_come_in(desk: ChatDesk, data: bytes) -> None:
    before = desk.done("GET", "views/v")["version"]
    answer = desk.raw("POST", "import", data)
    assert answer.status == 422, answer.body
    assert answer.json()["error"]["hint"]
    assert desk.done("GET", "views/v")["version"] == before


def test_a_tree_that_cannot_be_is_refused_whole(desk: ChatDesk) -> None:
    topics = [{"id": str(n), "name": str(n), "parent": str(n - 1) if n else ""} for n in range(40)]
    document = {"schema": "sightline-chat/1", "topics": topics, "pairs": [{"id": "deep", "topicId": "39"}]}
    answer = desk.raw("POST", "import", json.dumps(document).encode())
    assert answer.status == 400, answer.body
    desk.refused(404, "GET", "pairs/deep")


@pytest.mark.parametrize(
    ("topics", "topic", "named"),
    [([], "gone", "the pair 'p-1'"), ([{"id": "t", "name": "T", "parent": "gone"}], "t", "the topic 'T'")],
)
def test_a_topic_that_nobody_knows_is_named_and_nothing_comes_in(
    desk: ChatDesk, topics: list[dict[str, str]], topic: str, named: str
) -> None:
    pair = {"id": "p-1", "topicId": topic, "userText": "hi", "timestamp": 5, "kept": {}}
    data = json.dumps({"schema": "sightline-chat/1", "topics": topics, "pairs": [pair]}).encode()
    before = len(json.loads(exported(desk, "")[1])["pairs"])
    answer = desk.raw("POST", "import", data)
    assert answer.status == 422
    error = json.loads(answer.body)["error"]
    assert error["message"] == f"{named} is in the topic 'gone', which is neither in the file nor in this chat"
    assert "Nothing was imported" in error["hint"]
    assert len(json.loads(exported(desk, "")[1])["pairs"]) == before


def test_a_file_larger_than_can_be_taken_is_refused(desk: ChatDesk) -> None:
    answer = desk.raw("POST", "import", b"x" * (MOST_IMPORTED + 1))
    assert answer.status == 413
    assert "200 MiB" in answer.json()["error"]["message"]
