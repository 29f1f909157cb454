import msgspec

from sightline.chat.core.sending import AttemptRefused, Delivered
from sightline.chat.core.telemetry import MessageSummary, summarize
from sightline.errors import Code, Fault
from sightline.model.message import Message
from sightline.model.parts import Image, Link, Text
from sightline.model.usage import Usage
from tests.chat.core.stage import answered, driven, history_of, planned, view_of

FIELDS = {
    "model", "budget", "selection", "predictedMessageCount", "predictedHistoryTokens", "predictedTotalTokens",
    "attemptHistoryTokens", "attemptTotalTokens", "AUT", "trimmedCount", "attemptsUsed", "charsPerToken",
    "remainingReserve", "stage", "messages",
}  # fmt: skip


def test_every_attempt_is_told_under_the_names_of_the_workflow() -> None:
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
