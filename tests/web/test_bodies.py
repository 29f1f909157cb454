import pytest

from sightline.errors import Fault
from sightline.web.bodies import Query, one


def test_the_last_of_several_values_counts() -> None:
    assert one({"a": ["1", "2"]}, "a") == "2"
    assert one({}, "a") == ""


def test_a_query_is_read_by_name() -> None:
    query = Query("from=5&on=1&off=false&text=a%20b&empty=")
    assert (query.number("from", 0), query.number("limit", 7)) == (5, 7)
    assert (query.is_set("on"), query.is_set("off"), query.is_set("missing")) == (True, False, False)
    assert (query.text("text"), query.text("missing")) == ("a b", "")
    assert "empty" in query
    assert "missing" not in query


@pytest.mark.parametrize("text", ["-1", "x", "1.5", "²", "9" * 13])
def test_a_number_is_a_number(text: str) -> None:
    with pytest.raises(Fault) as caught:
        Query(f"n={text}").number("n", 0)
    assert (caught.value.status, caught.value.hint) == (400, "n is a whole number, 0 or more.")


def test_a_switch_is_on_or_off() -> None:
    with pytest.raises(Fault, match="cannot be"):
        Query("on=maybe").is_set("on")
