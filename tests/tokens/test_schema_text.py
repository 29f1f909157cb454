from sightline.model.json import Json
from sightline.model.tools import FunctionTool
from sightline.tokens.estimator import LONGEST, declaration, declarations

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


def test_a_type_that_is_named_twice_is_written_once() -> None:
    check({"type": ["string", "string", "null"]}, "string | null")
    check({"type": [["string"], {}]}, "any")
    nested: Json = {"type": "string"}
    for _ in range(14):
        nested = {"type": ["object"] * 4, "properties": {"a": nested}}
    assert isinstance(nested, dict)
    assert len(declaration(nested)) < 1000


def test_long_texts_in_a_schema_that_holds_itself_are_written_so_often_and_no_more() -> None:
    about = "lorem ipsum dolor " * 3_000
    for more in ({"description": about}, {"default": about}):
        member: Json = {"$ref": "#", **more}
        node: dict[str, Json] = {"type": "object", "properties": dict.fromkeys("abcd", member)}
        assert len(declaration(node)) < LONGEST + 2 * len(about)
    for leaf in ({"enum": [about]}, {"const": about}):
        root: dict[str, Json] = {"anyOf": [{"$ref": "#/$defs/a"}] * 150, "$defs": {"a": leaf}}
        assert len(declaration(root)) < LONGEST + 2 * len(about)


def test_all_functions_of_a_request_have_one_such_measure() -> None:
    about = "lorem ipsum dolor " * 30_000
    schema: dict[str, Json] = {"properties": {"a": {"description": about}, "b": {"type": "string"}}}
    written = declarations(tuple(FunctionTool(name=f"f{number}", schema=schema) for number in range(9)))
    assert len(written) < LONGEST + 2 * len(about)
    assert "type f8 = () => any;" in written


def test_a_schema_with_very_many_members_is_written_at_once() -> None:
    names = [f"n{number}" for number in range(30_000)]
    wide: dict[str, Json] = {"type": "object", "properties": dict.fromkeys(names, True), "required": [*names, 7, []]}
    assert declaration(wide).count(": any,") == 30_000
