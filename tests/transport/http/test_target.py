import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Code, Fault
from sightline.transport.http.target import Origin, target


@pytest.mark.parametrize(
    ("url", "origin", "path"),
    [
        ("https://api.example.com/v1/chat?x=1#part", Origin("https", "api.example.com", 443), "/v1/chat?x=1"),
        ("http://127.0.0.1:9000", Origin("http", "127.0.0.1", 9000), "/"),
        ("http://[::1]:8080/a", Origin("http", "::1", 8080), "/a"),
        ("HTTPS://API.Example.com", Origin("https", "api.example.com", 443), "/"),
        ("https://bücher.example/", Origin("https", "xn--bcher-kva.example", 443), "/"),
    ],
)
def test_a_url_is_taken_apart(url: str, origin: Origin, path: str) -> None:
    aim = target(url)
    assert (aim.origin, aim.path) == (origin, path)


def test_an_origin_is_named_as_the_host_header_names_it() -> None:
    assert Origin("https", "a.example", 443).place == "a.example"
    assert Origin("http", "a.example", 443).place == "a.example:443"
    assert Origin("http", "::1", 80).place == "[::1]"
    assert Origin("https", "a.example", 443).authority == "a.example:443"


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("localhost", True),
        ("localhost.", True),
        ("x.localhost", True),
        ("x.localhost.", True),
        ("127.8.8.8", True),
        ("127.1", True),
        ("0x7f.1", True),
        ("2130706433", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:7f00:1", True),
        ("::ffff:10.0.0.1", False),
        ("10.0.0.1", False),
        ("10.1", False),
        ("127.example", False),
        ("notlocalhost", False),
        ("localhost.example", False),
        ("a", False),
        ("", False),
    ],
)
def test_it_knows_this_machine(host: str, is_loopback: bool) -> None:
    assert Origin("http", host, 80).is_loopback is is_loopback


@pytest.mark.parametrize(
    "url",
    [
        "api.example.com/v1",
        "ftp://a.example/",
        "https://",
        "https://a.example:port/",
        "https://a.example:99999/",
        "https://a.example:0/",
        "https://[::1/",
        "https://[fe80::1%eth0]/",
        "https://[v1.x]/",
        "https://a b.example/",
        "https://a.example/with space",
        "https://a.example/line\r\nX-Injected: 1",
        "https://a.example/line\n",
        "https://a.example/ü",
        "https://a..example/",
        "https://user:secret@a.example/",
        "https://a.example?x=1 y",
    ],
)
def test_a_url_that_cannot_be_sent_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(Fault) as caught:
        target(url)
    assert caught.value.code is Code.INVALID_REQUEST
    assert caught.value.hint
    assert "secret" not in str(caught.value)


@given(st.text())
def test_any_text_is_a_target_or_a_fault(text: str) -> None:
    for url in (text, f"https://{text}", f"https://a.example/{text}"):
        try:
            aim = target(url)
        except Fault:
            continue
        assert aim.path.isascii()
        assert aim.path.startswith("/")
        assert not set(aim.path + aim.origin.host) & set("\r\n\t \0")


def test_its_repr_has_no_query() -> None:
    assert "secret" not in repr(target("https://a.example/v1?key=secret"))
