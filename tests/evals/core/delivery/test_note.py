import msgspec

from sightline.evals.core.delivery.delivery import Note
from sightline.evals.core.suite import SuitePlace


def test_a_note_says_what_why_and_where() -> None:
    note = Note("moved", "a system message", "the policy is merge_all", SuitePlace("a.yaml", 3, 1))
    assert msgspec.json.decode(msgspec.json.encode(note), type=Note) == note
