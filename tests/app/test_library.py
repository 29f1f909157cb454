import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import sightline
from sightline.agent.core.steps import RunnableCall
from sightline.agent.tools.tools import Callables
from sightline.app.library import run_async
from sightline.errors import Code
from sightline.model.events import StreamEvent, TextReceived
from sightline.model.json import JsonObject
from sightline.model.parts import Text, ToolCall
from sightline.model.request import Message
from tests.background import upstream_in_background
from tests.loop_stage import calls, says
from tests.running_stage import plays
from tests.upstream import Upstream
from tests.upstream import says as answers

USED: list[tuple[int, int]] = []


def add(a: int, b: int) -> int:
    """Add two numbers."""
    USED.append((a, b))
    return a + b


async def slowly(words: str) -> str:
    """Say it."""
    return words.upper()


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    USED.clear()
    monkeypatch.setenv("ACME_KEY", "sk-planted-1234567890")
    monkeypatch.setenv("SIGHTLINE_DATA", str(tmp_path / "data"))
    (tmp_path / "mine.py").write_text('def sub(a: int, b: int) -> int:\n    """Subtract."""\n    return a - b\n')
    with upstream_in_background() as upstream:
        (tmp_path / "sightline.toml").write_text(
            f'[ask]\nmodel = "acme/m"\nsystem = "Be exact."\n[providers.acme]\nbase_url = "{upstream.url}/v1"\n'
            'key_env = "ACME_KEY"\n[models."m"]\nproviders = ["acme"]\nprices = { input = 1.0, output = 2.0 }\n'
            '[tools.mine]\npython = "mine.py"\nallow = ["sub"]\n'
        )
        yield upstream


ADD = ToolCall("c1", "add", '{"a": 2, "b": "3"}')


def test_a_function_is_used_and_the_answer_comes_with_its_account(acme: Upstream) -> None:
    acme.script = [plays(calls(ADD)), plays(says("It is 5."))]
    heard: list[StreamEvent] = []
    result = sightline.run("What is 2 + 3?", tools=[add], approve="yes", heard=heard.append)
    assert (result.text, result.why, USED) == ("It is 5.", "answered", [(2, 3)])
    assert [len(each.calls) for each in result.rounds] == [1, 0]
    assert (result.usage.input_tokens, result.usage.output_tokens) == (20, 10)
    assert result.cost == pytest.approx((20 * 1 + 10 * 2) / 1e6)
    assert (result.run[:2], result.seconds > 0, result.reached) == ("r_", True, None)
    assert "".join(event.text for event in heard if isinstance(event, TextReceived)) == "It is 5."
    first, second = (seen.json() for seen in acme.seen)
    assert first["messages"][0] == {"role": "system", "content": "Be exact."}
    assert first["tools"][0]["function"]["name"] == "add"
    assert second["messages"][-1]["content"] == "5"


async def test_an_awaited_run_goes_on_with_the_conversation_of_another(acme: Upstream) -> None:
    acme.script = [plays(says("Hello.")), plays(calls(ToolCall("c", "slowly", '{"words": "hi"}'))), plays(says("HI"))]
    first = await run_async("Greet me.", system="")
    more = Message("user", (Text("Louder."),))
    again = sightline.Request(first.request.model, (*first.request.messages, more), options=first.request.options)
    assert (await run_async(again, tools=[slowly], approve="yes")).text == "HI"
    roles = [message["role"] for message in acme.seen[2].json()["messages"]]
    assert roles == ["user", "assistant", "user", "assistant", "tool"]


def test_a_function_decides_about_calls(acme: Upstream) -> None:
    acme.script = [plays(calls(ADD)), plays(says("No."))]

    def judge(call: RunnableCall) -> str:
        return f"{call.name} is not for today"

    result = sightline.run("Add.", tools=[add], approve=judge)
    assert (USED, [call.fate for call in result.rounds[0].calls]) == ([], ["denied"])
    assert "add is not for today" in acme.seen[1].json()["messages"][-1]["content"]


def test_run_without_approver_is_rejected_unless_all_tools_are_allowed(acme: Upstream) -> None:
    acme.script = [plays(calls(ToolCall("c", "sub", '{"a": 3, "b": 2}'))), plays(says("1"))]
    with pytest.raises(sightline.Fault) as caught:
        sightline.run("Add.", tools=[add, "mine"])
    assert (caught.value.code, caught.value.message) == (Code.USAGE, "no one is there to approve calls of add")
    with pytest.raises(sightline.Fault, match="approve cannot be 'maybe'"):
        sightline.run("Add.", tools=[add], approve="maybe")
    assert acme.seen == []
    assert sightline.run("Subtract.", tools=["mine"]).text == "1"


async def test_in_a_running_loop_it_says_what_to_await(acme: Upstream) -> None:
    with pytest.raises(sightline.Fault, match="where an event loop is running") as caught:
        sightline.run("Add.", tools=[add], approve="yes")
    assert "await sightline.run_async" in caught.value.hint
    assert acme.seen == []


def test_tools_that_are_open_stay_open_and_names_are_not_taken_twice(acme: Upstream) -> None:
    acme.script = [plays(calls(ADD)), plays(says("5"))]
    own = Callables([add])
    assert sightline.run("Add.", tools=[own], approve="yes").text == "5"
    with pytest.raises(sightline.Fault, match="two tools are named 'add'"):
        sightline.run("Add.", tools=[own, add], approve="yes")


def test_a_limit_is_no_error_and_is_named(acme: Upstream) -> None:
    acme.script = [plays(calls(ADD))]
    result = sightline.run("Add.", tools=[add], approve="yes", limits=sightline.Limits(requests=1))
    assert (result.why, result.reached and result.reached.name, USED) == ("limit", "requests", [])


def test_a_provider_that_fails_raises_its_fault(acme: Upstream) -> None:
    acme.script = [answers({"error": {"message": "no such model"}}, 404)]
    with pytest.raises(sightline.Fault, match="no such model"):
        sightline.run("Hello?")


def test_hooks_are_functions_too(acme: Upstream) -> None:
    acme.script = [plays(calls(ADD)), plays(says("No."))]
    seen: list[object] = []

    def before(told: JsonObject) -> JsonObject:
        seen.append(told["event"])
        return {"decision": "deny", "reason": "not on Sundays"}

    result = sightline.run("Add.", tools=[add, "mine"], approve="yes", hooks=[sightline.Hook("before_tool", before)])
    assert (result.why, seen, USED) == ("answered", ["before_tool"], [])
    assert "not on Sundays" in json.dumps(acme.seen[1].json())


def test_where_a_hook_wants_a_person_and_there_is_none_the_call_is_denied(acme: Upstream) -> None:
    acme.script = [plays(calls(ToolCall("c", "sub", '{"a": 3, "b": 2}'))), plays(says("No."))]
    result = sightline.run("Sub.", tools=["mine"], hooks=[sightline.Hook("before_tool", lambda _: {"decision": "ask"})])
    assert [call.fate for call in result.rounds[0].calls] == ["denied"]


def test_model_argument_works_without_a_configured_model(acme: Upstream, tmp_path: Path) -> None:
    file = tmp_path / "sightline.toml"
    file.write_text(file.read_text().replace('model = "acme/m"', ""))
    acme.script = [plays(says("Hello."))]
    assert sightline.run("Hello?", model="acme/m", max_tokens=5, config=str(file)).text == "Hello."
    assert acme.seen[0].json()["max_completion_tokens"] == 5


async def test_a_run_of_a_program_is_on_record(acme: Upstream, tmp_path: Path) -> None:
    from sightline.app.configuration import configuration
    from sightline.app.tools import open_runner

    acme.script = [plays(says("Hello."))]
    name = (await sightline.run_async("Hello?")).run
    async with open_runner(configuration(None), str(tmp_path / "data")) as runner:
        found = (await runner.show(name)).rounds[-1].text
    assert found == "Hello."


@pytest.fixture
def responses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    monkeypatch.setenv("ACME_KEY", "sk-planted-1234567890")
    monkeypatch.setenv("SIGHTLINE_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    with upstream_in_background() as upstream:
        (tmp_path / "sightline.toml").write_text(
            f'[ask]\nmodel = "acme/m"\n[providers.acme]\nbase_url = "{upstream.url}/v1"\ndialect = "openai-responses"\n'
            'key_env = "ACME_KEY"\n[models."m"]\nproviders = ["acme"]\nreasoning = true\n'
        )
        yield upstream


def test_each_round_names_the_conversation_and_stores_nothing(responses: Upstream) -> None:
    spoken = "openai-responses"
    responses.script = [plays(calls(ADD), spoken), plays(says("It is 5."), spoken), plays(says("Hi."), spoken)]
    result = sightline.run("2 + 3?", tools=[add], approve="yes", instructions="Be exact.")
    first, second = (seen.json() for seen in responses.seen)
    assert first["prompt_cache_key"] == second["prompt_cache_key"] != ""
    assert [each["store"] for each in (first, second)] == [False, False]
    assert first["instructions"] == "Be exact."
    more = Message("user", (Text("Louder."),))
    sightline.run(sightline.Request("m", (*result.request.messages, more)))
    body = responses.seen[2].json()
    assert (body["store"], body["include"]) == (False, ["reasoning.encrypted_content"])
    assert body["prompt_cache_key"].startswith("c_")
