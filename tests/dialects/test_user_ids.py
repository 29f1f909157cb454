import hashlib
import json

import pytest

from sightline.dialects.option_values import fit_anthropic_id, fit_openai_ids
from sightline.dialects.translate import translate_request
from sightline.model.options import Options
from sightline.model.report import Report

CLAUDE_CODE = json.dumps({"device_id": "d" * 64, "account_uuid": "a" * 36, "session_id": "s" * 36})


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def translated(body: dict[str, object], source: str, target: str) -> tuple[dict[str, object], list[tuple[str, str]]]:
    result = translate_request(json.dumps(body).encode(), source, target)
    return json.loads(result.data), [(loss.pointer, loss.severity) for loss in result.report.losses]


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses"])
def test_the_id_of_claude_code_goes_to_openai_as_a_hash(target: str) -> None:
    assert len(CLAUDE_CODE) > 150
    body = {
        "model": "m",
        "max_tokens": 99,
        "messages": [{"role": "user", "content": "hi"}],
        "metadata": {"user_id": CLAUDE_CODE},
    }
    written, losses = translated(body, "anthropic", target)
    assert written["user"] == digest(CLAUDE_CODE)
    assert ("/metadata/user_id", "identity") in losses
    short, losses = translated({**body, "metadata": {"user_id": "u" * 64}}, "anthropic", target)
    assert short["user"] == "u" * 64
    assert ("/metadata/user_id", "identity") not in losses


def test_a_safety_identifier_may_be_longer_than_a_user() -> None:
    report = Report()
    options = Options(user="u" * 65, safety_identifier="s" * 128, places={"user": "/user"})
    fitted = fit_openai_ids(options, report, "openai-chat")
    assert (fitted.user, fitted.safety_identifier) == (digest("u" * 65), "s" * 128)
    assert [(loss.pointer, loss.why) for loss in report.losses] == [
        ("/user", "openai-chat takes 64 characters at most: a hash is sent")
    ]
    assert fit_openai_ids(Options(safety_identifier="s" * 129), report, "x").safety_identifier == digest("s" * 129)


CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize(
    ("user", "is_hashed"),
    [
        ("someone@example.com", True),
        ("user:someone@mail.example.com", True),
        ("+1 (555) 010-9999", True),
        ("555.010.9999", True),
        ("u" * 257, True),
        ("u" * 256, False),
        ("user-7f3a", False),
        ("0b6c2f1e-9a3d-4b52-8c11-2f4e6d7a8b90", False),
        ("12345", False),
    ],
)
def test_what_looks_like_a_person_goes_to_anthropic_as_a_hash(user: str, is_hashed: bool) -> None:
    written, losses = translated({**CHAT, "user": user}, "openai-chat", "anthropic")
    assert written["metadata"] == {"user_id": digest(user) if is_hashed else user}
    assert (("/user", "identity") in losses) is is_hashed


@pytest.mark.parametrize("source", ["openai-chat", "openai-responses"])
def test_a_safety_identifier_is_carried_to_anthropic(source: str) -> None:
    body = CHAT if source == "openai-chat" else {"model": "m", "input": "hi"}
    written, losses = translated({**body, "safety_identifier": "s-1"}, source, "anthropic")
    assert written["metadata"] == {"user_id": "s-1"}
    assert "/safety_identifier" not in [pointer for pointer, _ in losses]


def test_a_hashed_safety_identifier_is_reported_by_its_own_place() -> None:
    _, losses = translated({**CHAT, "safety_identifier": "a@example.com"}, "openai-chat", "anthropic")
    assert ("/safety_identifier", "identity") in losses


def test_of_two_ids_the_user_goes_and_the_other_is_reported_with_the_true_reason() -> None:
    report = Report()
    options = fit_anthropic_id(Options(user="u-1", safety_identifier="s-1"), report, "anthropic")
    assert (options.user, options.safety_identifier) == ("u-1", None)
    (loss,) = report.losses
    assert (loss.pointer, loss.why) == ("/safety_identifier", "anthropic has one id for a user, and user is sent")
    report = Report()
    assert fit_anthropic_id(Options(user="u-1", safety_identifier="u-1"), report, "anthropic").user == "u-1"
    assert report.losses == ()


def test_nobody_named_stays_nobody() -> None:
    options = Options(temperature=1)
    assert fit_anthropic_id(options, Report(), "x") is options
    assert fit_openai_ids(options, Report(), "x") is options
