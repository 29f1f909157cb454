from sightline.agent.core.limits import RunUsage
from sightline.agent.core.output import ToolOutcome, text_outcome
from sightline.agent.core.rounds import CallRecord, FinishedRun, Round
from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import ModelChoice, choose
from sightline.catalog.facts import Model, Prices
from sightline.catalog.provider import Provider
from sightline.errors import Code, Fault
from sightline.evals.service.target import arguments_of, describe_fault, observe_reply, observe_run
from sightline.model.parts import Refusal, Text, Thinking, ToolCall
from sightline.model.reply import Choice as Answer
from sightline.model.reply import Reply
from sightline.model.request import Request
from sightline.model.usage import Usage

USAGE = Usage(input_tokens=1_000_000, output_tokens=0, at="/usage", extras={"x": 1})


PRICES = Prices(input=3.0, output=15.0)


def choice(prices: Prices | None = PRICES) -> ModelChoice:
    catalog = Catalog(
        providers={"acme": Provider(dialect="openai-chat", base_url="http://127.0.0.1:1")},
        models={"m": Model(providers=("acme",), prices=prices)},
    )
    return choose(catalog, "acme/m", has_key=lambda _: True)


def reply(*parts: object, **more: object) -> Reply:
    return Reply(choices=(Answer(parts=parts, finish="stop"),), **more)  # type: ignore[arg-type]


def test_a_reply_is_seen_with_what_it_cost() -> None:
    call = ToolCall("1", "t", '{"a": 1}', at="/choices/0")
    seen = observe_reply(reply(Thinking("hm"), Text("Pa"), Text("ris"), call, usage=USAGE, model="m-1"), choice())
    assert (seen.text, seen.cost, seen.model, seen.finish) == ("Paris", 3.0, "m-1", "stop")
    assert seen.usage == Usage(input_tokens=1_000_000, output_tokens=0)
    assert [(use.name, use.arguments) for use in seen.tools] == [("t", {"a": 1})]
    assert seen.messages[0].parts[-1] == ToolCall("1", "t", '{"a": 1}')


def test_what_is_not_known_is_not_nothing() -> None:
    seen = observe_reply(reply(Text("x")), choice())
    assert (seen.usage, seen.cost, seen.model) == (None, None, "m")
    assert observe_reply(reply(Text("x"), usage=USAGE), choice(None)).cost is None
    assert observe_reply(Reply(), choice()).messages == ()
    assert observe_reply(reply(Refusal("I will not.")), choice()).text == "I will not."


def test_a_fault_is_told_with_what_to_do() -> None:
    seen = observe_reply(reply(Text("Pa"), fault=Fault(Code.NETWORK, "cut", hint="Again.")), choice())
    assert (seen.text, seen.error, seen.error_code) == ("Pa", "cut (Again.)", "network")
    assert (describe_fault(None), describe_fault(Fault(Code.NETWORK, "cut"))) == ("", "cut")


def test_arguments_that_are_no_json_are_their_text() -> None:
    assert (arguments_of(""), arguments_of("[1]"), arguments_of("{half")) == ({}, [1], "{half")


def record(key: str, outcome: ToolOutcome | None, **more: object) -> CallRecord:
    settings = {"id": key, "name": "t", "arguments": "{}", "fate": "ran", **more}
    return CallRecord(key=key, outcome=outcome, **settings)  # type: ignore[arg-type]


def test_a_run_is_seen_with_all_its_rounds() -> None:
    calls = (
        record("1.1", text_outcome("one"), ran={"n": 1}),
        record("1.2", ToolOutcome(structured={"k": 2})),
        record("1.3", None, arguments='{"x": 3}'),
    )
    asked = reply(*(ToolCall(call.id, "t", call.arguments) for call in calls))
    rounds = (
        Round(number=1, reply=asked, calls=calls, usage=Usage(input_tokens=5, output_tokens=2, cached_tokens=1)),
        Round(number=2, reply=reply(Text("done")), usage=Usage(input_tokens=7, output_tokens=3)),
    )
    ended = FinishedRun(why="answered", request=Request(), rounds=rounds, spent=RunUsage(cost=0.5, seconds=4.0))
    seen = observe_run(ended, "r_1", choice(), {"1.1": 0.25})
    assert (seen.text, seen.requests, seen.cost, seen.seconds, seen.run) == ("done", 2, 0.5, 4.0, "r_1")
    assert seen.usage == Usage(input_tokens=12, output_tokens=5, cached_tokens=1)
    assert [(use.arguments, use.result, use.is_error, use.seconds) for use in seen.tools] == [
        ({"n": 1}, "one", False, 0.25),
        ({}, '{"k":2}', False, None),
        ({"x": 3}, "", True, None),
    ]
    assert [message.role for message in seen.messages] == ["assistant", "tool", "assistant"]


def test_what_one_round_does_not_tell_is_not_known_of_the_run() -> None:
    rounds = (Round(number=1, reply=reply(Text("done"))),)
    spent = RunUsage(unmeasured=("cost",))
    seen = observe_run(FinishedRun(why="answered", request=Request(), rounds=rounds, spent=spent), "r", choice(), {})
    assert (seen.usage, seen.cost) == (None, None)


def test_tokens_that_one_round_does_not_tell_are_not_0() -> None:
    rounds = (
        Round(number=1, reply=reply(Text("a")), usage=Usage(output_tokens=2)),
        Round(number=2, reply=reply(Text("b")), usage=Usage(input_tokens=7, output_tokens=3)),
    )
    seen = observe_run(
        FinishedRun(why="answered", request=Request(), rounds=rounds, spent=RunUsage()), "r", choice(), {}
    )
    assert seen.usage == Usage(output_tokens=5)
