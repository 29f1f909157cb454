import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.wire.secrets import MASK, bytes_of, forms_of, without_scheme

KEY = 'sk-proj/0+Ab"c\\9'


def as_escape(character: str) -> str:
    halves = character.encode("utf-16-be").hex()
    return "".join(f"\\u{halves[at : at + 4]}" for at in range(0, len(halves), 4))


SPELLINGS = {
    "plain": lambda c: c,
    "json": lambda c: json.dumps(c)[1:-1],
    "slash": lambda c: "\\/" if c == "/" else json.dumps(c)[1:-1],
    "escape": as_escape,
    "upper": lambda c: as_escape(c).upper().replace("\\U", "\\u"),
    "nested": lambda c: json.dumps(as_escape(c))[1:-1],
    "percent": lambda c: "".join(f"%{octet:02x}" for octet in c.encode()),
    "quoted": lambda c: quote(c, safe=""),
}


def masked_in_pieces(data: bytes, size: int, secrets: tuple[str, ...]) -> bytes:
    known = bytes_of(secrets)
    assert known is not None
    held, out = b"", b""
    for at in range(0, len(data), size):
        data_, _ = known.mask(held + data[at : at + size])
        cut = known.begins_at(data_)
        out, held = out + data_[:cut], data_[cut:]
    return out + held


@given(
    st.lists(st.sampled_from(sorted(SPELLINGS)), min_size=len(KEY), max_size=len(KEY)),
    st.integers(1, 40),
    st.sampled_from([KEY, "bücher-😀-key-1", "0123456789abcdef"]),
)
def test_no_spelling_and_no_split_lets_a_secret_through(names: list[str], size: int, key: str) -> None:
    spelled = "".join(SPELLINGS[name](c) for name, c in zip(names * 2, key, strict=False))
    text = f'data: {{"error": "bad key {spelled}, 50% off"}}\n\n'
    shown = f'data: {{"error": "bad key {MASK}, 50% off"}}\n\n'
    forms = forms_of((key,))
    assert forms is not None
    assert forms.mask(text) == shown
    if key.isascii():  # halves of a pair that come apart are found once they are together
        assert masked_in_pieces(text.encode(), size, (key,)) == shown.encode()


@pytest.mark.parametrize("name", sorted(SPELLINGS))
@pytest.mark.parametrize("key", [KEY, "line\nbreak\tkey", "bücher-key"])
def test_each_spelling_is_masked(name: str, key: str) -> None:
    forms = forms_of((key,))
    assert forms is not None
    assert forms.mask(f"<{''.join(map(SPELLINGS[name], key))}>") == f"<{MASK}>"


@given(st.binary(max_size=60), st.integers(1, 9))
def test_what_holds_no_secret_comes_through_as_it_is(data: bytes, size: int) -> None:
    assert masked_in_pieces(data, size, ("a-key-that-is-not-there",)) == data


def test_bytes_are_held_back_only_where_a_secret_may_have_begun() -> None:
    known = bytes_of(("sk-abcdef",))
    assert known is not None
    assert known.begins_at(b"") == 0
    assert known.begins_at(b"the end\n\n") == 9
    assert known.begins_at(b"say sk-abc") == 4
    assert known.begins_at(b"say \\u0073k-abc") == 4
    assert known.begins_at(b"say %73k") == 4
    assert known.begins_at(b"100% of it") == 10
    assert known.begins_at(b"a new \\u00") == 6
    assert known.begins_at(b"a\\\\b\\nd") == 7
    assert known.mask(b"\\u003cb\\u003e") == (b"\\u003cb\\u003e", False)
    assert known.mask(b"it is \\u0073k-abcdef") == (b"it is ***", True)


def test_short_values_are_no_secrets() -> None:
    assert forms_of(("abc", "")) is None
    assert bytes_of(()) is None


def test_a_variable_that_is_no_text_is_found_as_well() -> None:
    for secret, raw in (("caf\udce9-key", b"caf\xe9-key"), ("half-\ud800-key", b"half-\xed\xa0\x80-key")):
        known = bytes_of((secret,))
        assert known is not None
        assert known.mask(b"<" + raw + b">") == (b"<***>", True)


def test_the_word_before_a_credential_is_none_of_it() -> None:
    assert without_scheme(" Bearer abc ") == "abc"
    assert without_scheme("abc") == "abc"


def test_without_secrets_there_is_nothing_to_look_for() -> None:
    for find in (forms_of, bytes_of):
        find.cache_clear()  # another test may have asked before
        assert find(()) is None
