import msgspec

from sightline.evals.core.reading.files import Need, SuiteReading


def test_a_need_names_a_file_and_what_is_wanted_of_it() -> None:
    assert Need("a.md").wanted == "content"
    assert msgspec.json.encode(Need("cases", "listing")) == b'{"path":"cases","wanted":"listing"}'


def test_a_reading_may_have_no_suite() -> None:
    assert SuiteReading().suite is None
