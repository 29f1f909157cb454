import pytest

from sightline.dialects.gemini.options import read_format, read_reasoning, write_all
from sightline.errors import Fault
from sightline.model.report import Report
from sightline.model.request import JsonFormat, Options, PlainFormat, Reasoning, SchemaFormat
from tests.dialects.reports import named_losses

AT = "/generationConfig"


def written(options, *, same=False):
    report = Report()
    document: dict = {}
    write_all(options, document, report, same=same)
    return document, report


def read_back(config):
    """The format part of a config, read and written again."""
    chosen, known = read_format(config, AT)
    document, _ = written(Options(format=chosen), same=True)
    return chosen, known, document.get("generationConfig", {})


@pytest.mark.parametrize(
    ("config", "chosen"),
    [
        ({"responseMimeType": "application/json"}, JsonFormat(at=f"{AT}/responseMimeType")),
        ({"responseMimeType": "text/plain"}, PlainFormat(at=f"{AT}/responseMimeType")),
        (
            {"responseMimeType": "application/json", "responseSchema": {"type": "STRING"}},
            SchemaFormat({"type": "string"}, at=f"{AT}/responseSchema"),
        ),
        (
            {"responseMimeType": "application/json", "responseJsonSchema": {"type": "OBJECT"}},
            SchemaFormat({"type": "object"}, at=f"{AT}/responseJsonSchema"),
        ),
        (
            {"responseJsonSchema": {"type": "object"}},
            SchemaFormat({"type": "object"}, at=f"{AT}/responseJsonSchema", extras={"responseMimeType": None}),
        ),
    ],
)
def test_formats_are_read_and_written_back(config, chosen):
    found, known, again = read_back(config)
    assert found == chosen
    assert config.keys() <= known
    assert again == config


@pytest.mark.parametrize(
    "config", [{}, {"responseMimeType": "text/x.enum"}, {"responseMimeType": "text/x.enum", "responseSchema": {}}]
)
def test_other_formats_are_not_ours(config):
    assert read_format(config, AT) == (None, frozenset())


def test_formats_from_elsewhere():
    document, report = written(Options(format=PlainFormat()))
    assert document == {"generationConfig": {"responseMimeType": "text/plain"}}
    assert named_losses(report) == []
    schema = SchemaFormat({"type": "object", "$schema": "x"}, "n", "d", strict=True, at="/response_format")
    document, report = written(Options(format=schema))
    assert document == {
        "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}}
    }
    assert named_losses(report) == [
        ("/response_format", "$schema at the root of the schema", "identity"),
        ("/response_format", "name of the schema", "identity"),
        ("/response_format", "description of the schema", "option"),
        ("/response_format", "strict", "identity"),
    ]
    _, report = written(Options(format=SchemaFormat({"type": "object"}, strict=False)))
    assert named_losses(report) == [("/format", "strict", "identity")]
    _, report = written(Options(format=SchemaFormat({"type": "object"})))
    assert named_losses(report) == []


@pytest.mark.parametrize(
    ("thinking", "reasoning"),
    [
        ({"thinkingBudget": 0}, {"mode": "off", "places": {"mode": "/thinkingBudget"}}),
        ({"thinkingBudget": -1}, {"mode": "adaptive", "places": {"mode": "/thinkingBudget"}}),
        ({"thinkingBudget": 512}, {"budget": 512, "places": {"budget": "/thinkingBudget"}}),
        ({"thinkingLevel": "HIGH"}, {"effort": "high", "places": {"effort": "/thinkingLevel"}}),
        (
            {"thinkingLevel": "low"},
            {"effort": "low", "places": {"effort": "/thinkingLevel"}, "extras": {"thinkingLevel": None}},
        ),
        ({"includeThoughts": True}, {"summary": "auto", "places": {"summary": "/includeThoughts"}}),
        (
            {"includeThoughts": False, "future": 1},
            {"summary": "none", "places": {"summary": "/includeThoughts"}, "extras": {"future": 1}},
        ),
        ({}, {}),
    ],
)
def test_thinking_is_read_and_written_back(thinking, reasoning):
    at = f"{AT}/thinkingConfig"
    found = read_reasoning({"thinkingConfig": thinking}, AT)
    places = {name: at + place for name, place in reasoning.pop("places", {}).items()}
    assert found == Reasoning(**reasoning, places=places, at=at)
    document, report = written(Options(reasoning=found), same=True)
    assert document == {"generationConfig": {"thinkingConfig": thinking}}
    assert named_losses(report) == []


def test_thinking_in_the_other_spelling():
    found = read_reasoning({"thinking_config": {"thinking_budget": 5}}, AT)
    assert found is not None
    assert found.places == {"budget": f"{AT}/thinking_config/thinking_budget"}
    assert read_reasoning({}, AT) is None
    with pytest.raises(Fault):
        read_reasoning({"thinking_config": {"thinking_level": 5}}, AT)


@pytest.mark.parametrize(
    ("reasoning", "thinking", "losses"),
    [
        ({"mode": "off"}, {"thinkingBudget": 0}, []),
        ({"mode": "off", "effort": "high"}, {"thinkingBudget": 0}, ["effort"]),
        ({"effort": "none"}, {"thinkingBudget": 0}, []),
        ({"mode": "adaptive"}, {"thinkingBudget": -1}, []),
        ({"mode": "on"}, {"thinkingBudget": -1}, []),
        ({"mode": "on", "budget": 2048}, {"thinkingBudget": 2048}, []),
        ({"effort": "minimal"}, {"thinkingLevel": "MINIMAL"}, []),
        ({"effort": "max"}, {"thinkingLevel": "HIGH"}, ["effort"]),
        ({"effort": "low", "budget": 9}, {"thinkingLevel": "LOW"}, ["budget"]),
        ({"effort": "odd"}, None, ["effort"]),
        ({"summary": "auto"}, {"includeThoughts": True}, []),
        ({"summary": "detailed"}, {"includeThoughts": True}, ["summary"]),
        ({"summary": "none"}, {"includeThoughts": False}, []),
        ({"summary": "odd"}, None, ["summary"]),
    ],
)
def test_foreign_reasoning_options_map_to_the_nearest_thinking_config(reasoning, thinking, losses):
    document, report = written(Options(reasoning=Reasoning(**reasoning, places={"effort": "/r/effort"})))
    assert document == ({} if thinking is None else {"generationConfig": {"thinkingConfig": thinking}})
    assert named_losses(report) == [
        ("/r/effort" if name == "effort" else "/reasoning", f"reasoning {name}", "option") for name in losses
    ]


def test_options_go_to_their_places():
    options = Options(
        max_tokens=9, temperature=0.5, top_p=1, top_k=3, stop=("a",), seed=1, presence_penalty=1, frequency_penalty=2,
        logprobs=True, top_logprobs=3, n=2, store=True, safety_settings=[{}], service_tier="default", stream=True,
    )  # fmt: skip
    document, report = written(options)
    assert document == {
        "generationConfig": {
            "maxOutputTokens": 9, "temperature": 0.5, "topP": 1, "topK": 3, "stopSequences": ["a"], "seed": 1,
            "presencePenalty": 1, "frequencyPenalty": 2, "responseLogprobs": True, "logprobs": 3, "candidateCount": 2,
        },
        "store": True,
        "safetySettings": [{}],
        "serviceTier": "standard",
    }  # fmt: skip
    assert named_losses(report) == []


def test_what_has_no_place_is_lost():
    options = Options(
        logit_bias={"1": 2}, verbosity="low", cache_key="k", metadata={}, service_tier="scale", include_usage=True,
        stop=("a", "b", "c", "d", "e", "f"), places={"verbosity": "/text/verbosity"},
    )  # fmt: skip
    document, report = written(options)
    assert document == {"generationConfig": {"stopSequences": ["a", "b", "c", "d", "e"]}}
    assert named_losses(report) == [
        ("/stop", "stop sequence 'f'", "option"),
        ("/service_tier", "service tier 'scale'", "option"),
        ("/logit_bias", "logit_bias", "option"),
        ("/text/verbosity", "verbosity", "option"),
        ("/cache_key", "cache_key", "identity"),
        ("/metadata", "metadata", "identity"),
        ("/include_usage", "include_usage", "identity"),
    ]


def test_what_would_happen_anyway_is_no_loss_of_an_option():
    document, report = written(Options(logit_bias={}, verbosity="medium", service_tier="auto", n=1))
    assert document == {"generationConfig": {"candidateCount": 1}}
    names = ("service_tier", "logit_bias", "verbosity")
    assert named_losses(report) == [(f"/{name}", name, "identity") for name in names]
