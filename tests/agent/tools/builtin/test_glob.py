import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.agent.tools.builtin.listing import Glob
from sightline.errors import Fault


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("", "any/thing", True),
        ("*.py", "a.py", True),
        ("*.py", "deep/down/a.py", True),
        ("*.py", "a.pyc", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/deep/down/a.py", True),
        ("./src/**", "src/deep/a", True),
        ("**/test_?.py", "test_a.py", True),
        ("**/test_?.py", "tests/test_ab.py", False),
        ("*.{ts,js}", "a/b.js", True),
        ("{a,b}/*.{ts,js}", "b/x.ts", True),
        ("{a,b}/*.{ts,js}", "c/x.ts", False),
        ("a**b", "a_b", True),
        ("[ab].py", "a.py", False),
        ("[ab].py", "[ab].py", True),
    ],
)
def test_what_a_pattern_means(pattern: str, path: str, fits: bool) -> None:
    assert Glob(pattern).fits(path) is fits


def test_a_pattern_takes_no_longer_than_it_is_long() -> None:
    assert not Glob("*a" * 60 + "b").fits("a" * 5000)
    assert not Glob("**/a/" * 30 + "b").fits("a/" * 2000 + "c")


def test_too_many_alternatives_are_refused() -> None:
    with pytest.raises(Fault, match="too many patterns"):
        Glob("{a,b}" * 20)


@given(st.text("ab/*?{},.", max_size=12), st.text("ab/.", max_size=12))
def test_any_pattern_has_an_answer(pattern: str, path: str) -> None:
    assert Glob(pattern).fits(path) in (True, False)
