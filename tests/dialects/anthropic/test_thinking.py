from typing import Any

import pytest

from sightline.dialects.anthropic.options import read_reasoning, write_reasoning
from sightline.errors import Fault
from sightline.model.options import Reasoning
from sightline.model.report import Report


def write(reasoning, *, same=False, max_tokens=64000):
    report, body = Report(), {"max_tokens": max_tokens}
    write_reasoning(reasoning, body, report, same=same)
    del body["max_tokens"]
    return body, [(loss.pointer, loss.severity) for loss in report.losses]


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
    assert write(reasoning, same=True) == (body, [])


def test_each_member_knows_its_place():
    reasoning = read_reasoning(OWN[2])
    assert reasoning == Reasoning(
        mode="on",
        budget=2048,
        summary="none",
        places={
            "mode": "/thinking/type",
            "summary": "/thinking/display",
            "budget": "/thinking/budget_tokens",
        },
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
    with pytest.raises(Fault) as caught:
        read_reasoning(body)
    assert caught.value.pointer == pointer


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
def test_what_can_be_said_is_said_and_nothing_more(reasoning, body):
    assert write(reasoning) == (body, [])


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
def test_what_cannot_be_said_exactly_is_a_lost_option(reasoning, body, lost):
    placed = Reasoning(
        mode=reasoning.mode,
        effort=reasoning.effort,
        budget=reasoning.budget,
        summary=reasoning.summary,
        places={lost: f"/{lost}"},
    )
    assert write(placed) == (body, [(f"/{lost}", "option")])


def test_a_budget_that_fits_below_no_limit_is_lost():
    assert write(Reasoning(budget=2000, at="/r"), max_tokens=500) == ({}, [("/r", "option")])


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
    assert [(loss.pointer, loss.severity) for loss in report.losses] == [("/r", "option")]


def test_the_least_thinking_of_a_model_that_cannot_do_without_is_written():
    assert write(Reasoning(mode="between_tools", effort="low")) == (
        {"thinking": {"type": "between_tools"}, "output_config": {"effort": "low"}},
        [],
    )
