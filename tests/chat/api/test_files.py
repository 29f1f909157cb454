import base64
import json
from collections.abc import Iterator

import pytest

from sightline.chat.api.files import download, media, parts_from_uploads, size_of
from sightline.chat.api.requests import AttachmentWanted
from sightline.errors import Fault
from sightline.model.parts import Audio, Document, FileId, Image, Inline, Link, Part, PlainText, Refusal, Text
from tests.chat.api.http_stage import ChatDesk, chat_desk

PNG, JPEG, PDF, WAV = b"\x89PNG\r\n\x1a\n rest", b"\xff\xd8\xff rest", b"%PDF-1.7 rest", b"RIFF\0\0\0\0WAVE rest"


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_files_become_parts_in_their_order() -> None:
    parts = parts_from_uploads(
        (
            AttachmentWanted(coded(PNG), "a.png", "image/png"),
            AttachmentWanted(coded(b"words\n"), "a.txt", "text/plain; charset=utf-8"),
            AttachmentWanted(coded(PDF), "", "application/pdf"),
            AttachmentWanted(coded(WAV), "a.wav", "audio/x-wav"),
        )
    )
    assert parts == (
        Image(Inline("image/png", coded(PNG))),
        Text("File: a.txt\n```\nwords\n```\n"),
        Document(Inline("application/pdf", coded(PDF)), "file 3.pdf"),
        Audio(Inline("audio/wav", coded(WAV))),
    )


def test_one_picture_under_the_name_of_another_is_taken_for_what_it_is() -> None:
    assert parts_from_uploads((AttachmentWanted(coded(JPEG), "a.png", "image/png"),)) == (
        Image(Inline("image/jpeg", coded(JPEG))),
    )


def test_a_drawing_is_a_text() -> None:
    [part] = parts_from_uploads((AttachmentWanted(coded(b"<svg/>"), "a.svg", "image/svg+xml"),))
    assert isinstance(part, Text)


def test_what_would_break_the_line_of_a_name_is_taken_out_of_it() -> None:
    [part] = parts_from_uploads((AttachmentWanted(coded(b"x"), "a\nb" + "c" * 300, ""),))
    assert part.text.startswith("File: a?bccc")
    assert len(part.text.partition("\n")[0]) == len("File: ") + 200


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (AttachmentWanted("no base64!", "a.png", "image/png"), "a.png: the data is not base64"),
        (AttachmentWanted("YQ", "a.png"), "a.png: the data is not base64"),
        (AttachmentWanted("ä", "a.png"), "a.png: the data is not base64"),
        (AttachmentWanted("", "a.png"), "a.png: the file is empty"),
        (
            AttachmentWanted(coded(b"text"), "a.png", "image/png"),
            'a.png: it claims to be "image/png", but its bytes are text',
        ),
        (
            AttachmentWanted(coded(PNG), "a.pdf", "application/pdf"),
            'a.pdf: it claims to be "application/pdf", but its bytes are image/png',
        ),
        (
            AttachmentWanted(coded(PNG), "a.svg", "image/svg+xml"),
            'a.svg: it claims to be "image/svg+xml", but its bytes are image/png',
        ),
        (
            AttachmentWanted(coded(b"<svg/>"), "a.svg", "image/png"),
            'a.svg: it claims to be "image/png", but its bytes are text',
        ),
        (AttachmentWanted(coded(b"\0\1"), "a.bin"), "a.bin: an unknown kind of file cannot be attached"),
    ],
)
def test_what_is_not_what_it_says_is_refused(wanted: AttachmentWanted, message: str) -> None:
    with pytest.raises(Fault) as caught:
        parts_from_uploads((wanted,))
    assert (caught.value.status, caught.value.message) == (422, message)
    assert caught.value.hint


def inline(kind: str, data: bytes) -> Inline:
    return Inline(kind, base64.b64encode(data).decode())


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff rest", "image/jpeg"),
        (b"GIF89a rest", "image/gif"),
        (b"RIFF\0\0\0\0WEBP rest", "image/webp"),
    ],
)
def test_pictures_are_shown_as_what_they_are(data: bytes, kind: str) -> None:
    answer = media(Image(inline("text/html", data)))
    headers = dict(answer.headers)
    assert (answer.status, answer.body, headers[b"content-type"]) == (200, data, kind.encode())
    assert headers[b"x-content-type-options"] == b"nosniff"
    assert b"sandbox" in headers[b"content-security-policy"]
    assert b"content-disposition" not in headers


@pytest.mark.parametrize(
    ("part", "data", "name"),
    [
        (Image(inline("image/svg+xml", b"<svg onload=alert(1)/>")), b"<svg onload=alert(1)/>", "file"),
        (Image(inline("image/png", b"<script>1</script>")), b"<script>1</script>", "file"),
        (Document(inline("application/pdf", PDF), "a.pdf"), PDF, "a.pdf"),
        (Document(PlainText("words"), "a.txt"), b"words", "a.txt"),
        (Audio(inline("audio/wav", b"RIFF....WAVE")), b"RIFF....WAVE", "file"),
        (Text("File: a.html\n```\n<b>\n```\n"), b"<b>", "a.html"),
    ],
)
def test_everything_else_is_only_to_be_kept(part: Part, data: bytes, name: str) -> None:
    answer = media(part)
    headers = dict(answer.headers)
    assert answer.body == data
    assert headers[b"content-type"] == b"application/octet-stream"
    assert headers[b"content-disposition"].startswith(f'attachment; filename="{name}"'.encode())
    assert headers[b"x-content-type-options"] == b"nosniff"
    assert b"sandbox" in headers[b"content-security-policy"]


@pytest.mark.parametrize(
    "part",
    [
        Image(Link("https://example.com/a.png")),
        Document(FileId("file_1")),
        Audio(),
        Refusal("no"),
        Image(Inline("image/png", "x")),
    ],
)
def test_what_is_not_here_is_not_there(part: Part) -> None:
    with pytest.raises(Fault) as caught:
        media(part)
    assert caught.value.status == 404


def test_non_ascii_file_name_is_encoded_in_the_header() -> None:
    told = dict(download(b"x", 'Ärger "1"\n.md').headers)[b"content-disposition"]
    assert told == b"attachment; filename=\"_rger _1__.md\"; filename*=UTF-8''%C3%84rger%20%221%22%0A.md"


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (Text("File: a\n```\nabc\n```\n"), ("text/plain", 3)),
        (Image(inline("image/png", PNG)), ("image/png", len(PNG))),
        (Image(inline("image/png", PNG + b"1")), ("image/png", len(PNG) + 1)),
        (Document(PlainText("äb")), ("text/plain", 3)),
        (Image(Link("https://example.com/a", "image/png")), ("image/png", 0)),
        (Document(FileId("f")), ("", 0)),
        (Audio(inline("audio/wav", b"12345")), ("audio/wav", 5)),
        (Audio(), ("", 0)),
        (Refusal("no"), ("", 0)),
    ],
)
def test_how_large_a_file_is(part: Part, told: tuple[str, int]) -> None:
    assert size_of(part) == told


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
    assert desk.refused(422, "GET", "export?view=v&filter=nothing:x")["details"] == {"column": 1, "length": 7}


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
def test_import_with_an_unknown_topic_is_rejected_and_names_it(
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


def test_a_file_larger_than_can_be_taken_is_refused(desk: ChatDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.chat.api.files.MOST_IMPORTED", 1 << 20)
    answer = desk.raw("POST", "import", b"x" * ((1 << 20) + 1))
    assert (answer.status, answer.json()["error"]["message"]) == (413, "the body is larger than 1 MiB")
