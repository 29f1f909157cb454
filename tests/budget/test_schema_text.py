from sightline.budget.schema_text import declaration, declarations
from sightline.model.json import Json
from sightline.model.tools import FunctionTool

WEATHER = FunctionTool(
    name="get_weather",
    description="Say how the weather is.\nOnly for places on land.",
    schema={
        "type": "object",
        "properties": {
            "place": {"type": "string", "description": "A town"},
            "unit": {"enum": ["celsius", "fahrenheit"], "default": "celsius"},
            "days": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["place"],
    },
)


def test_functions_are_declared_as_types() -> None:
    assert declarations((WEATHER, FunctionTool(name="now"))) == (
        "namespace functions {\n\n"
        "// Say how the weather is.\n// Only for places on land.\n"
        "type get_weather = (_: {\n"
        "// A town\n"
        "place: string,\n"
        'unit?: "celsius" | "fahrenheit", // default: "celsius"\n'
        "days?: number[],\n"
        "}) => any;\n\n"
        "type now = () => any;\n\n"
        "} // namespace functions"
    )


def check(schema: dict[str, Json], declared: str) -> None:
    assert declaration(schema) == declared


def test_each_kind_of_schema_has_a_type() -> None:
    check({"type": "boolean"}, "boolean")
    check({"type": ["string", "null"]}, "string | null")
    check({"type": "object"}, "object")
    check({"type": "array"}, "any[]")
    check({"type": "number"}, "number")
    check({}, "any")
    check({"type": "of-2031"}, "any")
    check({"const": "é"}, '"é"')
    check({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "string | number")
    check({"oneOf": [{"type": "null"}, True]}, "null | any")
    check({"allOf": [{"type": "object", "properties": {"a": True}}]}, "{\na?: any,\n}")
    check({"type": "object", "properties": {"a": {"type": "string"}}, "required": "a"}, "{\na?: string,\n}")
    check({"type": "object", "properties": [1]}, "object")


def test_references_are_followed() -> None:
    check({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}, "string")
    check({"$ref": "#/$defs/missing/deeper", "$defs": {"a": 1}}, "any")
    check({"$ref": "#/$defs/a/b", "$defs": {"a": 1}}, "any")


def test_a_schema_that_holds_itself_comes_to_an_end() -> None:
    items: dict[str, Json] = {"type": "array", "items": {"$ref": "#"}}
    declared = declaration(items)
    assert declared == "any" + declared.count("[]") * "[]"
    assert declared.count("[]") > 3


def test_a_schema_that_holds_itself_many_times_does_not_explode() -> None:
    node: dict[str, Json] = {"type": "object", "properties": {letter: {"$ref": "#"} for letter in "abcdefgh"}}
    assert len(declaration(node)) < 20_000
