import msgspec

from sightline.model.usage import Usage, possible


def test_zero_is_a_count_and_absence_is_not() -> None:
    assert msgspec.json.encode(Usage(input_tokens=0)) == b'{"input_tokens":0}'


def test_counts_that_cannot_be_are_left_out() -> None:
    usage = Usage(input_tokens=10**13, output_tokens=5, cached_tokens=-1, extras={"a": 1})
    assert possible(usage) == Usage(output_tokens=5)
    assert possible(Usage(input_tokens=3)) == Usage(input_tokens=3)
    assert possible(None) is None
    assert possible(Usage(input_tokens=0, output_tokens=5)) == Usage(output_tokens=5)
