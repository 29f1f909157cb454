"""What a client's headers tell of it."""

from sightline.exchange.redaction import identify_caller

KEY = "sk-secret-0123456789"
HEADERS = (
    ("User-Agent", "tool/1 (x)"),
    ("Authorization", f"Bearer {KEY}"),
    ("Session-Id", "s-1"),
    ("X-Echo", f"a {KEY}"),
)


def test_a_client_is_known_without_its_secrets() -> None:
    caller = identify_caller(HEADERS, "/v1/messages", f"key={KEY}&beta=true", ())
    assert (caller.program, caller.client, caller.session) == ("tool/1", "tool/1", "s-1")
    assert caller.address == "/v1/messages?key=***&beta=true"
    assert dict(caller.headers) == {
        "User-Agent": "tool/1 (x)", "Authorization": "***", "Session-Id": "s-1", "X-Echo": "a ***"
    }  # fmt: skip


def test_our_own_secrets_are_kept_out_too() -> None:
    caller = identify_caller((("User-Agent", "configured-key"),), "/", "", ("configured-key",))
    assert (caller.program, caller.client) == ("configured-key", "***")
    assert caller.redaction.text("a configured-key") == "a ***"


def test_what_a_client_sends_again_is_worked_out_once() -> None:
    assert identify_caller(HEADERS, "/", "", ()) is identify_caller(HEADERS, "/", "", ())
    assert identify_caller(HEADERS, "/", "", ()) is not identify_caller(HEADERS, "/other", "", ())
