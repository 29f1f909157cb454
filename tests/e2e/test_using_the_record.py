"""From a client's request to what can be done with it later: list it, show it, answer from it, tell a collector."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from sightline.cli.program import main
from tests.background import upstream_in_background
from tests.gateway_server import served
from tests.http_call import call
from tests.local_model import needs_model
from tests.server_process import PROGRAM, start
from tests.store.traffic import chat_stream
from tests.upstream import says, streams

SECRETS = ("sk-of-the-client-4711", "the-configured-key-0815")
FORMS = ("wire", "curl", "python", "canonical", "events", "facts", "har", "html")
QUESTION: Any = {"model": "m", "max_tokens": 64, "messages": [{"role": "user", "content": "Say hello."}]}


def post(address: str, body: object, path: str = "/v1/chat/completions") -> tuple[int, dict[str, str], bytes]:
    answer = call("POST", address + path, body, token=SECRETS[0])
    return answer.status, answer.headers, answer.body


@contextmanager
def replaying(folder: Path, *words: str) -> Iterator[str]:
    """A replay server in a process of its own."""
    command = [*PROGRAM, "serve", "--replay", *words, "--port", "0", "--no-open", "--data", str(folder / "data")]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(folder)}
    child, server = start(command, stderr=subprocess.PIPE, env=environment, cwd=folder)
    with child:
        try:
            yield server.url
            child.send_signal(signal.SIGTERM)
            _, err = child.communicate(timeout=60)
            assert "recordings answer clients, and nothing is sent to a provider" in err
            assert child.returncode == 0
        finally:
            child.kill()


@needs_model
def test_embedded_model_exchange_is_recorded_and_can_be_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIGHTLINE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert main(["ask", "-m", "local", "--max-tokens", "8", "Say hello."]) == 0
    said = capsysbinary.readouterr().out
    assert main(["traffic", "--json"]) == 0
    (found,) = map(json.loads, capsysbinary.readouterr().out.splitlines())
    assert (found["state"], found["provider"], found["session"]) == ("finished", "local", "ask")
    assert (found["client"], found["title"]) == ("sightline", "Say hello.")
    assert main(["replay", "--offline", "--fast", found["id"]]) == 0
    assert capsysbinary.readouterr().out == said
    assert main(["replay", "--quiet", found["id"]]) == 0
    capsysbinary.readouterr()
    assert main(["traffic", "--json", f"origin:{found['id']}"]) == 0
    assert json.loads(capsysbinary.readouterr().out)["state"] == "finished"
    with served(tmp_path, "") as gateway:
        status, told = gateway.post(f"/api/exchanges/{found['id']}/replay")
        assert status == 200
        assert gateway.api(f"/api/exchanges/{told['id']}")["origin"] == found["id"]


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which a streamed question was recorded; its provider has gone since."""
    monkeypatch.setenv("ACME_KEY", SECRETS[1])
    with upstream_in_background() as upstream:
        upstream.script = [streams(*chat_stream("Hel", "lo"))]
        config = (
            f'[providers.acme]\nbase_url = "{upstream.url}/v1"\nkey_env = "ACME_KEY"\n[[routes]]\nprovider = "acme"\n'
        )
        with served(tmp_path, config) as gateway:
            status, _, _ = post(gateway.url, {**QUESTION, "stream": True})
            assert status == 200
        assert upstream.seen[0].header("authorization") == f"Bearer {SECRETS[1]}"
    return tmp_path


def test_a_recorded_answer_serves_the_vendors_clients_whole_and_streamed(recorded: Path) -> None:
    with replaying(recorded, "model:m", "--fast") as address:
        with openai.OpenAI(base_url=f"{address}/v1", api_key="x", max_retries=0) as client:
            whole = client.chat.completions.create(**QUESTION)
            assert whole.choices[0].message.content == "Hello"
            chunks = list(client.chat.completions.create(**QUESTION, stream=True))
            assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Hello"
            responses = client.responses.create(model="m", input="Say hello.", max_output_tokens=64)
            assert responses.output_text == "Hello"
        with anthropic.Anthropic(base_url=address, api_key="x", max_retries=0) as other:
            message = other.messages.create(**QUESTION)
            assert message.content[0].text == "Hello"
            with other.messages.stream(**QUESTION) as stream:
                assert stream.get_final_text() == "Hello"


def test_what_was_not_recorded_is_refused_and_shown_beside_the_nearest(recorded: Path) -> None:
    with replaying(recorded, "", "--fast") as address:
        other = {**QUESTION, "messages": [{"role": "user", "content": "Say goodbye."}]}
        status, headers, body = post(address, other)
        assert status == 404
        assert "x-sightline-exchange" not in headers
        message = json.loads(body)["error"]["message"]
        assert "-user: Say hello.\n+user: Say goodbye." in message
        assert post(address, QUESTION)[1]["x-sightline-replayed"] == "1"


def test_a_wrong_filter_stops_the_server_before_it_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--replay", "modl:x", "--port", "0", "--no-open", "--data", str(tmp_path)]) == 2
    assert "^^^^" in capsys.readouterr().err
    assert main(["serve", "--fast", "--port", "0", "--no-open", "--data", str(tmp_path)]) == 2
    assert "--fast needs --replay" in capsys.readouterr().err


def test_no_form_of_an_exchange_shows_a_secret(recorded: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    where = ["--config", str(recorded / "sightline.toml"), "--data", str(recorded / "data")]
    assert main(["traffic", "--json", *where]) == 0
    out = capsysbinary.readouterr().out
    exchange = json.loads(out)["id"]
    for form in FORMS:
        assert main(["show", exchange, "--as", form, *where]) == 0
        out += capsysbinary.readouterr().out
    assert len(out) > 5000
    assert not [secret for secret in SECRETS if secret.encode() in out]


def test_otlp_collector_receives_every_exchange_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_KEY", SECRETS[1])
    monkeypatch.setenv("COLLECTOR_KEY", "its-own-key")
    with upstream_in_background() as upstream, upstream_in_background() as collector:
        upstream.script = [streams(*chat_stream("Hel", "lo"))]
        collector.script = [says({})]
        config = (
            f'[providers.acme]\nbase_url = "{upstream.url}/v1"\nkey_env = "ACME_KEY"\n[[routes]]\nprovider = "acme"\n'
            f'[telemetry]\notlp_endpoint = "{collector.url}"\ncontent = true\n'
            'env_headers = { "x-key" = "COLLECTOR_KEY" }\n'
        )
        with served(tmp_path, config) as gateway:
            exchange = post(gateway.url, {**QUESTION, "stream": True})[1]["x-sightline-exchange"]
        seen, metrics = collector.seen
        address = f'{{"key":"server.port","value":{{"intValue":"{upstream.port}"}}}}'
    assert (seen.target, seen.header("x-key")) == ("/v1/traces", "its-own-key")
    assert (metrics.target, metrics.header("x-key")) == ("/v1/metrics", "its-own-key")
    assert b"gen_ai.client.operation.duration" in metrics.body
    assert address.encode() in seen.body
    assert address.encode() in metrics.body
    assert not [secret for secret in SECRETS if secret.encode() in metrics.body]
    assert exchange.encode() in seen.body
    assert b"Say hello." in seen.body
    assert not [secret for secret in SECRETS if secret.encode() in seen.body]
