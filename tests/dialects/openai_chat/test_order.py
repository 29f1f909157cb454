import pytest

from sightline.dialects.openai_chat.choices import CALL, THOUGHT, WORDS, Order
from sightline.model.report import Report

WORDS_MOVED, THOUGHTS_MOVED = "order of words and calls", "order of reasoning and words"


@pytest.mark.parametrize(
    ("noted", "lost"),
    [
        ([(THOUGHT, 0), (THOUGHT, 1), (WORDS, 2), (WORDS, 3), (CALL, 4), (CALL, 5)], []),
        ([(CALL, 4), (WORDS, 2), (THOUGHT, 0)], []),
        ([(WORDS, 0), (CALL, 1), (WORDS, 2), (CALL, 3)], [("/2", WORDS_MOVED)]),
        ([(CALL, 1), (WORDS, 2), (WORDS, 3)], [("/2", WORDS_MOVED), ("/3", WORDS_MOVED)]),
        ([(WORDS, 0), (THOUGHT, 1)], [("/1", THOUGHTS_MOVED)]),
        ([(CALL, 0), (THOUGHT, 1)], [("/1", THOUGHTS_MOVED)]),
        ([(WORDS, 2), (CALL, 1)], [("/2", WORDS_MOVED)]),
    ],
)
def test_what_a_message_holds_elsewhere_is_a_loss_of_content(noted, lost):
    report = Report()
    order = Order(report)
    for rank, number in noted:
        order.note(rank, number, f"/{number}")
    assert [(loss.pointer, loss.what) for loss in report.losses] == lost
    assert {loss.severity for loss in report.losses} <= {"content"}
