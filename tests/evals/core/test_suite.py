"""Suites as values."""

import msgspec

from sightline.evals.core.suite import Case, CaseMessage, FileSegment, Suite, TextSegment


def test_a_suite_is_read_back_as_it_was_written() -> None:
    message = CaseMessage(role="user", segments=(TextSegment("look"), FileSegment("a.md", "docs/a.md")))
    suite = Suite(name="s", cases=(Case(id="a", messages=(message,)),))
    assert msgspec.json.decode(msgspec.json.encode(suite), type=Suite) == suite
