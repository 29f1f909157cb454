from sightline.model.exchange import (
    AttemptStarted,
    Edited,
    ExchangeCancelled,
    ExchangeFailed,
    ExchangeFinished,
    Fact,
    FrameArrived,
    Received,
    Released,
    Translated,
)
from sightline.model.report import Loss
from sightline.model.usage import Usage
from sightline.store.entries import FactEntry
from sightline.store.summary import Summary
from sightline.workbench.views import body_sha256, fact_shown, line, original_sha256, reply_of, view

SUMMARY = Summary(id="x_1", at=5.0, state="sending", dialect="anthropic", model="m")
RECEIVED = Received("anthropic", "m", "aa", path="/v1/messages")


def noted(*facts: Fact) -> list[FactEntry]:
    return [FactEntry("x_1", number, float(number), fact) for number, fact in enumerate(facts)]


def test_a_line_has_every_field_that_lists_promise() -> None:
    assert line(SUMMARY) == {
        "id": "x_1", "state": "sending", "dialect": "anthropic", "provider": "", "model": "m", "session": "",
        "at": 5.0, "status": None,
    }  # fmt: skip
    assert line(Summary(id="x_2", at=1.0, status=200, losses=2))["losses"] == 2


def test_a_view_of_what_has_just_come() -> None:
    shown = view(SUMMARY, noted(RECEIVED))
    assert shown["state"] == "received"
    assert shown["body_sha256"] == "aa"
    assert shown["hashes"] == {"received": "aa", "sent": None, "reply": None}
    assert shown["dirty"] is False
    assert shown["tokens"] == {}
    assert not shown["losses"]
    assert shown["facts"][0]["kind"] == "received"  # type: ignore[index, call-overload]
    assert not {"sections", "validity", "fault"} & set(shown)


def test_a_view_of_what_is_over() -> None:
    facts = noted(
        RECEIVED,
        Translated("openai-chat", "bb", 1, (Loss("/top_k", "top_k", "no such option", "option"),)),
        AttemptStarted(1, "acme", "bb"),
        FrameArrived(b"\xc3", 0.1),
        FrameArrived(b"\xa9", 0.2),
        Translated("anthropic", "dd", 1, (Loss("/x", "x", "no such field", "identity"),)),
        ExchangeFinished(
            "stop", status=200, sha256="cc", usage=Usage(input_tokens=3, output_tokens=4, extras={"a": 1})
        ),
    )
    shown = view(SUMMARY, facts)
    assert shown["state"] == "finished"
    assert shown["body_sha256"] == "bb"
    assert shown["hashes"] == {"received": "aa", "sent": "bb", "reply": "cc"}
    assert shown["tokens"] == {"input_tokens": 3, "output_tokens": 4}
    first, second = shown["losses"]  # type: ignore[misc]
    assert first == {"pointer": "/top_k", "what": "top_k", "why": "no such option", "severity": "option"}
    assert second["pointer"] == "/x"  # type: ignore[index, call-overload]
    assert reply_of(facts) == "é".encode()


def test_a_failure_shows_its_fault() -> None:
    shown = view(SUMMARY, noted(RECEIVED, ExchangeFailed("network", "gone", "Try again.")))
    fault = {"code": "network", "message": "gone", "hint": "Try again."}
    assert shown["fault"] == fault
    assert shown["facts"][1]["fault"] == fault  # type: ignore[index, call-overload]
    assert shown["hashes"] == {"received": "aa", "sent": None, "reply": None}


def test_the_body_is_the_one_that_was_last_on_its_way() -> None:
    assert body_sha256([RECEIVED, Edited("set", "aa", "dd")]) == "dd"
    assert body_sha256([RECEIVED, Edited("set", "aa", "dd"), Released("ee"), ExchangeCancelled()]) == "ee"


def test_the_original_is_what_stood_before_the_first_edit() -> None:
    translated = Translated("openai-chat", "bb", 0)
    assert original_sha256([RECEIVED]) == "aa"
    assert original_sha256([RECEIVED, translated, Edited("mask", "bb", "cc"), Released("cc")]) == "bb"
    assert original_sha256([RECEIVED, AttemptStarted(1, "acme", "aa"), Translated("anthropic", "dd", 1)]) == "aa"


def test_what_left_other_than_it_came_is_dirty() -> None:
    facts = noted(RECEIVED, Edited("set_text", "aa", "dd"), Released("dd"), AttemptStarted(1, "acme", "dd"))
    assert view(SUMMARY, facts)["dirty"] is True
    assert view(SUMMARY, noted(RECEIVED, AttemptStarted(1, "acme", "aa")))["dirty"] is False


def test_the_bytes_of_a_frame_are_told_in_base64() -> None:
    assert fact_shown(FactEntry("x_1", 2, 7.0, FrameArrived(b"hi", 0.5))) == {
        "n": 2, "at": 7.0, "kind": "frame", "data": "aGk=", "after": 0.5, "size": 2,
    }  # fmt: skip
    assert fact_shown(FactEntry("x_1", 2, 7.0, FrameArrived(b"hi", 0.5)), has_data=False) == {
        "n": 2, "at": 7.0, "kind": "frame", "after": 0.5, "size": 2,
    }  # fmt: skip
