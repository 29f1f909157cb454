"""What a response repeats of its request."""

from typing import Any

from sightline.dialects.dialect import Client
from sightline.dialects.openai_responses.reply_write import echo, write_reply
from sightline.dialects.openai_responses.request import read_request
from sightline.model.parts import Text
from sightline.model.reply import Choice, Reply
from sightline.model.report import Report
from sightline.model.request import Request


def shown(**body: Any) -> dict[str, Any]:
    return echo(read_request({"model": "m", "input": "Hi.", **body}))


def test_settings_that_a_request_does_not_name_have_their_defaults() -> None:
    assert shown() == {
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "safety_identifier": None,
        "service_tier": "default",
        "store": True,
        "background": False,
        "temperature": 1.0,
        "top_p": 1.0,
        "top_logprobs": 0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "tool_choice": "auto",
        "tools": [],
        "truncation": "disabled",
        "metadata": {},
        "user": None,
        "text": {"format": {"type": "text"}},
        "reasoning": {"effort": None, "summary": None},
    }
    assert shown(temperature=None, tools=None)["temperature"] == 1.0


def test_settings_that_a_request_names_are_repeated() -> None:
    custom = {"type": "custom", "name": "sql"}
    asked = {
        "instructions": "Be kind.",
        "temperature": 0.5,
        "max_tool_calls": 3,
        "store": False,
        "tool_choice": {"type": "function", "name": "f"},
        "tools": [{"type": "function", "name": "f"}, custom],
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}, "verbosity": "low"},
        "reasoning": {"effort": "low"},
    }
    told = shown(**asked)
    function = {"type": "function", "name": "f", "description": None, "parameters": None, "strict": True}
    form = {"type": "json_schema", "name": "n", "schema": {}, "description": None, "strict": False}
    assert {name: told[name] for name in asked} == {
        **asked,
        "tools": [function, custom],
        "text": {"format": form, "verbosity": "low"},
        "reasoning": {"effort": "low", "summary": None},
    }


def test_a_system_message_of_the_input_is_not_the_instructions() -> None:
    assert shown(input=[{"role": "system", "content": "a"}])["instructions"] is None
    assert shown(input=[])["instructions"] is None


def test_only_a_request_of_this_dialect_is_repeated() -> None:
    assert echo(Request("m", dialect="anthropic")) == {}
    reply = Reply(id="r", model="m", choices=(Choice(parts=(Text("a"),), finish="stop"),))
    report = Report()
    told = write_reply(reply, Client(request=Request("m", dialect="anthropic")), report)
    assert "completed_at" not in told
    assert {"/parallel_tool_calls", "/tool_choice", "/tools"} <= {each.pointer for each in report.additions}


def test_the_echo_and_the_time_are_one_addition() -> None:
    reply = Reply(id="r", model="m", created=7, choices=(Choice(parts=(Text("a"),), finish="stop"),))
    report = Report()
    told = write_reply(reply, Client(request=read_request({"model": "m", "input": "Hi."})), report)
    assert (told["completed_at"], told["truncation"]) == (7, "disabled")
    assert "" in [each.pointer for each in report.additions]
    cut = Reply(id="r", model="m", created=7, choices=(Choice(parts=(Text("a"),), finish="length"),))
    request = read_request({"model": "m", "input": "Hi."})
    assert write_reply(cut, Client(request=request), Report())["completed_at"] is None
