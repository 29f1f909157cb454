import pytest

from sightline.dialects.openai_responses.names import LOGPROBS
from sightline.errors import Fault
from sightline.model.options import JsonFormat, Options, PlainFormat, Reasoning, SchemaFormat
from sightline.model.report import Report
from sightline.model.request import Request
from tests.dialects.openai_responses.cases import losses, read, write


def request(**fields):
    return {"model": "m", "input": "hi", **fields}


def foreign(**options):
    report = Report()
    body = write(Request(model="m", options=Options(**options), dialect="openai-chat"), report)
    return {key: value for key, value in body.items() if key not in ("model", "input")}, report


EVERYTHING = request(
    max_output_tokens=9,
    temperature=0.5,
    top_p=1,
    top_logprobs=3,
    prompt_cache_key="k",
    prompt_cache_retention="24h",
    store=False,
    include=["reasoning.encrypted_content", LOGPROBS],
    previous_response_id="resp_0",
    metadata={"a": "b"},
    user="u",
    safety_identifier="s",
    service_tier="flex",
    stream=True,
    text={"verbosity": "low", "format": {"type": "text"}, "tone": "dry"},
    reasoning={"effort": "high", "summary": "auto", "mode": "pro"},
    truncation="auto",
)


def test_every_option_has_one_name_and_its_place():
    options = read(EVERYTHING).options
    assert (options.max_tokens, options.top_p, options.cache_key, options.verbosity) == (9, 1, "k", "low")
    assert (options.logprobs, options.include) == (True, ("reasoning.encrypted_content",))
    assert options.places["verbosity"] == "/text/verbosity"
    assert options.places["logprobs"] == "/include/1"
    assert write(read(EVERYTHING)) == EVERYTHING


def test_a_value_of_the_wrong_type_is_refused_with_its_place():
    with pytest.raises(Fault) as caught:
        read(request(text={"verbosity": 1}))
    assert caught.value.pointer == "/text/verbosity"


def test_logprobs_are_a_word_of_include_and_nothing_else():
    options = read(request(include=[LOGPROBS])).options
    assert (options.logprobs, options.include) == (True, None)
    assert "include" not in options.places
    assert foreign(logprobs=True, top_logprobs=2)[0] == {"include": [LOGPROBS], "top_logprobs": 2}
    assert foreign(logprobs=False)[0] == {}


def test_what_other_apis_have_is_a_loss():
    body, report = foreign(top_k=5, stop=("x",), seed=1, n=2, logit_bias={"1": 2}, presence_penalty=1.0)
    assert body == {}
    assert {what for _, what, _ in losses(report)} == {"top_k", "stop", "seed", "n", "logit_bias", "presence_penalty"}


def test_usage_comes_without_asking():
    body, report = foreign(include_usage=True, places={"include_usage": "/stream_options/include_usage"})
    assert body == {}
    assert losses(report) == [("/stream_options/include_usage", "token counts requested", "identity")]


def test_a_tier_of_another_vendor_goes_by_the_name_that_it_has_here():
    assert foreign(service_tier="flex")[0] == {"service_tier": "flex"}
    assert foreign(service_tier="standard_only")[0] == {"service_tier": "default"}
    body, report = foreign(service_tier="batch")
    assert body == {}
    assert [loss.what for loss in report.losses] == ["service tier 'batch'"]


SCHEMA = {"type": "object"}


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        ({"type": "text"}, PlainFormat(at="/text/format")),
        ({"type": "json_object", "x": 1}, JsonFormat(at="/text/format", extras={"x": 1})),
        (
            {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True, "description": "d"},
            SchemaFormat(SCHEMA, "n", "d", True, at="/text/format"),
        ),
    ],
)
def test_formats(wire, expected):
    body = request(text={"format": wire})
    assert read(body).options.format == expected
    assert write(read(body)) == body


@pytest.mark.parametrize("text", [{}, {"format": {"type": "grammar", "x": 1}, "y": 2}])
def test_a_text_object_that_we_cannot_say_better_comes_back(text):
    assert write(read(request(text=text)))["text"] == text


def test_a_null_says_what_absence_says():
    assert write(read(request(text={"format": None}))) == request()


def test_a_schema_needs_a_name():
    body, report = foreign(format=SchemaFormat(SCHEMA))
    assert body == {"text": {"format": {"type": "json_schema", "name": "response", "schema": SCHEMA}}}
    assert [addition.pointer for addition in report.additions] == ["/text/format/name"]
    own = request(text={"format": {"type": "json_schema", "schema": SCHEMA}})
    assert write(read(own)) == own


def test_no_effort_is_thinking_switched_off():
    reasoning = read(request(reasoning={"effort": "none"})).options.reasoning
    assert (reasoning.mode, reasoning.effort, reasoning.places) == ("off", None, {"mode": "/reasoning/effort"})
    assert foreign(reasoning=Reasoning(mode="off"))[0] == {"reasoning": {"effort": "none"}}


@pytest.mark.parametrize(
    "wire",
    [
        {},
        {"effort": "none"},
        {"generate_summary": "auto"},
        {"summary": "auto", "generate_summary": "auto", "context": "auto"},
    ],
)
def test_reasoning_comes_back_as_it_was(wire):
    assert write(read(request(reasoning=wire)))["reasoning"] == wire


@pytest.mark.parametrize(("budget", "effort"), [(1024, "low"), (2048, "medium"), (8192, "high")])
def test_a_budget_becomes_the_nearest_effort_and_the_number_is_a_loss(budget, effort):
    body, report = foreign(reasoning=Reasoning(budget=budget, places={"budget": "/b"}))
    assert body == {"reasoning": {"effort": effort}}
    assert losses(report) == [("/b", f"reasoning budget of {budget} tokens", "option")]


@pytest.mark.parametrize("mode", ["on", "adaptive"])
def test_thinking_switched_on_is_a_loss_without_an_effort(mode):
    body, report = foreign(reasoning=Reasoning(mode=mode, places={"mode": "/t"}))
    assert body == {}
    assert losses(report) == [("/t", f"reasoning {mode}", "option")]


def test_a_summary_is_asked_for_in_the_same_word_and_none_by_silence():
    assert foreign(reasoning=Reasoning(effort="low", summary="concise"))[0] == {
        "reasoning": {"effort": "low", "summary": "concise"}
    }
    assert foreign(reasoning=Reasoning(effort="low", summary="none"))[0] == {"reasoning": {"effort": "low"}}


def test_what_the_api_does_unasked_is_no_setting_that_is_lost():
    usual = {"n": 1, "presence_penalty": 0.0, "frequency_penalty": 0, "logprobs": False, "stop": (), "logit_bias": {}}
    body, report = foreign(**usual, places={"n": "/generationConfig/candidateCount"})
    assert body == {}
    assert {severity for _, _, severity in losses(report)} == {"identity"}
    assert losses(report)[0] == ("/generationConfig/candidateCount", "n", "identity")
    _, report = foreign(n=2, presence_penalty=0.5, stop=("x",))
    assert [(what, severity) for _, what, severity in losses(report)] == [
        ("stop", "option"),
        ("presence_penalty", "option"),
        ("n", "option"),
    ]
