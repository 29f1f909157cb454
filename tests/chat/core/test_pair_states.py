import pytest

from sightline.chat.core.facts import (
    AnswerSwapped,
    PairAnswered,
    PairAsked,
    PairCancelled,
    PairEdited,
    PairFailed,
    PairReasked,
    PairsFlagged,
    PairsHandled,
    PairsMoved,
    PairsStarred,
    RunJoined,
    apply_mark,
    pair_after,
)
from sightline.chat.core.history import ChatHistory
from sightline.chat.core.pair import ChatAnswer, MessagePair, Trouble, text_answer
from sightline.errors import Fault
from sightline.model.parts import Image, Link, Text, ToolCall, ToolResult
from sightline.model.request import Message

WAITING = MessagePair(id="a", user_text="why?", model="acme", state="sending")
DONE = pair_after(WAITING, PairAnswered("a", text_answer("so")))
FAILED = pair_after(WAITING, PairFailed("a", Trouble("network", "no connection"), exchange="x_1"))
AGAIN = pair_after(DONE, PairReasked("a", "other"))


def refused(pair: MessagePair, fact) -> str:
    with pytest.raises(Fault) as caught:
        pair_after(pair, fact)
    return caught.value.message


def test_a_question_is_sending_and_has_no_part_of_an_answer() -> None:
    asked = MessagePair(id="a", answer=text_answer("left over"), trouble=Trouble("x", "y"))
    pair = ChatHistory([PairAsked(asked)]).get("a")
    assert (pair.state, pair.answer, pair.trouble) == ("sending", None, None)


def test_an_answer_completes_it() -> None:
    pair = pair_after(WAITING, PairAnswered("a", ChatAnswer(exchange="x_9")))
    assert (pair.state, pair.exchange) == ("complete", "x_9")
    assert DONE.assistant_text == "so"


def test_a_failure_is_an_error_with_what_had_come() -> None:
    assert (FAILED.state, FAILED.answer, FAILED.exchange) == ("error", None, "x_1")
    assert FAILED.trouble.line == "[error: unknown] no connection"
    cut = pair_after(WAITING, PairFailed("a", Trouble("network", "cut"), partial=text_answer("so f")))
    assert (cut.state, cut.assistant_text) == ("error", "so f")


def test_what_had_come_of_a_cancelled_answer_stays_and_is_marked() -> None:
    pair = pair_after(WAITING, PairCancelled("a", text_answer("so f")))
    assert (pair.state, pair.assistant_text) == ("complete", "so f")
    assert pair.answer.is_partial


@pytest.mark.parametrize("partial", [None, ChatAnswer()])
def test_pair_cancelled_before_any_output_becomes_an_error(partial: ChatAnswer | None) -> None:
    pair = pair_after(WAITING, PairCancelled("a", partial))
    assert pair.state == "error"
    assert pair.trouble.code == "cancelled"


def test_earlier_answer_is_kept_on_reask() -> None:
    assert (AGAIN.state, AGAIN.model, AGAIN.asking) == ("sending", "acme", "other")
    assert AGAIN.answer == DONE.answer
    pair = pair_after(AGAIN, PairAnswered("a", text_answer("or so")))
    assert (pair.state, pair.model, pair.asking, pair.assistant_text) == ("complete", "other", "", "or so")
    assert pair.earlier == (DONE.answer,)


def test_a_failure_to_answer_again_leaves_the_answer_that_was_there() -> None:
    pair = pair_after(AGAIN, PairFailed("a", Trouble("network", "cut"), partial=text_answer("or")))
    assert (pair.state, pair.model, pair.asking, pair.answer) == ("complete", "acme", "", DONE.answer)
    assert [answer.text for answer in pair.earlier] == ["or"]
    assert pair_after(AGAIN, PairCancelled("a")).earlier == ()


def test_an_earlier_answer_comes_back_and_goes_again() -> None:
    pair = pair_after(AGAIN, PairAnswered("a", text_answer("or so")))
    back = pair_after(pair, AnswerSwapped("a"))
    assert (back.assistant_text, [each.text for each in back.earlier]) == ("so", ["or so"])
    assert pair_after(back, AnswerSwapped("a", 0)) == pair
    assert "no such earlier answer" in refused(pair, AnswerSwapped("a", 1))


def test_a_kept_piece_can_take_the_place_of_an_error() -> None:
    pair = MessagePair(id="a", state="error", trouble=Trouble("x", "y"), earlier=(text_answer("piece"),))
    back = pair_after(pair, AnswerSwapped("a"))
    assert (back.state, back.assistant_text, back.earlier, back.trouble) == ("complete", "piece", (), None)


def partial(text: str, run: str = "r_1") -> ChatAnswer:
    return ChatAnswer(messages=(Message("assistant", (Text(text),)),), finish="error", run=run)


RUNNING = pair_after(WAITING, RunJoined("a", "r_1"))
LEFT = pair_after(RUNNING, PairFailed("a", Trouble("interrupted", "ended"), partial("so")))


def test_a_run_that_is_taken_up_is_waited_for_and_becomes_the_answer() -> None:
    assert (RUNNING.state, RUNNING.run) == ("sending", "r_1")
    assert (LEFT.state, LEFT.run, LEFT.assistant_text) == ("error", "r_1", "so")
    again = pair_after(LEFT, RunJoined("a", "r_1"))
    assert (again.state, again.trouble, again.assistant_text) == ("sending", None, "so")
    whole = ChatAnswer(messages=text_answer("so it is").messages, finish="stop", run="r_1")
    done = pair_after(again, PairAnswered("a", whole))
    assert (done.state, done.assistant_text, done.earlier, done.run) == ("complete", "so it is", (), "r_1")


def test_a_run_that_is_broken_off_again_has_come_further() -> None:
    again = pair_after(pair_after(LEFT, RunJoined("a", "r_1")), PairCancelled("a", partial("so it")))
    assert (again.state, again.assistant_text, again.earlier) == ("complete", "so it", ())
    kept = pair_after(pair_after(LEFT, RunJoined("a", "r_1")), PairFailed("a", Trouble("network", "no connection")))
    assert kept.assistant_text == "so"


def test_what_other_runs_came_to_stays_behind_the_answer() -> None:
    asked_again = pair_after(pair_after(DONE, PairReasked("a", "other")), RunJoined("a", "r_2"))
    cut = pair_after(asked_again, PairCancelled("a", partial("tw", "r_2")))
    assert [each.text for each in cut.earlier] == ["tw"]
    whole = pair_after(pair_after(cut, RunJoined("a", "r_2")), PairAnswered("a", partial("two", "r_2")))
    assert ([each.text for each in whole.earlier], whole.assistant_text) == (["so"], "two")
    assert pair_after(whole, PairReasked("a")).run == ""
    assert pair_after(whole, AnswerSwapped("a")).run == ""


def test_what_has_ended_does_not_end_again() -> None:
    assert "not waiting" in refused(DONE, PairAnswered("a", text_answer("so")))
    assert "not waiting" in refused(FAILED, PairCancelled("a"))


@pytest.mark.parametrize("fact", [PairReasked("a"), AnswerSwapped("a"), PairEdited("a", "x")])
def test_what_is_on_its_way_is_left_alone(fact) -> None:
    assert "is waiting" in refused(WAITING, fact)


def test_failed_pair_cannot_be_reasked() -> None:
    assert "no answer" in refused(FAILED, PairReasked("a"))


def test_an_edit_changes_what_it_names() -> None:
    picture = Image(Link("https://example.org/a.png"))
    pair = pair_after(DONE, PairEdited("a", user_text="how?", attachments=(picture,)))
    assert (pair.user_text, pair.attachments, pair.assistant_text) == ("how?", (picture,), "so")
    assert pair_after(DONE, PairEdited("a", assistant_text="thus")).assistant_text == "thus"
    assert pair_after(DONE, PairEdited("a")) == DONE


def test_an_answer_written_by_hand_ends_an_error() -> None:
    pair = pair_after(FAILED, PairEdited("a", assistant_text="my own"))
    assert (pair.state, pair.assistant_text, pair.trouble) == ("complete", "my own", None)


def test_an_edit_of_an_answer_with_tools_changes_its_last_words_only() -> None:
    rounds = (
        Message("assistant", (Text("I look."), ToolCall("c1", "look_up", "{}"))),
        Message("tool", (ToolResult("c1", (Text("found"),)),)),
    )
    whole = pair_after(WAITING, PairAnswered("a", ChatAnswer(messages=(*rounds, Message("assistant", (Text("old"),))))))
    assert pair_after(whole, PairEdited("a", assistant_text="new")).assistant_text == "I look.\n\nnew"
    cut = pair_after(WAITING, PairAnswered("a", ChatAnswer(messages=rounds)))
    edited = pair_after(cut, PairEdited("a", assistant_text="new"))
    assert edited.answer.messages == (*rounds, Message("assistant", (Text("new"),)))


def test_an_answer_can_be_emptied() -> None:
    assert pair_after(DONE, PairEdited("a", assistant_text="")).assistant_text == ""
    empty = pair_after(WAITING, PairAnswered("a", ChatAnswer()))
    assert pair_after(empty, PairEdited("a", assistant_text="x")).assistant_text == "x"


def test_marks_do_not_change_question_or_answer() -> None:
    pair = DONE
    for fact in (
        PairsStarred(("a",), 2),
        PairsFlagged(("a",), "grey"),
        PairsMoved(("a",), "t"),
        PairsHandled(("a",), "out"),
    ):
        pair = apply_mark(pair, fact)
    assert (pair.star, pair.flag, pair.topic, pair.hand) == (2, "grey", "t", "out")
    assert (pair.user_text, pair.answer, pair.state) == (DONE.user_text, DONE.answer, DONE.state)
