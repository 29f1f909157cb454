from sightline.agent.core.arguments import Repair
from sightline.agent.core.limits import Reached
from sightline.agent.core.output import Cap, text_outcome
from sightline.agent.core.pending import DENIED, Pending
from sightline.agent.core.steps import RunnableCall
from sightline.model.parts import ToolCall
from tests.loop_stage import count

READY = RunnableCall(key="1.1", id="a", name="count", arguments={"n": 1}, repairs=(Repair("/n", "x"),))


def test_a_call_goes_back_under_the_id_that_it_is_sent_with() -> None:
    assert Pending("1.1", count(1, "a"), "a_2", READY).echo == count(1, "a_2")


def test_a_call_that_ran_is_recorded_with_what_the_tool_was_given() -> None:
    pending = Pending("1.1", count('"1"', "a"), "a_2", READY)
    pending.settle("ran", text_outcome("x" * 900), Cap(characters=100))
    record = pending.record
    assert (record.fate, record.ran, record.sent_id, record.repairs) == ("ran", {"n": 1}, "a_2", READY.repairs)
    assert record.outcome == pending.outcome != text_outcome("x" * 900)
    assert pending.meaning == {"n": 1}


def test_a_call_that_was_refused_is_known_by_what_the_model_wrote() -> None:
    pending = Pending("1.1", ToolCall("a", "nope", "{"), "a")
    pending.settle("refused", text_outcome("no"), Cap())
    assert (pending.meaning, pending.record.ran, pending.record.sent_id) == ("{", None, None)
    assert pending.echo.arguments == "{"


def test_edited_arguments_are_what_goes_back() -> None:
    pending = Pending("1.1", count(1, "a"), "a", READY)
    pending.edit({"n": 2})
    assert pending.echo.arguments == '{"n":2}'
    assert pending.ready is not None
    assert pending.ready.repairs == ()


def test_each_way_not_to_run_has_its_words() -> None:
    pending = Pending("1.1", count(1, "a"), "a", READY)
    pending.deny("", Cap())
    assert pending.outcome == text_outcome(DENIED["user"], is_error=True)
    pending.exceed(Reached("cost", 1.5, 2.0), Cap())
    assert (pending.fate, pending.outcome) == (
        "limit",
        text_outcome("This call was not run: the limit of 1.5 US dollars is reached.", is_error=True),
    )


def test_edited_free_text_goes_back_as_the_model_wrote_it() -> None:
    for kind, arguments in (("custom", "ls -l"), ("function", '{"input":"ls -l"}')):
        pending = Pending("1.1", ToolCall("a", "shell", "ls", kind), "a")  # type: ignore[arg-type]
        pending.ready = RunnableCall(key="1.1", id="a", name="shell", arguments="ls")
        pending.edit("ls -l")
        assert pending.echo.arguments == arguments
