import json
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sightline.wire.secrets import (
    MASK,
    SHORTEST,
    Masking,
    Redaction,
    bytes_of,
    forms_of,
    parameters,
    redact_json,
    redact_text,
    secrets_of,
    spellings,
    without_scheme,
)

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


KEY = "sk-proj-0123456789"
SECRETS = st.lists(st.text(min_size=SHORTEST, max_size=20).filter(lambda text: MASK not in text), max_size=4)


@pytest.mark.parametrize(
    ("text", "secrets", "shown"),
    [
        (f"Incorrect API key provided: {KEY}.", (KEY,), f"Incorrect API key provided: {MASK}."),
        (f"{KEY}{KEY}", (KEY,), MASK + MASK),
        ("longer-key-2 and longer-key", ("longer-key", "longer-key-2"), f"{MASK} and {MASK}"),
        ("at /v1?key=a%2Fb%2Bc", ("a/b+c",), f"at /v1?key={MASK}"),
        (r'in {"key": "a\"b\\c"}', ('a"b\\c',), f'in {{"key": "{MASK}"}}'),
        (r"in b\u00fccher or bücher", ("bücher",), f"in {MASK} or {MASK}"),
        (r'in "a\/b\"c"', ('a/b"c',), f'in "{MASK}"'),
        ("nothing in it", (KEY,), "nothing in it"),
        ("a1 is too short to be a secret", ("a1", ""), "a1 is too short to be a secret"),
        ("none at all", (), "none at all"),
        ("a.c is no pattern for abcd", ("a.cd",), "a.c is no pattern for abcd"),
        ("lone \ud800 half", ("\ud800 ha",), f"lone {MASK}lf"),
    ],
)
def test_a_secret_is_not_repeated(text: str, secrets: tuple[str, ...], shown: str) -> None:
    assert redact_text(text, secrets) == shown


def test_json_is_masked_in_every_string_and_nowhere_else() -> None:
    told = {"message": f"bad key {KEY}", "param": None, KEY: [KEY, 1, True, {"deep": KEY}], "limit": 1.5}
    assert redact_json(told, (KEY,)) == {
        "message": f"bad key {MASK}",
        "param": None,
        MASK: [MASK, 1, True, {"deep": MASK}],
        "limit": 1.5,
    }
    assert redact_json(told, ()) is told


@given(st.text(), SECRETS, st.text())
def test_no_secret_survives(before: str, secrets: list[str], after: str) -> None:
    shown = redact_text(before + "".join(secrets) + after, secrets)
    left = shown.split(MASK)
    assert not [secret for secret in secrets for part in left if secret in part]


@given(st.text(min_size=SHORTEST).filter(str.isprintable))
@example("000%")
def test_nor_in_an_address(secret: str) -> None:
    assert redact_text(f"?key={quote(secret, safe='')}", [secret]) == f"?key={MASK}"


# A secret that begins with a quotation mark may be found across the one that begins the text.
@given(st.text(min_size=SHORTEST).filter(lambda text: not text.startswith('"')), st.booleans())
def test_no_secret_survives_in_json_text(secret: str, is_ascii: bool) -> None:
    assert redact_text(json.dumps(secret, ensure_ascii=is_ascii), [secret]) == f'"{MASK}"'


def test_headers_and_what_a_client_shows() -> None:
    hides = Redaction(["planted-1"])
    assert hides.headers((("X-Api-Key", "k"), ("x", "planted-1 https://me@host"))) == (
        ("X-Api-Key", MASK),
        ("x", f"{MASK} https://{MASK}@host"),
    )
    assert hides.words("https://me@host") == "https://me@host"
    assert Redaction([]).words("x") == "x"
    assert hides.masking().feed(b"planted-1.") == b"***."
    shown = secrets_of(
        (("Cookie", "a=cookie-111; b"), ("x-api-key", "api-key-222"), ("x", "other-333")), "key=query-%3444&a=1"
    )
    assert shown == ("query-%3444", "query-444", "cookie-111", "api-key-222")
    assert parameters("A%2Fb=1&&c") == [("a/b", "A%2Fb=1"), ("c", "c")]
    assert spellings(()) == ()
    assert b"abcd" in spellings(("abcd",))


def test_addresses() -> None:
    hides = Redaction(["planted-1"])
    assert hides.address("/v1/x", "") == "/v1/x"
    assert hides.address("/v1/x", "a=1&key=abc&b=planted-1") == f"/v1/x?a=1&key={MASK}&b={MASK}"


@given(st.lists(st.sampled_from([b"a", b"ab", b"abcde", b"abc", b"de", b"xyz", b"abcab"]), max_size=12))
def test_no_cut_lets_a_secret_through_and_nothing_else_changes(pieces: list[bytes]) -> None:
    masking = Masking(("abcde", "cabc"))
    out = b"".join(masking.feed(piece) for piece in pieces) + masking.close()
    data = b"".join(pieces)
    assert b"abcde" not in out
    assert b"cabc" not in out
    if b"abcde" not in data and b"cabc" not in data:
        assert out == data
        assert not masking.has_found


def test_what_may_have_begun_a_secret_is_shown_at_the_end() -> None:
    masking = Masking(("abcde",))
    assert masking.feed(b"x abc") == b"x "
    assert masking.close() == b"abc"
    assert masking.close() == b""
    assert not masking.has_found


def test_pieces_that_are_looked_at_together_are_shown_as_one_after_another() -> None:
    pieces = [b"data: ab\n", b"data: c\n"]
    assert Masking(()).feed_all(pieces) is pieces
    masking = Masking(("abcde",))
    assert masking.feed_all([]) == []
    assert masking.feed_all(pieces) is pieces
    assert masking.feed_all(pieces[:1]) is not pieces
    assert masking.feed_all([b"x abcde\n", b"y\n"]) == [b"x ***\n", b"y\n"]
    assert masking.feed_all([b"x\n", b"abc", b""]) == [b"x\n", b"", b""]
    assert masking.feed_all([b"d", b"e\n"]) == [b"", b"***\n"], "what was held back goes on"


def test_without_secrets_nothing_is_looked_at() -> None:
    data = b"data"
    assert Masking(("abc",)).feed(data) is data
    assert [Masking(secrets).has_secrets for secrets in ((), ("abc",), ("abcde",))] == [False, False, True]


def test_raw_headers_are_decoded_and_secrets_in_them_masked() -> None:
    redaction = Redaction(["sk-configured-key"])
    assert redaction.raw_headers(()) == ()
    plain = ((b"x-plain-one", b"1"), (b"x-plain-two", b"caf\xe9"))
    assert redaction.raw_headers(plain) == (("x-plain-one", "1"), ("x-plain-two", "café"))
    named = ((b"x-plain-three", b"1"), (b"set-cookie", b"a=b"))
    assert redaction.raw_headers(named) == redaction.headers((("x-plain-three", "1"), ("set-cookie", "a=b")))
    echoed = ((b"x-plain-one", b"the sk-configured-key"), (b"x-plain-two", b"2"))
    assert redaction.raw_headers(echoed) == (("x-plain-one", f"the {MASK}"), ("x-plain-two", "2"))
