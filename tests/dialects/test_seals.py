from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.signatures import NEXT, unwrap, wrap

names = st.sampled_from(("anthropic", "gemini", "openai-responses"))
ids = st.none() | st.from_regex(r"[a-zA-Z0-9_]+", fullmatch=True)


def test_a_seal_of_the_readers_own_provider_is_as_it_stands() -> None:
    assert unwrap("EqQBCkYIB", "anthropic") == ("EqQBCkYIB", "anthropic", None)


@given(signature=st.none() | st.text(min_size=1), signed_by=names, item=ids, reader=names)
def test_a_foreign_seal_comes_back_with_its_maker(
    signature: str | None, signed_by: str, item: str | None, reader: str
) -> None:
    assert unwrap(wrap(signature, signed_by, item), reader) == (signature, signed_by, item)


def test_a_seal_can_belong_to_the_part_that_follows() -> None:
    assert unwrap(wrap("s", "gemini", NEXT), "anthropic") == ("s", "gemini", NEXT)
