from typing import Any

import pytest

from sightline.dialects.anthropic.options import read_settings, write_settings
from sightline.dialects.dialect import Target
from sightline.errors import Fault
from sightline.model.options import JsonFormat, Options, PlainFormat, Reasoning, SchemaFormat
from sightline.model.report import Report

SCHEMA: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


def write(*, same=False, **options):
    report = Report()
    body: dict[str, Any] = {}
    write_settings(Options(**options), Target(max_tokens=99), body, report, same=same)
    return body, report


def losses(report):
    return [(loss.pointer, loss.severity) for loss in report.losses]


def test_every_option_is_read_with_its_place():
    options, unread = read_settings(
        {
            "max_tokens": 5,
            "temperature": 0,
            "top_p": 0.5,
            "top_k": 3,
            "stop_sequences": ["a"],
            "metadata": {"user_id": "u"},
            "service_tier": "auto",
            "stream": True,
        }
    )
    assert (options.max_tokens, options.temperature, options.top_p, options.top_k) == (5, 0, 0.5, 3)
    assert (options.stop, options.user, options.service_tier, options.stream) == (("a",), "u", "auto", True)
    assert options.places["user"] == "/metadata/user_id"
    assert unread == {}


@pytest.mark.parametrize(
    ("body", "unread"),
    [
        ({"metadata": {}}, {"metadata": {}}),
        ({"metadata": {"team": 1}}, {"metadata": {"team": 1}}),
        ({"output_config": {"effort": "low", "tone": "dry"}}, {"output_config": {"tone": "dry"}}),
        ({"output_config": {"format": {"type": "xml"}}}, {"output_config": {"format": {"type": "xml"}}}),
        (
            {"output_config": {"format": {"type": "json_schema"}}},
            {"output_config": {"format": {"type": "json_schema"}}},
        ),
        ({"output_format": {"type": "xml"}}, {"output_format": {"type": "xml"}}),
        ({"thinking": {"type": "between_tools"}}, {"thinking": {"type": "between_tools"}}),
        (
            {"thinking": {"type": "adaptive", "display": "sung", "x": 1}},
            {"thinking": {"display": "sung", "x": 1}},
        ),
    ],
)
def test_what_is_not_modelled_stays_in_its_object(body, unread):
    assert read_settings(body)[1] == unread


def test_the_schema_of_the_answer_in_both_places():
    form: dict[str, Any] = {"type": "json_schema", "schema": SCHEMA, "new": 1}
    options, unread = read_settings({"output_config": {"format": form}, "output_format": form})
    assert options.format == SchemaFormat(SCHEMA, at="/output_config/format", extras={"new": 1})
    assert unread == {"output_format": form}
    options, unread = read_settings({"output_format": form})
    assert options.format == SchemaFormat(SCHEMA, at="/output_format", extras={"new": 1})
    assert options.places["format"] == "/output_format"
    assert unread == {}


@pytest.mark.parametrize("key", ["output_format", "output_config", "metadata", "thinking"])
def test_an_option_object_is_an_object(key):
    with pytest.raises(Fault) as caught:
        read_settings({key: 5})
    assert caught.value.pointer == f"/{key}"


def test_a_limit_is_added_because_the_api_demands_one():
    body, report = write()
    assert body == {"max_tokens": 99}
    assert [addition.pointer for addition in report.additions] == ["/max_tokens"]


def test_a_limit_is_not_added_to_an_own_request():
    assert write(same=True)[0] == {}


def test_options_that_both_have():
    body, report = write(max_tokens=5, top_p=0.1, top_k=2, user="u", stream=False, temperature=0.5, service_tier="auto")
    assert body == {
        "max_tokens": 5,
        "top_p": 0.1,
        "top_k": 2,
        "metadata": {"user_id": "u"},
        "stream": False,
        "temperature": 0.5,
        "service_tier": "auto",
    }
    assert not report.losses


def test_a_temperature_above_one_is_one():
    body, report = write(temperature=1.5, places={"temperature": "/generationConfig/temperature"})
    assert body["temperature"] == 1
    assert losses(report) == [("/generationConfig/temperature", "option")]
    assert "1.5" in report.losses[0].what


def test_blank_stops_are_dropped():
    body, report = write(stop=("\n", "END"))
    assert body["stop_sequences"] == ["END"]
    assert losses(report) == [("/stop", "option")]
    assert write(stop=("END",))[1].losses == ()


def test_a_service_tier_of_another_provider_is_lost():
    body, report = write(service_tier="flex")
    assert "service_tier" not in body
    assert losses(report) == [("/service_tier", "option")]


def test_options_that_the_api_does_not_have():
    _, report = write(seed=1, presence_penalty=0.5, metadata={"a": "b"}, store=True, n=2, verbosity="low")
    assert sorted(losses(report)) == [
        ("/metadata", "identity"),
        ("/n", "option"),
        ("/presence_penalty", "option"),
        ("/seed", "option"),
        ("/store", "identity"),
        ("/verbosity", "option"),
    ]


def test_settings_that_say_what_happens_anyway_change_nothing():
    _, report = write(n=1, logprobs=False, presence_penalty=0, frequency_penalty=0.0)
    assert {loss.severity for loss in report.losses} == {"identity"}
    assert len(report.losses) == 4


def test_a_schema_is_carried_and_what_stands_beside_it_is_lost():
    body, report = write(format=SchemaFormat(SCHEMA, name="n", description="d", strict=True, at="/response_format"))
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": SCHEMA}}
    assert losses(report) == [("/response_format", "identity")] * 3
    assert write(format=SchemaFormat(SCHEMA, strict=False))[1].losses[0].severity == "identity"


def test_the_objects_of_a_schema_are_closed():
    body, report = write(format=SchemaFormat({"type": "object"}, at="/response_format"))
    assert body["output_config"]["format"]["schema"] == {"type": "object", "additionalProperties": False}
    place = "/output_config/format/schema/additionalProperties"
    assert place in [addition.pointer for addition in report.additions]
    assert not report.losses


@pytest.mark.parametrize(
    "options",
    [
        {"n": 1},
        {"logprobs": False, "top_logprobs": 0},
        {"presence_penalty": 0, "frequency_penalty": 0.0},
        {"logit_bias": {}},
        {"safety_settings": []},
        {"verbosity": "medium"},
    ],
)
def test_what_would_happen_anyway_is_no_loss_of_an_option(options):
    assert {loss.severity for loss in write(**options)[1].losses} == {"identity"}


@pytest.mark.parametrize(
    ("at", "body"),
    [
        ("/output_format", {"output_format": {"type": "json_schema", "schema": SCHEMA, "new": 1}}),
        ("/output_config/format", {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA, "new": 1}}}),
    ],
)
def test_an_own_schema_goes_back_where_it_was(at, body):
    assert write(same=True, format=SchemaFormat(SCHEMA, at=at, extras={"new": 1}))[0] == body


def test_json_without_a_schema_cannot_be_asked_for_and_text_need_not_be():
    body, report = write(format=JsonFormat(at="/response_format"))
    assert "output_config" not in body
    assert losses(report) == [("/response_format", "option")]
    assert not write(format=PlainFormat())[1].losses


def test_thinking_with_a_budget_excludes_other_sampling():
    reasoning = Reasoning(mode="on", budget=2000)
    body, report = write(reasoning=reasoning, max_tokens=4000, temperature=0.5, top_k=3, top_p=0.5)
    assert body == {"max_tokens": 4000, "thinking": {"type": "enabled", "budget_tokens": 2000}}
    assert losses(report) == [("/temperature", "option"), ("/top_k", "option"), ("/top_p", "option")]


@pytest.mark.parametrize("same", [True, False])
def test_sampling_that_agrees_with_thinking_stays(same):
    reasoning = Reasoning(mode="on", budget=2000)
    body, report = write(same=same, reasoning=reasoning, max_tokens=4000, temperature=1, top_p=0.95)
    assert (body["temperature"], body["top_p"]) == (1, 0.95)
    assert not report.losses
    assert write(reasoning=Reasoning(effort="high"), temperature=0.5)[0]["temperature"] == 0.5
