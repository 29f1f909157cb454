import pytest

from sightline.errors import Code
from sightline.web.guard import OriginGuard, host_name

OWN = OriginGuard(7700)


def refused(guard: OriginGuard, **told: str) -> bool:
    headers = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in told.items()]
    return guard.refusal(headers) is not None


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:7700", "localhost", "LocalHost:7700", "[::1]", "[::1]:7700", " localhost "]
)
def test_the_own_names_are_known_in_any_case_with_the_own_port_or_none(host: str) -> None:
    assert not refused(OWN, host=host)


@pytest.mark.parametrize(
    "host",
    [
        "", "evil.example", "evil.example:7700", "127.0.0.1:7701", "localhost:80", "localhost.evil.example",
        "127.0.0.1.evil.example", "[::1]:7701", "::1", "127.0.0.1:", "127.0.0.1:7700:7700", "user@localhost",
        "127.0.0.2", "0.0.0.0:7700", "localhost:٧٧٠٠", "localhost, evil.example",
    ],
)  # fmt: skip
def test_any_other_name_is_refused(host: str) -> None:
    assert OWN.refusal([(b"host", host.encode())]) is not None


def test_no_name_at_all_is_refused() -> None:
    fault = OWN.refusal([(b"accept", b"*/*")])
    assert fault is not None
    assert fault.code is Code.PERMISSION
    assert fault.status == 403
    assert "http://127.0.0.1:7700" in fault.hint


@pytest.mark.parametrize("name", [b"host", b"origin", b"sec-fetch-site"])
def test_a_header_that_decides_stands_once(name: bytes) -> None:
    value = {b"host": b"localhost", b"origin": b"http://localhost:7700", b"sec-fetch-site": b"none"}[name]
    others = [] if name == b"host" else [(b"host", b"localhost")]
    assert OWN.refusal([*others, (name, value)]) is None
    assert OWN.refusal([*others, (name, value), (name, value)]) is not None


@pytest.mark.parametrize("origin", ["http://127.0.0.1:7700", "http://localhost:7700", "HTTP://LOCALHOST:7700"])
def test_the_own_page_may_ask(origin: str) -> None:
    assert not refused(OWN, host="localhost:7700", origin=origin, sec_fetch_site="same-origin")


@pytest.mark.parametrize(
    "origin",
    [
        "null", "", "http://evil.example", "https://localhost:7700", "http://localhost", "http://localhost:5173",
        "http://127.0.0.1:7701", "http://evil.example:7700", "localhost:7700", "http://localhost:7700.evil.example",
        "http://localhost:7700/", "chrome-extension://abc", "file://",
    ],
)  # fmt: skip
def test_pages_of_other_origins_may_not(origin: str) -> None:
    assert refused(OWN, host="localhost:7700", origin=origin)


@pytest.mark.parametrize(("site", "is_refused"), [("same-origin", False), ("none", False), ("SAME-ORIGIN", False),
                                                  ("cross-site", True), ("same-site", True), ("", True)])  # fmt: skip
def test_what_the_browser_says_of_the_sender_counts(site: str, is_refused: bool) -> None:
    assert refused(OWN, host="localhost", sec_fetch_site=site) is is_refused


def test_a_program_that_sends_a_mode_is_no_browser() -> None:
    assert not refused(OWN, host="localhost", sec_fetch_mode="cors")


def test_an_origin_that_a_person_has_allowed_may_ask_from_its_own_site() -> None:
    guard = OriginGuard(7700, origins=frozenset({"http://localhost:5173"}))
    assert not refused(guard, host="localhost:7700", origin="http://localhost:5173", sec_fetch_site="same-site")
    assert refused(guard, host="localhost:7700", origin="http://localhost:5174")
    assert refused(guard, host="evil.example", origin="http://localhost:5173")


def test_on_the_usual_port_an_origin_has_none() -> None:
    assert not refused(OriginGuard(80), host="localhost", origin="http://localhost")


def test_another_host_joins_and_only_it() -> None:
    guard = OriginGuard(7700, hosts=frozenset({"127.0.0.1", "localhost", "[::1]", "box.lan"}))
    assert not refused(guard, host="box.lan:7700", origin="http://box.lan:7700")
    assert refused(guard, host="other.lan:7700")


def test_the_hint_names_a_host_that_works() -> None:
    fault = OriginGuard(7700, hosts=frozenset({"box.lan"})).refusal([])
    assert fault is not None
    assert "http://box.lan:7700" in fault.hint


@pytest.mark.parametrize(("host", "shown"), [("::1", "[::1]"), ("[::1]", "[::1]"), ("Box.LAN", "box.lan")])
def test_a_host_is_written_as_in_a_url(host: str, shown: str) -> None:
    assert host_name(host) == shown
