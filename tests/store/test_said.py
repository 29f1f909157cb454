from sightline.store import reply_texts as module
from sightline.store.reply_texts import LONGEST, Overhearing, ReplyText


def test_what_was_said_is_taken_once() -> None:
    hearing = Overhearing()
    hearing.tell(ReplyText("x_1", "hello", "r_1"))
    assert hearing.take("x_2") is None
    assert hearing.take("x_1") == ReplyText("x_1", "hello", "r_1")
    assert hearing.take("x_1") is None


def test_long_words_are_left_to_be_read_later() -> None:
    hearing = Overhearing()
    hearing.tell(ReplyText("x_1", "a" * (LONGEST + 1)))
    assert hearing.take("x_1") is None


def test_what_nobody_takes_does_not_pile_up() -> None:
    hearing = Overhearing()
    for number in range(module._MOST + 1):
        hearing.tell(ReplyText(f"x_{number}", "hello"))
    assert hearing.take("x_0") is None
    assert hearing.take(f"x_{module._MOST}") is not None
