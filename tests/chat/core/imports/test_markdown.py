import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.chat.core.imports.formats import escape, is_markdown, read_markdown


def read(text: str) -> list[tuple[str, str]]:
    return [(pair.user_text, pair.assistant_text) for pair in read_markdown(text).fact.pairs]


@pytest.mark.parametrize(
    "text",
    [
        "## User\nWhy?\n## Assistant\nSo.",
        "### User\n\nWhy?\n\n### Assistant\n\nSo.\n",
        "**User:** Why?\n\n**Assistant:** So.",
        "**Human**: Why?\n__Claude__:\nSo.",
        "User: Why?\nAssistant: So.",
        "You said:\nWhy?\nChatGPT said:\nSo.",
        "#### You said:\r\nWhy?\r\n##### ChatGPT said:\r\nSo.\r\n",
        "## 🧑 User\nWhy?\n## 🤖 AI\nSo.",
        "### User\n```\nWhy?\n```\n### Assistant\n```\nSo.\n```",
    ],
)
def test_speaker_labels_are_recognized_in_every_common_format(text: str) -> None:
    assert is_markdown(text)
    assert read(text) == [("Why?", "So.")]


def test_what_is_fenced_off_is_not_looked_into() -> None:
    text = "User: Fix it\n~~~~\nAssistant: no\n~~~\nUser: no\n~~~~\nplease\nAssistant: So."
    assert read(text) == [("Fix it\n~~~~\nAssistant: no\n~~~\nUser: no\n~~~~\nplease", "So.")]


def test_code_that_ends_an_answer_keeps_its_fences() -> None:
    text = "User: Code?\nAssistant:\n```py\nx = 1\n```\nUser: More?\nAssistant:\n```\na\n```\nand\n```\nb\n```"
    assert [said for _, said in read(text)] == ["```py\nx = 1\n```", "```\na\n```\nand\n```\nb\n```"]


def test_the_title_is_the_topic() -> None:
    assert read_markdown("# My talk\n\nintro\n# Second\nUser: Why?", "file").fact.topics[0].name == "file"
    assert read_markdown("# My talk\n\n# Second\nUser: Why?").fact.topics[0].name == "My talk"
    assert read_markdown("User: Why?").fact.topics[0].name == "Markdown"


def test_a_backslash_that_escapes_nothing_stays() -> None:
    assert read("User: x\n\\alpha\n\\## User\n\\\\# T") == [("x\n\\alpha\n## User\n\\# T", "")]


def test_what_is_fenced_off_and_never_ends_does_not_take_the_rest_with_it() -> None:
    asked = "```py\nx = 1"
    assert escape(asked) == "````\n```py\nx = 1\n````"
    assert read(f"### User\n\n{escape(asked)}\n\n### Assistant\n\nSo.") == [(asked, "So.")]
    assert escape("~~~\nx") == "```\n~~~\nx\n```"


@pytest.mark.parametrize("said", ["```\nx = 1\n```\n", "\n```\nx = 1\n```", "   ~~~\nx = 1\n~~~"])
def test_an_answer_that_is_only_code_keeps_its_fences_beside_blank_lines(said: str) -> None:
    assert read(f"### User\n\nCode?\n\n### Assistant\n\n{escape(said)}\n\n") == [("Code?", said)]


def test_text_without_speaker_labels_is_not_a_conversation() -> None:
    assert not is_markdown("# A text\n\nabout something")
    assert read("## User\n\n## Assistant\nSo.") == [("", "So.")]


LINES = [
    "User: x", "## Assistant", "# Title", "\\", "\\# x", "**AI:**", "plain", "", "  indented", "Stars: 1", "~~~",
    "## T — m — 2027-01-01", "\\\\", "```", "````py", "\\alpha",
]  # fmt: skip
texts = (
    st.lists(st.sampled_from(LINES), min_size=1, max_size=6).map(lambda lines: "\n".join(lines).strip()).filter(bool)
)


@given(texts, texts)
def test_what_is_written_safely_is_read_again_as_it_was(asked: str, said: str) -> None:
    assert read(f"### User\n\n{escape(asked)}\n\n### Assistant\n\n{escape(said)}\n") == [(asked, said)]


def test_a_long_text_is_not_gone_through_for_each_of_its_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"## User\nquestion {number}\n## Assistant\nanswer\n" for number in range(500))
    hashed: list[int] = []
    sha256 = hashlib.sha256

    def counted(data: bytes) -> "hashlib._Hash":
        hashed.append(len(data))
        return sha256(data)

    monkeypatch.setattr(hashlib, "sha256", counted)
    assert len(read_markdown(text).fact.pairs) == 500
    assert sum(hashed) < 10 * len(text)
