import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.evals.core.reading.document import Node
from sightline.evals.core.reading.yaml_edit import in_flow, inline, is_block, item_lines, write_yaml
from sightline.evals.core.reading.yaml_text import read_yaml
from sightline.model.json import Json

SCALARS = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20) | st.text(alphabet="ab \n:#-|'\"\t", max_size=20)
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS | TEXTS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=8
)


def meant(text: str) -> Json:
    node = read_yaml(text.encode(), "a.yaml")
    assert isinstance(node, Node), (text, node)
    return node.json


@given(VALUES)
def test_what_is_written_is_read_as_it_was(value: Json) -> None:
    header, body = write_yaml(value)
    assert meant("\n".join([f"key: {header}", *body, "next: 1"])) == {"key": value, "next": 1}
    assert meant(f"key: {inline(value)}") == {"key": value}
    assert meant(f"[{in_flow(value)}, 1]") == [value, 1]
    first, rest = item_lines(value)
    assert meant("\n".join([f"- {first}", *rest, "- 1"])) == [value, 1]


def test_people_would_write_it_so() -> None:
    value: Json = {
        "id": "a case",
        "input": [{"role": "user", "content": "one\ntwo\n"}],
        "count": 1,
        "empty": [],
        "on": "yes",
    }
    assert "\n".join(write_yaml(value).body) == (
        "  id: a case\n"
        "  input:\n"
        "    - role: user\n"
        "      content: |\n"
        "        one\n"
        "        two\n"
        "  count: 1\n"
        "  empty: []\n"
        '  "on": "yes"'
    )


@pytest.mark.parametrize("text", ["one line", " a\nb", "a\n\n", "\n\n", "a\r\nb", "a\u2028\nb"])
def test_what_a_literal_block_would_bend_is_quoted(text: str) -> None:
    assert not is_block(text)
    assert meant(f"key: {write_yaml(text).header}") == {"key": text}
