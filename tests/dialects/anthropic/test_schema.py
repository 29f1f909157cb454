from typing import Any

from sightline.dialects.anthropic.options import any_open, close_objects, open_objects
from sightline.model.report import Report

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
    assert [addition.pointer for addition in report.additions] == [
        "/s/properties/a~1b/additionalProperties",
        "/s/properties/list/items/additionalProperties",
        "/s/additionalProperties",
    ]
    assert [(loss.pointer, loss.what, loss.severity) for loss in report.losses] == [
        ("/response_format", "other properties at /properties/map of the schema", "option")
    ]


def test_open_objects_are_found():
    assert list(open_objects(OPEN)) == ["/properties/a~1b", "/properties/map", "/properties/list/items", ""]
    assert any_open(OPEN)
    assert not any_open({"type": "object"})


def test_a_schema_that_is_nested_beyond_reason_is_left_alone_below():
    schema: Any = {"type": "object"}
    for _ in range(150):
        schema = {"type": "array", "items": schema}
    assert open_objects(schema) == {}
