import pytest

from sightline.errors import Fault
from sightline.evals.core.glob import compile_glob, is_glob


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("**/*.instructions.md", "a.instructions.md", True),
        ("**/*.instructions.md", "x/y/a.instructions.md", True),
        ("**/*.instructions.md", "x/a.md", False),
        ("*.md", "x/a.md", False),
        ("./*.md", "a.md", True),
        ("docs/**", "docs/a/b.md", True),
        ("a**b", "a/x/b", True),
        ("x/**/y.md", "x/y.md", True),
        ("x/**/y.md", "x/a/b/y.md", True),
        ("?.md", "a.md", True),
        ("?.md", "/.md", False),
        ("[a-c]*.md", "b1.md", True),
        ("[!a-c].md", "b.md", False),
        ("[!a-c].md", "d.md", True),
        ("[]x].md", "].md", True),
        ("*.{md,txt}", "a.txt", True),
        ("{**/a,b}.md", "x/a.md", True),
        ("*.{md,txt}", "a.rst", False),
        ("a,b}.md", "a,b}.md", True),
        ("a.md", "aXmd", False),
    ],
)
def test_a_pattern_matches_whole_paths(pattern: str, path: str, fits: bool) -> None:
    assert bool(compile_glob(pattern).fullmatch(path)) == fits


@pytest.mark.parametrize("pattern", ["", " ", "[a", "{a", "/a", "../a", "a\\b", "[!]", "[z-a]", "x" * 501])
def test_a_pattern_that_makes_no_sense_is_refused(pattern: str) -> None:
    with pytest.raises(Fault) as caught:
        compile_glob(pattern)
    assert caught.value.hint


def test_patterns_are_told_from_paths() -> None:
    assert is_glob("a/*.md")
    assert not is_glob("a/b.md")
