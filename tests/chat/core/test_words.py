"""What pairs say, remembered until they say something else."""

from sightline.chat.core.pair import MessagePair, text_answer
from sightline.chat.core.pair_words import PairWords


def test_a_question_and_its_answer_are_one_text_in_small_letters() -> None:
    pair = MessagePair(id="p", user_text="Why BLUE?", answer=text_answer("Σκέψου."))
    assert PairWords().of(pair) == "why blue?\nσκέψου."


def test_a_pair_that_has_changed_is_read_anew() -> None:
    words = PairWords()
    before, after = MessagePair(id="p", user_text="red"), MessagePair(id="p", user_text="blue")
    assert words.hold("red", before)
    assert words.hold("red", before)
    assert not words.hold("red", after)
    assert words.hold("blue", after)


def test_what_is_known_is_not_read_again() -> None:
    words, pair = PairWords(), MessagePair(id="p", user_text="red")
    assert words.of(pair) is words.of(pair)
