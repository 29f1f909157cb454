from collections.abc import Iterator, Mapping

from sightline.evals.core.delivery.attachment import Guidelines
from sightline.evals.core.suite import CaseMessage, FileSegment, TextSegment
from sightline.model.message import Message
from sightline.model.parts import Text

PATTERNS = ("**/*.instructions.md",)
FILES = {"x/a.instructions.md": b"Be kind.\r\n", "b.md": b"B", "p.instructions.md": b"\x89PNG\r\n\x1a\n"}


def message(*paths: str, folder: str = "") -> CaseMessage:
    return CaseMessage(role="user", segments=tuple(FileSegment(path, folder + path) for path in paths))


def test_files_that_a_pattern_names_are_taken_once() -> None:
    said = [message("a.instructions.md", "b.md", folder="x/"), message("a.instructions.md", folder="x/")]
    found = Guidelines(said, FILES, PATTERNS, "xml")
    assert [each.path for each in found.segments] == ["a.instructions.md"]
    assert found.text == '[[ ## Guidelines ## ]]\n\n<file path="a.instructions.md">\nBe kind.\n</file>'
    assert FileSegment("whatever", "x/a.instructions.md") in found
    assert FileSegment("b.md", "b.md") not in found


def test_the_place_where_a_file_lies_counts_as_well() -> None:
    found = Guidelines([message("a.instructions.md", folder="x/")], FILES, ("x/**",), "seed")
    assert found.text == "[[ ## Guidelines ## ]]\n\n=== a.instructions.md ===\nBe kind.\n"


def test_without_patterns_or_words_there_are_none() -> None:
    assert Guidelines([message("a.instructions.md", folder="x/")], FILES, (), "xml").text == ""
    assert Guidelines([message("p.instructions.md")], FILES, PATTERNS, "xml").text == ""
    assert Guidelines([message("gone.instructions.md")], FILES, PATTERNS, "xml").text == ""
    reply = Message("assistant", (Text("x"),))
    texts = CaseMessage(role="user", segments=(TextSegment("x"),))
    assert Guidelines([reply, texts], FILES, PATTERNS, "xml").segments == ()


class Counted(Mapping[str, bytes]):
    """Files that count how often they are asked for."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.count = 0

    def __getitem__(self, key: str) -> bytes:
        self.count += 1
        return self.files[key]

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("nobody searches all files")

    def __len__(self) -> int:
        return len(self.files)


def test_a_file_is_looked_up_and_never_searched_for() -> None:
    files = Counted({f"{n}.instructions.md": b"x" for n in range(50)})
    Guidelines([message(*files.files)], files, PATTERNS, "xml")
    assert files.count <= 2 * 50
