import pytest

from sightline.chat.core.imports.reading import read_chat
from sightline.errors import Code, Fault


@pytest.mark.parametrize(
    ("data", "source"),
    [
        (b'[{"title":"x","mapping":{}}]', "chatgpt"),
        (b'[{"name":"x","chat_messages":[]}]', "claude"),
        (b'\xef\xbb\xbf {"schemaVersion":"1","pairs":[]}', "maichat"),
        (b'{"schema":"sightline-chat/1","pairs":[]}', "sightline"),
        (b"\xef\xbb\xbf## User\nWhy?", "markdown"),
    ],
)
def test_an_export_is_known_by_its_looks(data: bytes, source: str) -> None:
    assert read_chat(data).source == source


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"PK\x03\x04...", "archive"),
        (b'{"some":"json"}', "no export"),
        (b"[not json", ""),
        (b"\xff\xfe\x00", "no text"),
        (b"just words", "nobody speaks"),
    ],
)
def test_anything_else_is_refused_with_what_to_do(data: bytes, why: str) -> None:
    with pytest.raises(Fault) as caught:
        read_chat(data)
    assert caught.value.code in (Code.INVALID_REQUEST, Code.USAGE)
    assert why in caught.value.message
    assert caught.value.hint
