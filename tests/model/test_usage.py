import msgspec

from sightline.model.usage import Usage


def test_zero_is_a_count_and_absence_is_not() -> None:
    assert msgspec.json.encode(Usage(input_tokens=0)) == b'{"input_tokens":0}'
