import msgspec
import pytest

from sightline.catalog.choose import ModelChoice
from sightline.catalog.compose import compose
from sightline.catalog.facts import Facts, Family
from sightline.catalog.provider import Provider
from sightline.chat.core.facts import PairsStarred
from sightline.chat.core.pair import ChatAnswer
from sightline.chat.core.plan import MessageSummary, plan_of, summarize
from sightline.chat.core.sending import AttemptRefused, Delivered
from sightline.chat.core.topics import Parameters, Topic
from sightline.dialects.registry import dialect as record_of
from sightline.errors import Code, Fault
from sightline.model.parts import Image, Link, Text, ToolCall, ToolResult
from sightline.model.reply import Usage
from sightline.model.request import FunctionTool, Message
from sightline.settings import ChatSettings
from sightline.tokens.estimator import Estimator
from tests.chat.core.stage import answered, driven, filtered, history_of, ids, planned, view_of

FIVE = tuple(map(answered, "abcde"))


def names(plan) -> str:
    return "".join(item.id for item in plan.items)


def test_a_plan_is_what_is_visible_and_fits_and_the_question_last() -> None:
    plan = planned(view_of(history_of(*FIVE)), "why?")
    assert (names(plan), plan.visible_count, plan.history_tokens, plan.aut) == ("bcde", 5, 80, 4)
    messages = plan.messages(0)
    assert [message.role for message in messages] == ["user", "assistant"] * 4 + ["user"]
    assert messages[-1].parts == (Text("why?"),)
    assert len(plan.messages(3)) == 3


def test_nothing_to_say_is_nothing_to_send() -> None:
    with pytest.raises(Fault) as caught:
        planned(view_of(history_of()), " ")
    assert caught.value.code is Code.INVALID_REQUEST
    assert plan_of(view_of(history_of()), "", (Image(Link("https://example.org/a.png")),)).user_message.parts


def test_a_draft_without_a_question_has_a_sign_in_its_place() -> None:
    plan = plan_of(view_of(history_of()), " ", is_draft=True)
    assert plan.user_message.parts == (Text("…"),)


def test_what_happens_afterwards_does_not_change_a_plan() -> None:
    view = view_of(history_of(*FIVE))
    plan = planned(view)
    filtered(view, "s3")
    view.choose("other", view.sizer, 20)
    view.on_change(view.history.apply(PairsStarred(("a",), 3)))
    assert (names(plan), plan.model, plan.room.limit) == ("bcde", "acme", 100)


def test_the_topic_says_how_to_ask() -> None:
    parameters = Parameters(temperature=0.5, top_p=0.9, max_tokens=30, effort="low", verbosity="high")
    view = view_of(history_of(topics=[Topic(id="t", name="T", system_prompt="Be exact.", parameters=parameters)]))
    view.enter("t")
    wanted = planned(view).prompt_without(0)
    assert wanted.instructions == "Be exact."
    assert (wanted.temperature, wanted.top_p, wanted.max_tokens) == (0.5, 0.9, 30)
    assert (wanted.effort, wanted.verbosity, wanted.stream) == ("low", "high", True)


def test_without_a_system_prompt_there_are_no_instructions() -> None:
    assert planned(view_of(history_of())).prompt_without(0).instructions == ""


def test_a_long_prompt_takes_the_room_of_the_oldest() -> None:
    view = view_of(history_of(*FIVE))
    assert planned(view, "x" * 20).preflight_count == 0
    assert planned(view, "x" * 21).preflight_count == 1
    assert planned(view, "x" * 99).preflight_count == 4
    plan = planned(view, "x" * 21)
    assert plan.first_prompt == plan.prompt_without(1) != plan.prompt_without(0)
    assert planned(view, "x" * 100).too_large is None
    assert "the prompt has about" in planned(view, "x" * 101).too_large.message
    assert ids(view.included) == "bcde", "the boundary on screen does not jump"


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic", "gemini"])
@pytest.mark.parametrize("facts", [Facts(), Facts(tokenizer="o200k_base", message_tokens=3, reply_tokens=3)])
def test_what_is_planned_is_what_the_very_request_is_estimated_at(dialect: str, facts: Facts) -> None:
    tool = FunctionTool("look_up", "looks something up", {"type": "object", "properties": {"q": {"type": "string"}}})
    history = history_of(*FIVE, topics=[Topic(id="t", name="T", system_prompt="Be exact.")])
    view = view_of(history, settings=ChatSettings(), limit=4000, facts=facts, dialect=dialect, tools=(tool,))
    view.enter("t")
    plan = planned(view, "And what of the sea?")
    choice = ModelChoice("acme", Provider(dialect=dialect), "acme", facts, Family())
    request = compose(plan.prompt_without(1), choice, record_of(dialect).support)
    whole = Estimator(Facts(chars_per_token=3.5) if facts == Facts() else facts, dialect=dialect).estimate_by_rules(
        request
    )
    around = plan.room.system + plan.room.tools
    assert sum(item.estimate.tokens for item in plan.items[1:]) + plan.size.tokens + around == whole.tokens
    tokens = sum(item.tokens for item in plan.items[1:]) + plan.aut + around + plan.room.margin
    assert tokens == whole.high


def test_reask_in_place_sends_only_older_pairs() -> None:
    view = view_of(history_of(*FIVE))
    plan = plan_of(view, "c again", before="c")
    assert (names(plan), plan.visible_count) == ("ab", 2)
    narrow = view_of(history_of(*FIVE), limit=50)
    assert names(plan_of(narrow, "e again", before="e")) == "cd"


def test_rounds_that_cannot_be_sent_are_left_out() -> None:
    rounds = (
        Message("assistant", (ToolCall("c1", "look_up", "{}"),)),
        Message("tool", (ToolResult("c1", (Text("found"),)),)),
        Message("assistant", (Text("so"),)),
    )
    history = history_of(answered("a", answer=ChatAnswer(messages=rounds)), answered("b"))
    assert any(message.role == "tool" for message in planned(view_of(history)).messages(0))
    plan = planned(view_of(history, dialect="anthropic"))
    assert all(message.role != "tool" for message in plan.messages(0))


def test_a_pair_that_will_be_replaced_is_not_part_of_the_context() -> None:
    view = view_of(history_of(*(answered(name) for name in "abcde")))
    plan = plan_of(view, "b, but better", replaces="d")
    assert ([item.id for item in plan.items], plan.visible_count) == (["a", "b", "c", "e"], 4)
    assert [item.id for item in plan_of(view, "why", before="d", replaces="a").items] == ["b", "c"]


def test_instructions_and_conversation_id_are_sent() -> None:
    topics = [
        Topic(id="t", name="T", instructions="Use metres."),
        Topic(id="u", name="U", parent="t", system_prompt="", instructions=None),
    ]
    view = view_of(history_of(topics=topics))
    view.sizer.base_instructions = "Be careful."
    wanted = planned(view).prompt_without(0)
    assert (wanted.instructions, wanted.conversation) == ("Be careful.", "chat")
    view.enter("t")
    wanted = planned(view).prompt_without(0)
    assert (wanted.instructions, wanted.conversation) == ("Be careful.\n\nUse metres.", "chat_t")
    view.enter("u")
    assert planned(view).prompt_without(0).instructions == "Use metres."


FIELDS = {
    "model", "budget", "selection", "predictedMessageCount", "predictedHistoryTokens", "predictedTotalTokens",
    "attemptHistoryTokens", "attemptTotalTokens", "AUT", "trimmedCount", "attemptsUsed", "charsPerToken",
    "remainingReserve", "stage", "messages",
}  # fmt: skip


def test_each_attempt_is_recorded_in_telemetry_with_workflow_field_names() -> None:
    view = view_of(history_of(*map(answered, "abc")))
    _, ending = driven(
        planned(view), [AttemptRefused(Fault(Code.CONTEXT_OVERFLOW, "too long")), Delivered(Usage(input_tokens=7))]
    )
    told = msgspec.json.decode(msgspec.json.encode(ending.telemetry))
    assert [each["stage"] for each in told] == ["attempt", "overflow_initial", "overflow_retry", "success"]
    assert all(each.keys() >= FIELDS for each in told)
    assert told[0]["budget"] == {"maxContext": 100, "maxUsableRaw": 100}
    assert told[0]["selection"][0] == {"id": "a", "model": "acme", "tokens": 20}
    assert told[0]["messages"][-1] == {"role": "user", "content": "hello"}
    assert [each.get("lastErrorMessage") for each in told] == [None, "too long", "too long", None]
    assert [each.get("overflowMatched") for each in told] == [None, True, True, None]
    assert (told[3]["reportedInputTokens"], told[3]["finalDeliveredTokens"]) == (7, 45)
    assert told[3]["trimmingRemoved"] == [{"id": "a", "model": "acme", "tokens": 20}]
    assert all(each["sentCount"] == each["predictedMessageCount"] - each["trimmedCount"] for each in told)


def test_what_is_not_words_is_named() -> None:
    message = Message("user", (Image(Link("https://example.org/a.png")), Text("look")))
    assert summarize((message,)) == (MessageSummary("user", "[Image]look"),)
