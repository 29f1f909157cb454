import base64
import datetime
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from sightline.agent.core.output import ToolOutcome, text_outcome
from sightline.agent.tools.functions import failure_of, last_line, outcome_of, part_of
from sightline.model.parts import Audio, Document, Image, Inline, Text

PNG = b"\x89PNG\r\n\x1a\n rest"


@dataclass
class Size:
    width: int
    height: int


class Box(msgspec.Struct):
    size: Size
    made: datetime.date


class Figure:
    def _repr_png_(self) -> bytes:
        return PNG


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        ("words", text_outcome("words")),
        (None, ToolOutcome()),
        (True, text_outcome("true")),
        ([1, "é"], text_outcome('[1,"é"]')),
        ({"a": {1: None}}, ToolOutcome(structured={"a": {"1": None}})),
        (Size(1, 2), ToolOutcome(structured={"width": 1, "height": 2})),
        (
            Box(Size(1, 2), datetime.date(2026, 1, 2)),
            ToolOutcome(structured={"size": {"width": 1, "height": 2}, "made": "2026-01-02"}),
        ),
        ({"path": Path("a/b")}, ToolOutcome(structured={"path": "a/b"})),
        (b"plain", text_outcome("plain")),
        (bytearray(b"<svg/>"), text_outcome("<svg/>")),
        (text_outcome("as it is", is_error=True), text_outcome("as it is", is_error=True)),
    ],
)
def test_what_a_function_returns(value: object, outcome: ToolOutcome) -> None:
    assert outcome_of(value) == outcome


def test_bytes_are_what_they_begin_like() -> None:
    coded = base64.b64encode(PNG).decode()
    assert outcome_of(PNG).parts == (Image(Inline("image/png", coded)),)
    assert outcome_of(Figure()).parts == (Image(Inline("image/png", coded)),)
    assert isinstance(outcome_of(b"%PDF-1.7").parts[0], Document)
    assert isinstance(outcome_of(b"RIFF....WAVE").parts[0], Audio)
    assert part_of(b"\x1f\x8b\x08") is None


def test_a_list_with_bytes_is_its_members() -> None:
    parts = outcome_of(["first:", PNG, {"a": 1}]).parts
    assert (parts[0], type(parts[1]), parts[2]) == (Text("first:"), Image, Text('{"a":1}'))


@pytest.mark.parametrize("value", [object(), Size, b"\x1f\x8b\x08", (n for n in range(3))])
def test_what_nobody_can_tell_a_model(value: object) -> None:
    with pytest.raises(TypeError, match=r"the tool returned|Encoding objects"):
        outcome_of(value)


def test_an_exception_is_told_with_the_last_line_of_its_own_file() -> None:
    def inner() -> None:
        int("x")

    with pytest.raises(ValueError) as caught:
        inner()
    error = caught.value
    line = last_line(error, __file__)
    told = failure_of(error, __file__, "mine.py").parts[0]
    elsewhere = failure_of(error, "/another/file.py", "file.py").parts[0]
    assert last_line(error, "/another/file.py") == 0
    assert told == Text(f"ValueError: invalid literal for int() with base 10: 'x' (mine.py, line {line}, in inner)")
    assert elsewhere == Text("ValueError: invalid literal for int() with base 10: 'x'")


def test_a_syntax_error_is_where_it_stands() -> None:
    with pytest.raises(SyntaxError) as caught:
        compile("\n\nx = (", "file.py", "exec")
    assert last_line(caught.value, "file.py") == 3
