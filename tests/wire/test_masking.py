import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.wire.secrets import MASK, SHORTEST, redact_json, redact_text

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
def test_nor_in_an_address(secret: str) -> None:
    assert redact_text(f"?key={quote(secret, safe='')}", [secret]) == f"?key={MASK}"


# A secret that begins with a quotation mark may be found across the one that begins the text.
@given(st.text(min_size=SHORTEST).filter(lambda text: not text.startswith('"')), st.booleans())
def test_nor_in_json_that_is_told_as_text(secret: str, is_ascii: bool) -> None:
    assert redact_text(json.dumps(secret, ensure_ascii=is_ascii), [secret]) == f'"{MASK}"'
