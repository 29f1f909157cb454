import pytest

from sightline.dialects.media import from_url, to_url
from sightline.model.parts import Inline, Link


@pytest.mark.parametrize(
    ("url", "source"),
    [
        ("data:image/png;base64,AAAA", Inline("image/png", "AAAA")),
        ("data:text/plain;charset=utf-8;base64,AAAA", Inline("text/plain;charset=utf-8", "AAAA")),
        ("DATA:;base64,AAAA", Inline("", "AAAA")),
        ("https://example.com/a.png", Link("https://example.com/a.png")),
        ("data:text/plain,hello", Link("data:text/plain,hello")),
    ],
)
def test_a_url_is_inline_bytes_or_a_link(url: str, source: Inline | Link) -> None:
    assert from_url(url) == source
    assert to_url(source).lower() == url.lower()
