import pytest

from sightline.dialects.gemini import problems
from sightline.dialects.gemini.request import read_request

USER = {"role": "user", "parts": [{"text": "a"}]}
MODEL = {"role": "model", "parts": [{"text": "b"}]}


def call(name, **more):
    return {"functionCall": {"name": name, "args": {}, **more}}


def response(name, **more):
    return {"functionResponse": {"name": name, "response": {}, **more}}


def calls(*parts):
    return {"role": "model", "parts": list(parts)}


def answers(*parts):
    return {"role": "user", "parts": list(parts)}


def found(*contents, **more):
    document = {"contents": list(contents), **more}
    return [(problem.pointer, problem.severity) for problem in problems(read_request(document))]


def test_a_sound_request_has_no_problems():
    turn = calls(call("f", id="1"), call("f", id="2"), call("g"))
    assert found(USER, turn, answers(response("g"), response("f", id="2"), response("f", id="1"))) == []
    assert found(USER, calls(call("f"), call("f")), answers(response("f", id="x"), response("f"))) == []


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        ([], [("/contents", "error")]),
        ([answers()], [("/contents/0", "error")]),
        ([answers({"text": ""})], [("/contents/0/parts/0", "error")]),
        ([answers({"text": "", "thoughtSignature": "S"})], []),
        ([USER, MODEL], [("/contents/1", "warning")]),
        ([MODEL, USER], [("/contents/0", "warning")]),
        ([USER, answers(response("f"))], [("/contents/1/parts/0", "error")]),
        ([USER, calls(call("f")), USER], [("/contents/1/parts/0", "error")]),
        ([USER, calls(call("f", id="1")), answers(response("f", id="2"))],
         [("/contents/2/parts/0", "error"), ("/contents/1/parts/0", "error")]),
        ([USER, calls(call("f"), call("g")), answers(response("f"))], [("/contents/1/parts/1", "error")]),
        ([USER, calls(call("f"))], [("/contents/1/parts/0", "error"), ("/contents/1", "warning")]),
        ([USER, MODEL, calls(call("f")), answers(response("f"))], [("/contents/2/parts/0", "error")]),
        ([calls(call("f")), answers(response("f"))], [("/contents/0/parts/0", "error"), ("/contents/0", "warning")]),
    ],
)  # fmt: skip
def test_what_the_api_rejects_in_the_conversation(contents, expected):
    assert found(*contents) == expected


@pytest.mark.parametrize(
    ("more", "pointers"),
    [
        ({"tools": [{"functionDeclarations": [{"name": "a.b:c-d"}, {"name": "1a"}]}]},
         ["/tools/0/functionDeclarations/1/name"]),
        ({"tools": [{"functionDeclarations": [{"name": "a" * 129}]}]}, ["/tools/0/functionDeclarations/0/name"]),
        ({"tools": [{"functionDeclarations": [{"name": "a", "parameters": {}, "parametersJsonSchema": {}}]}]},
         ["/tools/0/functionDeclarations/0/parameters"]),
        ({"generationConfig": {"stopSequences": list("abcdef")}}, ["/generationConfig/stopSequences"]),
        ({"generationConfig": {"responseJsonSchema": {}}}, ["/generationConfig/responseJsonSchema"]),
        ({"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": {}}}, []),
        ({"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW", "thinkingBudget": 1}}},
         ["/generationConfig/thinkingConfig"]),
        ({"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW", "includeThoughts": True}}}, []),
    ],
)  # fmt: skip
def test_what_the_api_rejects_in_the_settings(more, pointers):
    assert [pointer for pointer, _ in found(USER, **more)] == pointers
