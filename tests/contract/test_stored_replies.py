"""OpenAI's own SDK asks again for replies that a translation made: they are answered out of the record."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from sightline.model.events import (
    Ended,
    Finished,
    SignatureReceived,
    Started,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
    UsageReceived,
)
from sightline.model.reply import Usage
from tests.background import upstream_in_background
from tests.gateway_server import Served, served
from tests.person import Person
from tests.reply_samples import CALLS, SAYS, streamed, whole
from tests.upstream import Upstream, answer, says, streams

THINKS: list[StreamEvent] = [
    Started("r_1", "m-large"),
    ThinkingReceived(0, "I think."),
    SignatureReceived(0, "c2ln", "anthropic"),
    TextReceived(1, "So it is."),
    UsageReceived(Usage(input_tokens=11, output_tokens=7)),
    Finished("stop"),
    Ended(),
]
FOREIGN = ["openai-chat", "anthropic", "gemini"]


@contextmanager
def serving(folder: Path, dialect: str) -> Iterator[tuple[Served, Upstream]]:
    with upstream_in_background() as upstream:
        config = f'[providers.acme]\nbase_url = "{upstream.url}/v1"\ndialect = "{dialect}"\n'
        with served(folder, f'{config}[[routes]]\nmodel = "gpt-*"\nprovider = "acme"\n') as server:
            yield server, upstream


def sdk(server: Served, key: str = "sk-one") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0)


def plain(value: Any) -> Any:
    return value.model_dump(mode="json", exclude_unset=True)


@pytest.mark.parametrize("dialect", FOREIGN)
@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_a_response_is_told_again_as_it_was_and_deleted(tmp_path: Path, dialect: str, is_stream: bool) -> None:
    with serving(tmp_path, dialect) as (server, upstream), sdk(server) as client:
        upstream.script = [streams(*streamed(dialect, CALLS)) if is_stream else answer(200, whole(dialect, CALLS))]
        tools: Any = [{"type": "function", "name": "weather", "parameters": {"type": "object"}, "strict": False}]
        asked: Any = {"model": "gpt-5", "input": "hi", "tools": tools, "metadata": {"a": "b"}}
        if is_stream:
            made = list(client.responses.create(**asked, stream=True))[-1].response
        else:
            made = client.responses.create(**asked)
        again = client.responses.retrieve(made.id)
        assert plain(again)["output"] == plain(made)["output"]
        assert (again.id, again.created_at, again.status) == (made.id, made.created_at, "completed")
        assert (again.metadata, again.model) == ({"a": "b"}, made.model)
        assert again.usage == made.usage
        (item,) = client.responses.input_items.list(made.id).data
        assert plain(item)["content"] == [{"type": "input_text", "text": "hi"}]
        with pytest.raises(openai.BadRequestError, match="Cannot cancel a synchronous response"):
            client.responses.cancel(made.id)
        client.responses.delete(made.id)
        with pytest.raises(openai.NotFoundError, match=f"Response with id '{made.id}' not found") as gone:
            client.responses.retrieve(made.id)
        assert gone.value.type == "invalid_request_error"
        with pytest.raises(openai.NotFoundError):
            client.responses.input_items.list(made.id)
        assert len(upstream.seen) == 1
        listed = server.api("/api/exchanges?filter=path:*resp_x*")["exchanges"]
        assert [(each["method"], each["status"]) for each in reversed(listed)][:3] == [
            ("GET", 200), ("GET", 200), ("POST", 400),
        ]  # fmt: skip


@pytest.mark.parametrize("dialect", FOREIGN)
def test_a_conversation_goes_on_from_a_stored_response(tmp_path: Path, dialect: str) -> None:
    with serving(tmp_path, dialect) as (server, upstream), sdk(server) as client:
        upstream.script = [answer(200, whole(dialect, CALLS)), answer(200, whole(dialect, SAYS))]
        first = client.responses.create(model="gpt-5", input="the weather?", instructions="be brief")
        call = next(item for item in first.output if item.type == "function_call")
        second = client.responses.create(
            model="gpt-5",
            input=[{"type": "function_call_output", "call_id": call.call_id, "output": "12 degrees"}],
            previous_response_id=first.id,
        )
        third = client.responses.create(model="gpt-5", input="thanks", previous_response_id=second.id)
        assert (second.output_text, second.previous_response_id) == ("Hello there.", first.id)
        assert third.previous_response_id == second.id
        sent = json.dumps(upstream.seen[2].json())
        places = [sent.index(each) for each in ("the weather?", "Let me look.", "12 degrees", "Hello there.", "thanks")]
        assert places == sorted(places)
        assert "be brief" not in sent  # instructions are not part of what is stored
        items = client.responses.input_items.list(third.id, order="asc").data
        assert [plain(each)["type"] for each in items] == [
            "message", "message", "function_call", "function_call_output", "message", "message",
        ]  # fmt: skip
        page = client.responses.input_items.list(third.id, limit=2)
        assert ([plain(each)["content"][0]["text"] for each in page.data], page.has_more) == (
            ["thanks", "Hello there."],
            True,
        )
        latest = server.api("/api/exchanges?filter=text:thanks%26dialect:openai-responses")["exchanges"][0]
        assert latest["previous"] == second.id.removeprefix("resp_")


def test_nobody_reads_or_continues_what_another_has_stored(tmp_path: Path) -> None:
    with serving(tmp_path, "anthropic") as (server, upstream), sdk(server) as client:
        upstream.script = [answer(200, whole("anthropic", SAYS))]
        made = client.responses.create(model="gpt-5", input="a secret plan")
        with sdk(server, "sk-two") as other:
            with pytest.raises(openai.NotFoundError):
                other.responses.retrieve(made.id)
            with pytest.raises(openai.NotFoundError):
                other.responses.delete(made.id)
            with pytest.raises(openai.BadRequestError) as refused:
                other.responses.create(model="gpt-5", input="go on", previous_response_id=made.id)
        assert (refused.value.code, refused.value.param) == ("previous_response_not_found", "previous_response_id")
        assert client.responses.retrieve(made.id).output_text == "Hello there."
        assert len(upstream.seen) == 1
        shown = json.dumps(server.api(f"/api/exchanges/{made.id.removeprefix('resp_')}"))
        assert "sk-one" not in shown


@pytest.mark.parametrize("before", ["resp_x_00000000000000abcdef", "resp_68af00000000"])
def test_an_unknown_previous_response_is_the_apis_own_error(tmp_path: Path, before: str) -> None:
    with serving(tmp_path, "gemini") as (server, upstream), sdk(server) as client:
        with pytest.raises(openai.BadRequestError) as refused:
            client.responses.create(model="gpt-5", input="go on", previous_response_id=before)
        assert (refused.value.code, refused.value.param) == ("previous_response_not_found", "previous_response_id")
        assert upstream.seen == []


def test_what_is_not_to_be_stored_is_not(tmp_path: Path) -> None:
    with serving(tmp_path, "anthropic") as (server, upstream), sdk(server) as client:
        upstream.script = [answer(200, whole("anthropic", SAYS))]
        made = client.responses.create(model="gpt-5", input="hi", store=False)
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(f"resp_{server.api('/api/exchanges')['exchanges'][0]['id']}")
        assert made.id == "r_1"


def test_a_stored_response_streams_again_from_where_the_client_was(tmp_path: Path) -> None:
    with serving(tmp_path, "anthropic") as (server, upstream), sdk(server) as client:
        upstream.script = [streams(*streamed("anthropic", SAYS))]
        with client.responses.stream(model="gpt-5", input="hi") as stream:
            made = stream.get_final_response()
        events = list(client.responses.retrieve(made.id, stream=True))
        assert (events[0].type, events[-1].type) == ("response.created", "response.completed")
        assert events[-1].response.id == made.id
        later = list(client.responses.retrieve(made.id, stream=True, starting_after=events[2].sequence_number))
        assert [each.sequence_number for each in later] == [each.sequence_number for each in events[3:]]


def test_a_failed_response_says_so_when_it_is_asked_for(tmp_path: Path) -> None:
    with serving(tmp_path, "anthropic") as (server, upstream), sdk(server) as client:
        upstream.script = [streams(*streamed("anthropic", SAYS)[:4])]  # it breaks off
        with pytest.raises(Exception), client.responses.stream(model="gpt-5", input="hi") as stream:  # noqa: B017
            stream.get_final_response()
        name = server.api("/api/exchanges")["exchanges"][0]["id"]
        again = client.responses.retrieve(f"resp_{name}")
        assert (again.status, again.output_text) == ("failed", "Hello there.")


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_reasoning_is_told_again_with_its_signature_and_goes_to_its_provider(tmp_path: Path, is_stream: bool) -> None:
    with serving(tmp_path, "anthropic") as (server, upstream), sdk(server) as client:
        first = streams(*streamed("anthropic", THINKS)) if is_stream else answer(200, whole("anthropic", THINKS))
        upstream.script = [first, answer(200, whole("anthropic", SAYS))]
        asked: Any = {"model": "gpt-5", "reasoning": {"effort": "low", "summary": "auto"},
                      "include": ["reasoning.encrypted_content"]}  # fmt: skip
        if is_stream:
            made = list(client.responses.create(**asked, input="hi", stream=True))[-1].response
        else:
            made = client.responses.create(**asked, input="hi")
        assert [item.type for item in made.output] == ["reasoning", "message"]
        assert plain(client.responses.retrieve(made.id))["output"] == plain(made)["output"]
        client.responses.create(**asked, input="go on", previous_response_id=made.id)
        thought = upstream.seen[1].json()["messages"][1]["content"][0]
        assert (thought["type"], thought["thinking"], thought["signature"]) == ("thinking", "I think.", "c2ln")


def test_calls_that_a_user_changed_are_told_again_as_the_client_got_them(tmp_path: Path) -> None:
    with serving(tmp_path, "anthropic") as (server, upstream), sdk(server) as client:
        upstream.script = [answer(200, whole("anthropic", CALLS))]
        person = Person(server)
        person.put("/api/rules", [{"filter": "", "phase": "tool_calls", "action": "hold"}])
        with ThreadPoolExecutor(1) as threads:
            asking = threads.submit(client.responses.create, model="gpt-5", input="hi")
            (held,) = person.held()
            section = person.view(held)["sections"][0]["id"]
            person.edited(held, op="set_text", section=section, text='{"city":"Oslo"}')
            assert person.release(held)[0] == 200
            made = asking.result(60)
        again = client.responses.retrieve(made.id)
        assert [plain(each) for each in again.output] == [plain(each) for each in made.output]
        assert next(item.arguments for item in again.output if item.type == "function_call") == '{"city":"Oslo"}'


def test_a_reply_that_a_user_wrote_is_stored_here(tmp_path: Path) -> None:
    with serving(tmp_path, "openai-responses") as (server, upstream), sdk(server) as client:
        person = Person(server)
        person.put("/api/rules", [{"filter": "text:first", "action": "hold"}])
        with ThreadPoolExecutor(1) as threads:
            asking = threads.submit(client.responses.create, model="gpt-5", input="first")
            (held,) = person.held()
            written = {"reply": {"parts": [{"type": "text", "text": "By hand."}]}}
            assert person.act(held, "answer", written)[0] == 200
            made = asking.result(60)
        person.put("/api/rules", [])
        assert client.responses.retrieve(made.id).output_text == "By hand."
        upstream.script = [says({"id": "resp_1", "object": "response", "output": [], "status": "completed"})]
        client.responses.create(model="gpt-5", input="go on", previous_response_id=made.id)
        (sent,) = [each.json() for each in upstream.seen]
        assert "previous_response_id" not in sent
        assert [item["role"] for item in sent["input"]] == ["user", "assistant", "user"]


# --- chat completions -------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["openai-responses", "anthropic", "gemini"])
def test_stored_completions_are_listed_changed_and_deleted(tmp_path: Path, dialect: str) -> None:
    with serving(tmp_path, dialect) as (server, upstream), sdk(server) as client:
        upstream.script = [answer(200, whole(dialect, SAYS))]
        messages: Any = [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        ]
        completions = client.chat.completions
        made = [completions.create(model="gpt-5", messages=messages, store=True, metadata={"n": str(n)}) for n in "12"]
        unstored = completions.create(model="gpt-5", messages=messages)
        assert unstored.id == "r_1"
        again = completions.retrieve(made[0].id)
        assert plain(again)["choices"] == plain(made[0])["choices"]
        assert (again.id, again.created, again.usage) == (made[0].id, made[0].created, made[0].usage)
        assert plain(again)["metadata"] == {"n": "1"}
        assert [each.id for each in completions.list().data] == [each.id for each in made]
        assert [each.id for each in completions.list(order="desc", limit=1).data] == [made[1].id]
        assert [each.id for each in completions.list(metadata={"n": "2"}).data] == [made[1].id]
        assert plain(completions.update(made[0].id, metadata={"n": "3"}))["metadata"] == {"n": "3"}
        assert plain(completions.retrieve(made[0].id))["metadata"] == {"n": "3"}
        listed = completions.messages.list(made[0].id).data
        assert [(each.role, each.content) for each in listed] == [("system", "be brief"), ("user", "hi")]
        assert completions.delete(made[0].id).deleted is True
        with pytest.raises(openai.NotFoundError):
            completions.retrieve(made[0].id)
        assert [each.id for each in completions.list().data] == [made[1].id]
        with sdk(server, "sk-two") as other, pytest.raises(openai.NotFoundError):
            other.chat.completions.retrieve(made[1].id)
        assert len(upstream.seen) == 3


def test_a_stored_completion_outlives_the_server(tmp_path: Path) -> None:
    with serving(tmp_path, "anthropic") as (server, upstream), sdk(server) as client:
        upstream.script = [answer(200, whole("anthropic", SAYS))]
        asked: Any = [{"role": "user", "content": "hi"}]
        made = client.chat.completions.create(model="gpt-5", messages=asked, store=True)
    with serving(tmp_path, "anthropic") as (server, _), sdk(server) as client:
        assert client.chat.completions.retrieve(made.id).choices == made.choices


def test_the_list_of_a_client_that_stores_nothing_here_is_its_providers(tmp_path: Path) -> None:
    with upstream_in_background() as upstream:
        upstream.script = [says({"object": "list", "data": [], "has_more": False})]
        config = f'[providers.openai]\nbase_url = "{upstream.url}/v1"\n'
        with served(tmp_path, config) as server, sdk(server) as client:
            assert client.chat.completions.list().data == []
            with pytest.raises(openai.NotFoundError):
                client.chat.completions.retrieve("chatcmpl-x_00000000000000abcdef")
        assert [(each.method, each.target) for each in upstream.seen] == [("GET", "/v1/chat/completions")]
