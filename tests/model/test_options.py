import msgspec

from sightline.model.options import JsonFormat, Options, OutputFormat, PlainFormat, SchemaFormat


def test_an_option_that_is_not_set_is_not_there() -> None:
    assert msgspec.json.encode(Options(temperature=0, stop=())) == b'{"temperature":0,"stop":[]}'


def test_output_formats_are_told_apart() -> None:
    for output in (PlainFormat(), JsonFormat(), SchemaFormat({"type": "object"}, "n", "d", strict=True)):
        assert msgspec.json.decode(msgspec.json.encode(output), type=OutputFormat) == output
