import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.json import Json
from sightline.store.digest_reader import RequestLayout, count_same, lay_out, lay_out_next

FIRST, SECOND, THIRD = '{"text":"one"}', '{"text":"two, [2]"}', '"three"'


def written(*items: str, before: str = '"model":"m",', after: str = ',"tools":[1]') -> bytes:
    return f'{{{before}"messages":[{",".join(items)}]{after}}}'.encode()


def contents(layout: RequestLayout) -> tuple[list[bytes], dict[str, Json]]:
    members = {**layout.before, **layout.after}
    return [layout.body[a:b] for a, b in layout.spans], {name: json.loads(raw) for name, raw in members.items()}


def lay_out_behind(old: bytes, new: bytes) -> tuple[RequestLayout, int]:
    known = lay_out(old, "messages")
    assert known is not None
    found = lay_out_next(known, new, "messages")
    assert found is not None
    return found


def test_items_and_other_members_are_told_apart() -> None:
    layout = lay_out(written(FIRST, f" {SECOND} ", THIRD), "messages")
    assert layout is not None
    assert contents(layout) == ([each.encode() for each in (FIRST, SECOND, THIRD)], {"model": "m", "tools": [1]})
    assert layout.body[layout.end :] == b',"tools":[1]}'
    assert json.loads(layout.items(1)) == [{"text": "two, [2]"}, "three"]


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"messages":[]}',
        b'{"messages":"hi"}',
        b'{"messages":[1',
        b"[1]",
        b'{"a":{"messages":[1]},"messages":[1]}',  # the first of these lists is part of another member
    ],
)
def test_what_has_no_list_for_certain_has_no_layout(body: bytes) -> None:
    assert lay_out(body, "messages") is None


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        (written(FIRST), written(FIRST, SECOND), 1),
        (written(FIRST, SECOND), written(FIRST, SECOND, THIRD), 2),
        (written(FIRST, SECOND), written(FIRST, SECOND), 1),
        (written(FIRST, SECOND, THIRD), written(FIRST, SECOND), 1),
        (written(FIRST, SECOND, THIRD), written(FIRST, THIRD), 1),
        (written(FIRST, SECOND), written(FIRST, SECOND, THIRD, after=""), 2),
        (written(FIRST, SECOND, after=""), written(FIRST, SECOND, THIRD, after=', "tools":[2]'), 2),
        (written(FIRST, "12"), written(FIRST, "123", THIRD), 1),
        (written(FIRST, " " + SECOND), written(FIRST, " " + SECOND + " ", THIRD), 1),
    ],
)
def test_a_body_that_begins_like_another_is_laid_out_as_if_it_were_new(old: bytes, new: bytes, count: int) -> None:
    layout, known = lay_out_behind(old, new)
    whole = lay_out(new, "messages")
    assert whole is not None
    assert contents(layout) == contents(whole)
    assert (known, layout.spans, layout.end) == (count, whole.spans, whole.end)
    again = lay_out_behind(new, written(FIRST, SECOND, THIRD, THIRD))[0]
    assert contents(again)[0] == [each.encode() for each in (FIRST, SECOND, THIRD, THIRD)]


@pytest.mark.parametrize(
    "new",
    [
        written(FIRST, after=',"messages":[2]'),  # the later list counts
        written(FIRST, SECOND)[:-4],
        written(FIRST, after="").replace(b"]", b""),
    ],
)
def test_what_only_the_whole_body_tells_is_left_to_it(new: bytes) -> None:
    known = lay_out(written(FIRST), "messages")
    assert known is not None
    assert lay_out_next(known, new, "messages") is None


def test_a_member_that_comes_again_behind_the_list_counts() -> None:
    layout = lay_out(written(FIRST, after=',"model":"n"'), "messages")
    assert layout is not None
    assert contents(layout)[1] == {"model": "n"}
    assert contents(lay_out_behind(layout.body, written(FIRST, SECOND, after=""))[0])[1] == {"model": "m"}


def test_items_that_are_the_same_elsewhere_are_counted() -> None:
    one, other = lay_out(written(FIRST, SECOND), "messages"), lay_out(written(FIRST, THIRD, before=""), "messages")
    assert one is not None
    assert other is not None
    assert (count_same(one, other), count_same(one, one)) == (1, 2)


VALUES = st.sampled_from([FIRST, SECOND, THIRD, "12", "123", '{"text":"one","mark":1}', "[]"])
TAILS = st.sampled_from(["", ',"tools":[1]', ',"tools":[1,2]', ',"model":"n"', ',"messages":[3]', " "])


@given(st.lists(VALUES, max_size=4), TAILS, st.lists(VALUES, max_size=5), TAILS)
def test_any_body_is_laid_out_as_if_it_were_new(old: list[str], ended: str, new: list[str], ends: str) -> None:
    known = lay_out(written(FIRST, *old, after=ended), "messages")
    body = written(FIRST, *new, after=ends)
    if known is None or not body.startswith(known.body[: known.spans[0][1]]):
        return  # the last list counts, and its items stand elsewhere
    if (found := lay_out_next(known, body, "messages")) is not None:
        whole = lay_out(body, "messages")
        assert whole is not None
        assert (contents(found[0]), found[0].spans) == (contents(whole), whole.spans)
