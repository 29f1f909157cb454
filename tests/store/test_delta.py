from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.store.delta import DEEPEST, LEAST_SIZE, Codec, common_ends, may_share
from tests.store.traffic import sha256

CODEC = Codec()
HISTORY = b'{"messages":[' + b'{"role":"user","content":"words"},' * 400 + b'],"tools":["many"]}'


def slowly(old: bytes, new: bytes) -> tuple[int, int]:
    most = min(len(old), len(new))
    prefix = next((n for n in range(most) if old[n] != new[n]), most)
    most -= prefix
    return prefix, next((n for n in range(most) if old[-1 - n] != new[-1 - n]), most)


@given(st.binary(max_size=40), st.binary(max_size=40), st.binary(max_size=40), st.binary(max_size=40))
def test_what_two_bodies_share_is_what_a_patient_reader_finds(head: bytes, old: bytes, new: bytes, tail: bytes) -> None:
    assert common_ends(head + old + tail, head + new + tail) == slowly(head + old + tail, head + new + tail)


@pytest.mark.parametrize("at", [0, 1, 65_535, 65_536, 65_537, 131_072, 199_999])
def test_one_changed_byte_is_found_wherever_it_stands(at: int) -> None:
    old = bytes(200_000)
    assert common_ends(old, old[:at] + b"x" + old[at + 1 :]) == (at, 199_999 - at)


@given(st.binary(max_size=9000), st.binary(max_size=9000))
def test_a_change_is_undone(base: bytes, body: bytes) -> None:
    for each in (body, base + body, body + base, base):
        coded = CODEC.best(each, [("b", base, 0)])
        assert CODEC.restore(coded, base if coded.base else b"") == each


def test_a_longer_history_is_stored_as_what_is_new() -> None:
    grown = HISTORY.replace(b"],", b'{"role":"user","content":"one more"},],')
    coded = CODEC.best(grown, [("old", HISTORY, 4)])
    assert (coded.base, coded.depth) == ("old", 5)
    assert len(coded.data) < 100


def test_the_base_is_the_one_that_the_body_grew_from() -> None:
    bases = [("side", b'{"messages":[' + b"x" * 9000, 0), ("own", HISTORY, 0), ("older", HISTORY[:5000], 0)]
    assert CODEC.best(HISTORY[:-2] + b"!]}", bases).base == "own"


@pytest.mark.parametrize(
    ("body", "depth"),
    [
        pytest.param(HISTORY, DEEPEST, id="too many steps"),
        pytest.param(b"nothing of it " * 900, 0, id="nothing in common"),
        pytest.param(HISTORY[: LEAST_SIZE - 1], 0, id="too small to matter"),
    ],
)
def test_a_body_stands_alone_where_a_change_gains_nothing(body: bytes, depth: int) -> None:
    assert CODEC.best(body, [("old", HISTORY, depth)]) == CODEC.whole(body)
    assert CODEC.against(b"nothing of it" * 900, HISTORY, "old", 0).base == ""


def test_bodies_that_begin_or_end_alike_may_share() -> None:
    assert may_share(HISTORY, HISTORY + b"more")
    assert may_share(HISTORY, b"other" + HISTORY)
    assert not may_share(HISTORY, b"x" + HISTORY + b"x")
    assert not may_share(HISTORY, HISTORY[:100])


def test_a_chain_is_read_step_by_step() -> None:
    bodies = [HISTORY + b"." * n for n in range(DEEPEST + 4)]
    coded = [CODEC.whole(bodies[0])]
    for before, body in pairwise(bodies):
        coded.append(CODEC.best(body, [(sha256(before), before, coded[-1].depth)]))
    read = b""
    for step, body in zip(coded, bodies, strict=True):
        read = CODEC.restore(step, read)
        assert read == body
    assert max(step.depth for step in coded) == DEEPEST
    assert coded[DEEPEST + 1].base == ""
