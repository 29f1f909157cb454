import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from google import genai

from sightline import testing
from sightline.errors import Code, Fault
from sightline.filters.parsing import parse
from sightline.store.archive import write_archive
from sightline.testing import recorded_provider, scripted_provider
from tests.http_call import call
from tests.recordings import exchange, store_with
from tests.store.traffic import NOON, chat_body, chat_stream


def ask(url: str, text: str = "Hi", **more: Any) -> tuple[int, Any]:
    """Status and JSON of a chat request."""
    body = {"model": "large", "messages": [{"role": "user", "content": text}], **more}
    answer = call("POST", f"{url}/v1/chat/completions", body)
    return answer.status, answer.json()


def test_an_sdk_gets_the_replies_in_turn_streamed_and_whole() -> None:
    call = {
        "deltas": ["Let me see.", {"call": "add", "arguments": {"a": 1}}],
        "usage": {"input_tokens": 7, "output_tokens": 2},
    }
    with scripted_provider("Hello", call, "Bye") as provider:
        client = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="test", max_retries=0)
        first = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}])
        assert first.choices[0].message.content == "Hello"
        second = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Add"}])
        assert second.choices[0].finish_reason == "tool_calls"
        assert second.choices[0].message.tool_calls[0].function.arguments == '{"a":1}'
        assert second.usage.prompt_tokens == 7
        stream = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Go"}], stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices) == "Bye"
        assert [each["messages"][0]["content"] for each in provider.requests] == ["Hi", "Add", "Go"]
        client.close()


def test_each_dialect_is_spoken_to_its_own_sdk() -> None:
    with scripted_provider("Hello", dialect="anthropic") as provider:
        with anthropic.Anthropic(base_url=provider.url, api_key="test", max_retries=0) as client:
            reply = client.messages.create(model="large", max_tokens=9, messages=[{"role": "user", "content": "Hi"}])
        assert reply.content[0].text == "Hello"
    with scripted_provider("Hello", dialect="openai-responses") as provider:
        asking = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="test", max_retries=0)
        assert asking.responses.create(model="m", input="Hi").output_text == "Hello"
        asking.close()
    with scripted_provider("Hello", "Bye", dialect="gemini") as provider:
        google = genai.Client(api_key="test", http_options={"base_url": provider.url})
        assert google.models.generate_content(model="m", contents="Hi").text == "Hello"
        parts = google.models.generate_content_stream(model="m", contents="Hi")
        assert "".join(part.text or "" for part in parts) == "Bye"
        google.close()


def test_a_fault_is_an_error_of_the_provider_and_the_script_goes_on() -> None:
    with scripted_provider(Fault(Code.OVERLOADED, "busy", status=503), "Hello") as provider:
        status, told = ask(provider.url)
        assert (status, "busy" in told["error"]["message"]) == (503, True)
        assert ask(provider.url)[1]["choices"][0]["message"]["content"] == "Hello"
        assert provider.misses == []


def test_a_request_beyond_the_script_is_loud() -> None:
    with (  # noqa: PT012 - the end of the block raises
        pytest.raises(AssertionError, match="request 2 found no reply: the script has 1"),
        scripted_provider("Hello") as provider,
    ):
        ask(provider.url)
        assert ask(provider.url)[0] == 400


def test_a_list_of_models_is_no_request_of_the_script() -> None:
    with scripted_provider("Hello") as provider:
        assert call("GET", f"{provider.url}/v1/models").status == 404
        assert provider.requests == []


def test_what_is_no_reply_is_refused_with_what_to_do() -> None:
    with pytest.raises(Fault, match="reply 2 is none") as refused, scripted_provider("a", {"delta": ["b"]}):
        pass
    assert "deltas" in refused.value.hint
    with pytest.raises(Fault, match="no provider speaks 'french'"), scripted_provider("a", dialect="french"):
        pass


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive with one recorded question."""

    async def write() -> bytes:
        async with store_with(tmp_path / "data", exchange("x_1", chat_body("Hi"), chat_stream("Hel", "lo"))) as store:
            return b"".join([line async for line in write_archive(store.export(parse(""), now=NOON + 60))])

    file = tmp_path / "recorded.jsonl"
    file.write_bytes(asyncio.run(write()))
    return file


def test_a_recorded_provider_gives_what_was_recorded_in_any_dialect(archive: Path) -> None:
    with recorded_provider(archive) as provider:
        assert ask(provider.url)[1]["choices"][0]["message"]["content"] == "Hello"
        with anthropic.Anthropic(base_url=provider.url, api_key="test", max_retries=0) as client:
            reply = client.messages.create(model="large", max_tokens=9, messages=[{"role": "user", "content": "Hi"}])
        assert reply.content[0].text == "Hello"
        assert len(provider.requests) == 2


def test_a_request_without_a_recording_is_loud_and_names_the_nearest(archive: Path) -> None:
    with (  # noqa: PT012 - the end of the block raises
        pytest.raises(AssertionError, match=r"no recording of this request; the nearest of 1 is x_1"),
        recorded_provider(archive) as provider,
    ):
        assert ask(provider.url, "Bye")[0] == 404
        assert "Bye" in provider.misses[0]


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Fault, match="there is no archive"), recorded_provider(tmp_path / "none.jsonl"):
        pass
    broken = tmp_path / "broken.jsonl"
    broken.write_text("hello\n")
    with pytest.raises(Fault, match="of the archive is no entry"), recorded_provider(broken):
        pass


def test_the_package_names_what_it_has() -> None:
    assert testing.__all__ == ["ScriptedRound", "ServedProvider", "recorded_provider", "scripted_provider"]
    assert set(testing.__all__) <= set(dir(testing))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = testing.nonsense


PROJECT = """
import urllib.error, urllib.request
pytest_plugins = ["sightline.testing.plugin"]

def test_it(scripted_provider):
    provider = scripted_provider("Hello")
    for _ in range(2):
        try:
            urllib.request.urlopen(f"{provider.url}/v1/chat/completions", b"{}", timeout=60).close()
        except urllib.error.HTTPError as error:
            error.close()  # the program swallows it, the fixture does not
"""


def test_a_miss_that_a_program_swallows_still_fails_its_test(tmp_path: Path) -> None:
    (tmp_path / "test_project.py").write_text(PROJECT)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert "request 2 found no reply: the script has 1" in done.stdout
