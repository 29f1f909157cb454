import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.cli.program import main
from sightline.model.exchange import Received
from sightline.store.entries import BodyEntry
from tests.cli.recorded_folder import fill, folder_of, traffic
from tests.recordings import exchange, failed
from tests.store.traffic import chat_body, chat_stream, noted, sha256
from tests.upstream import Upstream, answer, says, streams

BODY = chat_body("hi").replace(b'"large"', b'"m" ')
FRAMES = chat_stream("Hel", "lo")
HEADERS = (("Content-Type", "application/json"), ("Authorization", "***"), ("X-Team", "blue"))
MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "c", "content": [{"type": "text", "text": "Hi"}],
    "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 1},
}  # fmt: skip
Captured = pytest.CaptureFixture[bytes]


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    with folder_of(tmp_path, monkeypatch) as upstream:
        unsent = chat_body("never sent")
        facts = [Received("openai-chat", "m", sha256(unsent))]
        whole = chat_body("whole", logit_bias={"1": 2})
        fill(
            tmp_path / "data",
            exchange("x_a", BODY, FRAMES, headers=HEADERS),
            exchange("x_b", whole, [b"{}"], stream=False),
            exchange("x_c", BODY, FRAMES[:1], end=failed(200)),
            exchange("x_d", BODY, [b"{}"], path="/v1/messages/count_tokens", spoken="anthropic"),
            [BodyEntry(sha256(unsent), unsent), *noted("x_e", facts)],
        )
        yield upstream


def test_the_very_bytes_go_out_again_and_the_new_exchange_names_the_old_one(
    acme: Upstream, capsysbinary: Captured
) -> None:
    acme.script = [streams(*FRAMES)]
    assert main(["replay", "x_a"]) == 0
    captured = capsysbinary.readouterr()
    assert captured.out == b"Hello"
    assert b"acme/m: " in captured.err
    assert b"recorded as x_" in captured.err
    (seen,) = acme.seen
    assert seen.body == BODY
    assert seen.header("authorization") == "Bearer the-secret-key"
    assert seen.header("x-team") == "blue"
    (fresh,) = traffic(capsysbinary, "origin:x_a")
    assert (fresh["state"], fresh["provider"], fresh["origin"]) == ("finished", "acme", "x_a")


def test_replay_to_another_model_translates_and_reports_losses(acme: Upstream, capsysbinary: Captured) -> None:
    acme.script = [says(MESSAGE)]
    assert main(["replay", "x_b", "--to", "claude/c", "--json"]) == 0
    captured = capsysbinary.readouterr()
    assert json.loads(captured.out)["parts"] == [{"type": "text", "text": "Hi"}]
    assert b"note: lost (option) /logit_bias" in captured.err
    (seen,) = acme.seen
    assert (seen.target, seen.json()["model"]) == ("/v1/messages", "c")
    (fresh,) = traffic(capsysbinary, "origin:x_b")
    assert fresh["provider"] == "claude"


def test_retries_are_shown_and_a_refusal_is_a_failure(acme: Upstream, capsysbinary: Captured, tmp_path: Path) -> None:
    busy = answer(503, b"{}", [("Retry-After", "0")])
    acme.script = [says({"error": {"message": "no such thing"}}, 400), busy, streams(*FRAMES)]
    assert main(["replay", "x_a"]) == 3
    assert b"error[invalid_request]: no such thing" in capsysbinary.readouterr().err
    config = tmp_path / "sightline.toml"
    config.write_text(config.read_text().replace("[providers.open]", "stream_max_retries = 1\n[providers.open]"))
    assert main(["replay", "x_a", "--quiet"]) == 0
    captured = capsysbinary.readouterr()
    assert captured.out == b"Hello"
    assert b"note: attempt 2" in captured.err


def test_offline_nothing_is_sent_and_the_answer_comes_as_it_came(
    acme: Upstream, capsysbinary: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    async def sleep(_clock: object, seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("sightline.app.machine.SystemClock.sleep", sleep)
    assert main(["replay", "x_a", "--offline"]) == 0
    captured = capsysbinary.readouterr()
    assert captured.out == b"Hello"
    assert b"1.50 s" in captured.err
    assert len(waits) == len(FRAMES)
    assert max(waits) > 1.5
    waits.clear()
    assert main(["replay", "x_a", "--offline", "--fast", "--json"]) == 0
    assert json.loads(capsysbinary.readouterr().out)["parts"] == [{"type": "text", "text": "Hello"}]
    assert waits == []
    assert acme.seen == []


def test_an_answer_that_broke_off_is_no_success_offline_either(acme: Upstream, capsysbinary: Captured) -> None:
    assert main(["replay", "x_c", "--offline", "--fast"]) == 3
    captured = capsysbinary.readouterr()
    assert captured.out == b"Hel"
    assert b"error[overloaded]: busy" in captured.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["x_a", "--offline", "--to", "m"], b"--to cannot be combined"),
        (["x_a", "--fast"], b"--fast needs --offline"),
        (["x_d"], b"only counted tokens"),
        (["x_e"], b"was not sent to a provider"),
        (["x_a", "--to", "no-such-model"], b"no provider is known"),
        (["x_z"], b"there is no exchange"),
    ],
)
def test_what_cannot_be_replayed_is_refused_before_anything_is_sent(
    words: list[str], told: bytes, acme: Upstream, capsysbinary: Captured
) -> None:
    assert main(["replay", *words]) == 2
    assert told in capsysbinary.readouterr().err
    assert acme.seen == []


def test_credentials_are_not_on_record_so_a_key_is_needed(
    acme: Upstream, capsysbinary: Captured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("ACME_API_KEY")
    for words in (["x_a"], ["x_a", "--to", "claude/c"]):
        assert main(["replay", *words]) == 2
        assert b"hint: Set ACME_API_KEY in the environment: credentials are not on record." in (
            capsysbinary.readouterr().err
        )
    config = tmp_path / "sightline.toml"
    config.write_text(config.read_text().replace('key_env = "ACME_API_KEY"', "", 1))
    assert main(["replay", "x_a"]) == 2
    assert b"hint: Set key_env in [providers.acme]" in capsysbinary.readouterr().err
    config.write_text("")
    assert main(["replay", "x_a"]) == 2
    assert b"no longer configured" in capsysbinary.readouterr().err
    assert acme.seen == []
