"""Caps over the whole program: client libraries do not try again, and chat, commands, tools and evals are capped."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors, types

from tests.background import upstream_in_background
from tests.gateway.test_responses_socket import ASK, client_of, read_response
from tests.gateway_server import Served, served
from tests.person import Person
from tests.server_process import PROGRAM
from tests.socket_upstream import answer_all, socket_upstream
from tests.upstream import Upstream, says

USAGE = {"prompt_tokens": 8, "completion_tokens": 2, "total_tokens": 10}
REPLY = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}]}
CONFIG = """
[providers.acme]
dialect = "openai-chat"
base_url = "{url}"
key_env = ""
[models."acme/priced"]
prices = {{ input = 1.0, output = 2.0 }}
max_output = 100
[[routes]]
provider = "acme"
[ask]
model = "acme/m"
"""


@contextmanager
def server(folder: Path, caps: str) -> Iterator[tuple[Served, Upstream]]:
    """Sightline with these caps before a provider that answers everything."""
    with upstream_in_background() as upstream:
        upstream.script = [says({**REPLY, "usage": USAGE})]
        with served(folder, CONFIG.format(url=upstream.url) + caps) as running:
            yield running, upstream


CLOSED = '[[caps]]\nname = "closed"\ntokens = 1\n'


def by_openai(url: str) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=5) as client:
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])


def by_responses(url: str) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=5) as client:
        client.responses.create(model="m", input="hi")


def by_anthropic(url: str) -> None:
    with anthropic.Anthropic(base_url=url, api_key="k", max_retries=5) as client:
        client.messages.create(model="m", max_tokens=5, messages=[{"role": "user", "content": "hi"}])


def by_google(url: str) -> None:
    retries = types.HttpRetryOptions(attempts=5)
    options = types.HttpOptions(base_url=url, retry_options=retries)
    client = genai.Client(api_key="k", http_options=options)  # it closes with the last that knows it
    client.models.generate_content(model="m", contents="hi")


def test_client_libraries_get_an_error_that_they_do_not_retry(tmp_path: Path) -> None:
    with server(tmp_path, CLOSED) as (running, upstream):
        for number, (ask, error) in enumerate(
            (
                (by_openai, openai.BadRequestError),
                (by_responses, openai.BadRequestError),
                (by_anthropic, anthropic.BadRequestError),
                (by_google, errors.ClientError),
            ),
            1,
        ):
            with pytest.raises(error, match="the cap closed"):
                ask(running.url)
            lines = running.api("/api/exchanges")["exchanges"]
            assert [line["state"] for line in lines] == ["failed"] * number, ask
        assert not upstream.seen


EMBEDDED = {
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
    "model": "emb",
    "usage": {"prompt_tokens": 8, "total_tokens": 8},
}
MONEY = '[models."acme/emb"]\nprices = { input = 0.02 }\n[[caps]]\nname = "money"\ndollars = 1\n'


def test_embeddings_are_counted_and_what_has_no_known_cost_is_refused(tmp_path: Path) -> None:
    with server(tmp_path, MONEY) as (running, upstream):
        upstream.script = [says(EMBEDDED)]
        with openai.OpenAI(base_url=f"{running.url}/p/acme/v1", api_key="k", max_retries=5) as client:
            assert client.embeddings.create(model="emb", input="hi", encoding_format="float").data[0].embedding == [0.5]
            with pytest.raises(openai.BadRequestError, match="the cap money cannot count this request"):
                client.images.generate(model="img", prompt="a cat")
            upstream.script = [says({"object": "list", "data": []})]
            assert client.files.list().data == []  # what is listed and stored costs nothing
        assert [seen.target for seen in upstream.seen] == ["/v1/embeddings", "/v1/files"]
        (bucket,) = running.api("/api/caps")["caps"][0]["buckets"]
        assert (bucket["spent"], bucket["reserved"]) == (pytest.approx(8 * 0.02 / 1e6), 0)
        total = running.api("/api/costs?filter=model:emb")["total"]
        assert (total["input_tokens"], total["unpriced"], total["cost"]) == (8, 0, pytest.approx(8 * 0.02 / 1e6))


def test_embeddings_and_frames_of_a_socket_do_not_get_past_a_cap(tmp_path: Path) -> None:
    with server(tmp_path, CLOSED) as (running, upstream):
        client = openai.OpenAI(base_url=f"{running.url}/v1", api_key="k", max_retries=5)
        with client, pytest.raises(openai.BadRequestError, match="the cap closed"):
            client.embeddings.create(model="emb", input="hi")
        assert not upstream.seen
    with socket_upstream(answer_all) as provider:
        config = f'[providers.acme]\nbase_url = "{provider.url}"\ndialect = "openai-responses"\n'
        with served(tmp_path, config + CLOSED) as running, client_of(running) as socket:
            socket.send(json.dumps(ASK))
            (frame,) = read_response(socket)
            assert "the cap closed" in frame
            assert (running.api("/api/exchanges")["exchanges"][0]["fault"], provider.frames) == ("cap_reached", [])


def test_a_person_sees_what_is_left_and_raises_a_cap(tmp_path: Path) -> None:
    with server(tmp_path, CLOSED + '[[caps]]\nname = "each"\nper = ["session"]\ndollars = 9\n') as (running, _):
        with openai.OpenAI(base_url=f"{running.url}/s/fix@shop/v1", api_key="k", max_retries=0) as client:

            def ask() -> None:
                client.chat.completions.create(model="priced", messages=[{"role": "user", "content": "hi"}])

            with pytest.raises(openai.BadRequestError):
                ask()
            status, shown = Person(running).ask("PUT", "/api/caps", {"name": "closed", "limit": 5_000})
            assert (status, shown["caps"][0]["buckets"][0]["limit"]) == (200, 5_000)
            ask()
        closed, each = running.api("/api/caps")["caps"]
        assert [(bucket["spent"], bucket["reserved"]) for bucket in closed["buckets"]] == [(10, 0)]
        (bucket,) = each["buckets"]
        assert (bucket["values"], bucket["is_current"]) == (["fix@shop"], True)
        assert bucket["spent"] == pytest.approx((8 * 1 + 2 * 2) / 1e6)
        place = {"bucket": bucket["bucket"], "period": bucket["period"]}
        assert (
            Person(running).ask("PUT", "/api/caps", {"name": "each", "limit": 12, **place})[1]["caps"][1]["buckets"][0][
                "limit"
            ]
            == 12
        )
        for wrong, said in (
            ({"name": "none", "limit": 1}, 404),
            ({"name": "each", "limit": 1}, 422),
            ({"name": "each", "limit": 1, "bucket": '["other"]'}, 404),
            ({"name": "each", "limit": -1, **place}, 422),
        ):
            assert Person(running).ask("PUT", "/api/caps", wrong)[0] == said, wrong


def command(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    places = ("--data", str(folder / "data"), "--config", str(folder / "sightline.toml"))
    return subprocess.run([*PROGRAM, *words, *places], cwd=folder, capture_output=True, text=True, timeout=90)


SUITE = "tests:\n  - id: one\n    input: hi\n    assertions: [{type: contains, value: Hi}]\n"


def test_chat_commands_tools_and_evals_are_capped(tmp_path: Path) -> None:
    (tmp_path / "a.eval.yaml").write_text(SUITE)
    with server(tmp_path, CLOSED) as (running, upstream):
        beside = command(tmp_path, "ask", "hi")
        assert (beside.returncode != 0, "the cap closed" in beside.stderr) == (True, True), beside.stderr
        tested = command(tmp_path, "eval", "run", "a.eval.yaml", "--target", "acme/m")
        assert "the cap closed" in tested.stdout + tested.stderr
        with_tools = command(tmp_path, "ask", "hi", "--folder", ".", "--yes")
        assert (with_tools.returncode != 0, "the cap closed" in with_tools.stderr) == (True, True), with_tools.stderr
        assert Person(running).ask("PUT", "/api/chat/views/v", {"model": "acme/m"})[0] == 200
        status, asked = running.post("/api/chat/send", json.dumps({"view": "v", "text": "hi"}).encode())
        assert status == 200, asked
        until = time.monotonic() + 30
        while not (found := [line for line in running.api("/api/exchanges")["exchanges"] if line["session"] == "chat"]):
            assert time.monotonic() < until
            time.sleep(0.05)
        assert found[0]["fault"] == "cap_reached"
    alone = command(tmp_path, "ask", "hi")
    assert alone.returncode != 0
    assert "the cap closed" in alone.stderr
    assert not upstream.seen


def test_a_filter_that_cannot_be_read_is_named_by_config_check(tmp_path: Path) -> None:
    (tmp_path / "sightline.toml").write_text('[[caps]]\nname = "a"\ntokens = 1\nfilter = "colour:red"\n')
    checked = command(tmp_path, "config", "check")
    assert checked.returncode != 0
    assert "the filter of the cap a" in checked.stdout + checked.stderr
