from typing import Any

import pytest

from sightline.catalog.facts import Facts
from sightline.dialects.anthropic.options import (
    any_open,
    close_objects,
    open_objects,
    read_reasoning,
    read_settings,
    write_reasoning,
    write_settings,
)
from sightline.dialects.dialect import Target
from sightline.model.report import Report
from sightline.model.request import JsonFormat, Options, PlainFormat, Reasoning, SchemaFormat
from tests.dialects.reports import added_at, losses, named_losses, refused_at

SCHEMA: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


def write(*, same=False, **options):
    report = Report()
    body: dict[str, Any] = {}
    write_settings(Options(**options), Target(max_tokens=99), body, report, same=same)
    return body, report


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
        ({"thinking": {"type": "adaptive", "display": "sung", "x": 1}}, {"thinking": {"display": "sung", "x": 1}}),
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
    assert refused_at(read_settings, {key: 5}) == f"/{key}"


def test_a_limit_is_added_because_the_api_demands_one():
    body, report = write()
    assert body == {"max_tokens": 99}
    assert added_at(report) == ["/max_tokens"]


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


def test_schema_is_sent_and_its_name_description_and_strict_are_lost():
    body, report = write(format=SchemaFormat(SCHEMA, name="n", description="d", strict=True, at="/response_format"))
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": SCHEMA}}
    assert losses(report) == [("/response_format", "identity")] * 3
    assert write(format=SchemaFormat(SCHEMA, strict=False))[1].losses[0].severity == "identity"


def test_the_objects_of_a_schema_are_closed():
    body, report = write(format=SchemaFormat({"type": "object"}, at="/response_format"))
    assert body["output_config"]["format"]["schema"] == {"type": "object", "additionalProperties": False}
    place = "/output_config/format/schema/additionalProperties"
    assert place in added_at(report)
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


def test_json_format_without_a_schema_is_lost_and_plain_format_is_not():
    body, report = write(format=JsonFormat(at="/response_format"))
    assert "output_config" not in body
    assert losses(report) == [("/response_format", "option")]
    assert not write(format=PlainFormat())[1].losses


def test_thinking_with_a_budget_excludes_other_sampling():
    reasoning = Reasoning(mode="on", budget=2000)
    body, report = write(reasoning=reasoning, max_tokens=4000, temperature=0.5, top_k=3, top_p=0.5)
    assert body == {"max_tokens": 4000, "thinking": {"type": "enabled", "budget_tokens": 2000}}
    assert losses(report) == [("/temperature", "option"), ("/top_k", "option"), ("/top_p", "option")]


@pytest.mark.parametrize("reasoning", [Reasoning(mode="adaptive"), Reasoning(budget=-1, effort="low")])
def test_adaptive_thinking_excludes_other_sampling_too(reasoning):
    """The API answers 400: "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode"."""
    body, report = write(reasoning=reasoning, max_tokens=4000, temperature=0.5, top_k=3)
    assert body["thinking"] == {"type": "adaptive"}
    assert not body.keys() & {"temperature", "top_k"}
    assert losses(report) == [("/temperature", "option"), ("/top_k", "option")]


@pytest.mark.parametrize("same", [True, False])
def test_sampling_that_agrees_with_thinking_stays(same):
    reasoning = Reasoning(mode="on", budget=2000)
    body, report = write(same=same, reasoning=reasoning, max_tokens=4000, temperature=1, top_p=0.95)
    assert (body["temperature"], body["top_p"]) == (1, 0.95)
    assert not report.losses
    assert write(reasoning=Reasoning(effort="high"), temperature=0.5)[0]["temperature"] == 0.5


OPEN: Any = {
    "type": "object",
    "properties": {
        "a/b": {"type": "object", "properties": {"type": {"enum": ["object"]}}},
        "map": {"type": "object", "additionalProperties": {"type": "object"}},
        "list": {"type": "array", "items": {"type": ["object", "null"]}, "default": [{"type": "object"}]},
        "any": True,
    },
    "anyOf": [{"$ref": "#/$defs/D"}, False],
    "$defs": {"D": {"type": "object", "additionalProperties": False}},
}


def test_every_object_is_closed_and_the_change_is_listed():
    report = Report()
    assert close_objects(OPEN, "/response_format", "/s", report) == {
        "type": "object",
        "properties": {
            "a/b": {"type": "object", "properties": {"type": {"enum": ["object"]}}, "additionalProperties": False},
            "map": {"type": "object", "additionalProperties": False},
            "list": {
                "type": "array",
                "items": {"type": ["object", "null"], "additionalProperties": False},
                "default": [{"type": "object"}],
            },
            "any": True,
        },
        "anyOf": [{"$ref": "#/$defs/D"}, False],
        "$defs": {"D": {"type": "object", "additionalProperties": False}},
        "additionalProperties": False,
    }
    assert added_at(report) == [
        "/s/properties/a~1b/additionalProperties",
        "/s/properties/list/items/additionalProperties",
        "/s/additionalProperties",
    ]
    assert named_losses(report) == [("/response_format", "other properties at /properties/map of the schema", "option")]


def test_open_objects_are_found():
    assert list(open_objects(OPEN)) == ["/properties/a~1b", "/properties/map", "/properties/list/items", ""]
    assert any_open(OPEN)
    assert not any_open({"type": "object"})


def write_thinking(reasoning, *, same=False, max_tokens=64000):
    report, body = Report(), {"max_tokens": max_tokens}
    write_reasoning(reasoning, body, report, same=same)
    del body["max_tokens"]
    return body, losses(report)


OWN: list[dict[str, Any]] = [
    {"thinking": {"type": "adaptive"}},
    {"thinking": {"type": "disabled"}},
    {"thinking": {"type": "enabled", "budget_tokens": 2048, "display": "omitted"}},
    {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "xhigh"}},
    {"output_config": {"effort": "whatever"}},
    {"thinking": {"budget_tokens": 5}},
]


@pytest.mark.parametrize("body", OWN)
def test_an_own_setting_is_written_back_as_it_was(body):
    reasoning = read_reasoning(body)
    assert reasoning is not None
    assert write_thinking(reasoning, same=True) == (body, [])


def test_each_member_knows_its_place():
    reasoning = read_reasoning(OWN[2])
    assert reasoning == Reasoning(
        mode="on",
        budget=2048,
        summary="none",
        places={"mode": "/thinking/type", "summary": "/thinking/display", "budget": "/thinking/budget_tokens"},
        at="/thinking",
    )
    alone = read_reasoning(OWN[4])
    assert alone is not None
    assert alone.at == "/output_config"


@pytest.mark.parametrize(
    "body", [{}, {"thinking": None}, {"thinking": {"type": "between_tools"}}, {"output_config": {}}]
)
def test_nothing_known_is_nothing(body):
    assert read_reasoning(body) is None


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"thinking": {"type": 1}}, "/thinking/type"),
        ({"thinking": {"budget_tokens": "x"}}, "/thinking/budget_tokens"),
        ({"output_config": {"effort": 1}}, "/output_config/effort"),
    ],
)
def test_a_wrong_type_names_the_place(body, pointer):
    assert refused_at(read_reasoning, body) == pointer


@pytest.mark.parametrize(
    ("reasoning", "body"),
    [
        (Reasoning(effort="high"), {"output_config": {"effort": "high"}}),
        (Reasoning(effort="none"), {"thinking": {"type": "disabled"}}),
        (Reasoning(mode="off"), {"thinking": {"type": "disabled"}}),
        (Reasoning(mode="off", effort="none"), {"thinking": {"type": "disabled"}}),
        (Reasoning(budget=0), {"thinking": {"type": "disabled"}}),
        (Reasoning(budget=-1), {"thinking": {"type": "adaptive"}}),
        (Reasoning(mode="adaptive"), {"thinking": {"type": "adaptive"}}),
        (Reasoning(budget=4096), {"thinking": {"type": "enabled", "budget_tokens": 4096}}),
        (Reasoning(mode="on", budget=4096, effort="low"), {
            "thinking": {"type": "enabled", "budget_tokens": 4096}, "output_config": {"effort": "low"}}),
        (Reasoning(mode="adaptive", summary="auto"), {"thinking": {"type": "adaptive", "display": "summarized"}}),
        (Reasoning(mode="adaptive", summary="none"), {"thinking": {"type": "adaptive", "display": "omitted"}}),
    ],
)  # fmt: skip
def test_supported_reasoning_options_are_written_exactly(reasoning, body):
    assert write_thinking(reasoning) == (body, [])


@pytest.mark.parametrize(
    ("reasoning", "body", "lost"),
    [
        (Reasoning(effort="minimal"), {"output_config": {"effort": "low"}}, "effort"),
        (Reasoning(effort="heroic"), {}, "effort"),
        (Reasoning(mode="on"), {"thinking": {"type": "adaptive"}}, "mode"),
        (Reasoning(mode="dreaming"), {}, "mode"),
        (Reasoning(mode="adaptive", budget=5), {"thinking": {"type": "adaptive"}}, "budget"),
        (Reasoning(budget=100), {"thinking": {"type": "enabled", "budget_tokens": 1024}}, "budget"),
        (Reasoning(budget=99999), {"thinking": {"type": "enabled", "budget_tokens": 63999}}, "budget"),
        (Reasoning(mode="adaptive", effort="none"), {"thinking": {"type": "adaptive"}}, "effort"),
        (Reasoning(summary="auto"), {}, "summary"),
        (Reasoning(mode="off", summary="auto"), {"thinking": {"type": "disabled"}}, "summary"),
        (Reasoning(mode="adaptive", summary="sung"), {"thinking": {"type": "adaptive"}}, "summary"),
        (
            Reasoning(mode="adaptive", summary="concise"),
            {"thinking": {"type": "adaptive", "display": "summarized"}},
            "summary",
        ),
    ],
)
def test_approximated_reasoning_options_are_reported_as_lost(reasoning, body, lost):
    placed = Reasoning(
        mode=reasoning.mode,
        effort=reasoning.effort,
        budget=reasoning.budget,
        summary=reasoning.summary,
        places={lost: f"/{lost}"},
    )
    assert write_thinking(placed) == (body, [(f"/{lost}", "option")])


def test_a_budget_that_fits_below_no_limit_is_lost():
    assert write_thinking(Reasoning(budget=2000, at="/r"), max_tokens=500) == ({}, [("/r", "option")])


def test_a_budget_without_a_limit_is_written():
    report = Report()
    body: dict[str, Any] = {}
    write_reasoning(Reasoning(budget=2000), body, report, same=False)
    assert body == {"thinking": {"type": "enabled", "budget_tokens": 2000}}


def test_a_forced_call_goes_before_thinking_with_a_budget():
    report = Report()
    body: dict[str, Any] = {"tool_choice": {"type": "any"}}
    write_reasoning(Reasoning(budget=2000, at="/r"), body, report, same=False)
    assert "thinking" not in body
    assert losses(report) == [("/r", "option")]


@pytest.mark.parametrize(
    ("reasoning", "lost"),
    [
        (Reasoning(mode="adaptive"), "mode"),
        (Reasoning(mode="on"), "mode"),
        (Reasoning(budget=-1), "budget"),
    ],
)
def test_a_forced_call_goes_before_adaptive_thinking_too(reasoning, lost):
    """ "Thinking may not be enabled when tool_choice forces tool use": the API says it of both kinds of thinking."""
    report = Report()
    body: dict[str, Any] = {"tool_choice": {"type": "tool", "name": "add"}}
    placed = Reasoning(mode=reasoning.mode, budget=reasoning.budget, effort="low", places={lost: f"/{lost}"})
    write_reasoning(placed, body, report, same=False)
    assert body == {"tool_choice": {"type": "tool", "name": "add"}, "output_config": {"effort": "low"}}
    assert losses(report) == [(f"/{lost}", "option")]


def test_the_least_thinking_of_a_model_that_cannot_do_without_is_written():
    assert write_thinking(Reasoning(mode="between_tools", effort="low")) == (
        {"thinking": {"type": "between_tools"}, "output_config": {"effort": "low"}},
        [],
    )


@pytest.mark.parametrize(
    ("reasoning", "most", "limit"),
    [
        (None, None, 99),
        (Reasoning(effort="low"), None, 99),
        (Reasoning(mode="off"), None, 99),
        (Reasoning(budget=2000), None, 2099),
        (Reasoning(mode="adaptive"), None, 24_675),
        (Reasoning(budget=-1), None, 24_675),
        (Reasoning(mode="adaptive"), 5000, 5000),
        (Reasoning(mode="adaptive"), 50, 99),
    ],
)
def test_a_limit_that_is_added_leaves_room_to_think(reasoning, most, limit):
    body: dict[str, Any] = {}
    facts = None if most is None else Facts(max_output=most)
    write_settings(Options(reasoning=reasoning), Target(max_tokens=99, facts=facts), body, Report(), same=False)
    assert body["max_tokens"] == limit
    asked: dict[str, Any] = {}
    known = Target(max_tokens=99, facts=Facts())
    write_settings(Options(reasoning=reasoning, max_tokens=3000), known, asked, Report(), same=False)
    assert asked["max_tokens"] == 3000
