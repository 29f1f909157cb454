from sightline.dialects.strict_schema import with_strict_schemas
from sightline.model.json import JsonObject
from sightline.model.options import JsonFormat, Options, SchemaFormat
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.model.tools import CustomTool, FunctionTool

OPEN: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}}}
CLOSED: JsonObject = {
    "type": "object",
    "properties": {"a": {"type": ["string", "null"]}},
    "required": ["a"],
    "additionalProperties": False,
}
MAP: JsonObject = {"type": "object", "additionalProperties": {"type": "string"}}


def test_strict_tools_and_answers_are_made_valid_and_each_change_is_reported() -> None:
    tools = (CustomTool("free"), FunctionTool("f", " ", OPEN, strict=True), FunctionTool("g", "G.", OPEN))
    request = Request("m", tools=tools, options=Options(format=SchemaFormat(OPEN, "response", strict=True)))
    for dialect, tool, output in (
        ("openai-responses", "/tools/1", "/text/format/schema"),
        ("openai-chat", "/tools/1/function", "/response_format/json_schema/schema"),
    ):
        report = Report()
        made = with_strict_schemas(request, dialect, report)
        assert made.tools == (tools[0], FunctionTool("f", "The tool f.", CLOSED, strict=True), tools[2])
        assert made.options.format == SchemaFormat(CLOSED, "response", strict=True)
        assert [each.pointer for each in report.additions] == [
            f"{tool}/parameters/properties/a",
            f"{tool}/parameters/additionalProperties",
            f"{tool}/description",
            f"{output}/properties/a",
            f"{output}/additionalProperties",
        ]
        assert report.losses == ()


def test_what_cannot_be_strict_is_not_and_that_is_a_loss() -> None:
    report = Report()
    tools = (FunctionTool("f", "F.", MAP, strict=True),)
    request = Request("m", tools=tools, options=Options(format=SchemaFormat(MAP, strict=True)))
    made = with_strict_schemas(request, "openai-chat", report)
    assert made.tools == (FunctionTool("f", "F.", MAP, strict=False),)
    assert made.options.format == SchemaFormat(MAP, strict=False)
    assert [(each.what, each.severity) for each in report.losses] == [("strict", "option")] * 2


def test_other_dialects_and_what_was_written_in_this_one_stay_as_they_are() -> None:
    request = Request("m", tools=(FunctionTool("f", None, None, strict=True),), options=Options(format=JsonFormat()))
    assert with_strict_schemas(request, "anthropic", Report()) is request
    own = Request("m", tools=request.tools, dialect="openai-chat")
    assert with_strict_schemas(own, "openai-chat", Report()) is own
    assert with_strict_schemas(request, "openai-chat", Report()).options.format == JsonFormat()


def test_a_description_that_is_there_stays() -> None:
    tool = FunctionTool("f", "F.", CLOSED, strict=True)
    report = Report()
    assert with_strict_schemas(Request("m", tools=(tool,)), "openai-chat", report).tools == (tool,)
    assert report.additions == ()
