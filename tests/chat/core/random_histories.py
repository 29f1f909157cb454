"""Histories that nobody wrote, and whether what is sent of them is valid wherever it goes.

`python -m tests.chat.core.random_histories 100000` sweeps over so many.
"""

import sys
from random import Random

from sightline.catalog.facts import Facts
from sightline.chat.core.facts import ChatFact, ChatImported, PairsCompacted, PairsDeleted, PairsHandled
from sightline.chat.core.history import ChatHistory
from sightline.chat.core.pair import ChatAnswer, MessagePair
from sightline.chat.core.plan import plan_of
from sightline.chat.core.sending import AttemptRefused, Delivered, sending
from sightline.chat.core.sizing import Sizer
from sightline.chat.core.view import View
from sightline.dialects.dialect import Target
from sightline.dialects.registry import dialect
from sightline.errors import Code, Fault, Numbers
from sightline.filters.parsing import parse
from sightline.model.parts import Image, Inline, Opaque, Part, Refusal, Text, Thinking, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import FunctionTool, Message, Options, Request
from sightline.settings import ChatSettings
from sightline.wire.jsontext import decode, encode

DIALECTS = ("openai-chat", "openai-responses", "anthropic", "gemini")
TOOL = FunctionTool("look_up", "looks something up", {"type": "object", "properties": {}})
PICTURE = Image(Inline("image/png", "iVBORw0KGgo="))
WORDS = ("", " ", "yes", "a longer thing to say " * 3, "Zwölf Boxkämpfer", "x" * 200)
FILTERS = ("", "s>=1", "b", "!s0 | b", "r3", "o", "!e", "o1 & b")


def call_id(random: Random) -> str:
    """Ids of calls are few, so that they come again, and some are empty or strange."""
    return random.choice(("c1", "c2", "call:3 ü", "c4", "c5", ""))


def answer_messages(random: Random) -> tuple[Message, ...]:
    """An answer that may be cut anywhere: calls without results, results without calls, nothing at all."""
    messages: list[Message] = []
    for _ in range(random.randrange(4)):
        parts: list[Part] = []
        if random.random() < 0.4:
            signed = random.choice((None, *DIALECTS))
            parts.append(Thinking("hm", signature="s" if signed else None, signed_by=signed))
        parts += [Text(random.choice(WORDS)) for _ in range(random.randrange(2))]
        parts += [Refusal("no")] * (random.random() < 0.05)
        parts += [PICTURE] * (random.random() < 0.05)
        parts += [Opaque("gemini", {"text": "of its own"})] * (random.random() < 0.05)
        calls = [ToolCall(call_id(random), "look_up", "{}") for _ in range(random.choice((0, 0, 1, 2)))]
        messages.append(Message("assistant", (*parts, *calls)))
        results = [ToolResult(call.id, (Text("found"),), name="look_up") for call in calls if random.random() < 0.8]
        results += [ToolResult(call_id(random), (Text("stray"),))] * (random.random() < 0.1)
        if results and random.random() < 0.9:
            random.shuffle(results)
            messages.append(Message("tool", tuple(results)))
    return tuple(messages)


def random_pair(random: Random, number: int) -> MessagePair:
    """Any pair at all."""
    messages = answer_messages(random)
    return MessagePair(
        id=f"p{number}",
        model=random.choice(("acme", "other")),
        user_text=random.choice(WORDS),
        attachments=(PICTURE,) * (random.random() < 0.1),
        answer=ChatAnswer(messages=messages, finish=random.choice(("stop", "cancelled"))) if messages else None,
        star=random.randrange(4),
        flag=random.choice(("blue", "grey")),
        state=random.choice(("complete", "error", "idle")),
        at=float(number),
    )


def random_facts(random: Random) -> list[ChatFact]:
    """A history with what a person has done to it."""
    pairs = tuple(random_pair(random, number) for number in range(random.randrange(9)))
    facts: list[ChatFact] = [ChatImported((), pairs)]
    left = [pair.id for pair in pairs]
    if len(left) > 3 and random.random() < 0.3:
        chosen = random.sample(left, 2)
        facts.append(PairsCompacted(MessagePair(id="s", user_text="in short", summary_of=tuple(chosen))))
        left = [each for each in left if each not in chosen]
    for each in left:
        if random.random() < 0.1:
            facts.append(PairsHandled((each,), random.choice(("in", "out"))))
        elif random.random() < 0.1:
            facts.append(PairsDeleted((each,)))
    return facts


def random_fault(random: Random) -> Fault:
    """Too large, sometimes with figures."""
    numbers = random.choice((Numbers(), Numbers(limit=300), Numbers(limit=300, requested=340, excess=40)))
    code = random.choice((Code.CONTEXT_OVERFLOW, Code.REQUEST_TOO_LARGE_FOR_RATE))
    return Fault(code, "too large", numbers=numbers)


def structural_errors(name: str, messages: tuple[Message, ...], tools: tuple[FunctionTool, ...]) -> list[str]:
    """What the API would refuse in the body that is written for it."""
    request = Request(model="acme", messages=messages, tools=tools, options=Options(max_tokens=1000))
    body = encode(dialect(name).write_request(request, Target(), Report()))
    read = dialect(name).read_request(decode(body))
    problems = dialect(name).problems(read)
    return [
        f"{each.pointer}: {each.message}" for each in problems if each.severity == "error" and each.pointer != "/model"
    ]


def problems_of(seed: int) -> list[str]:
    """All attempts of one send over one random history, and what is wrong with any of them."""
    random = Random(seed)
    name = DIALECTS[seed % len(DIALECTS)]
    tools = (TOOL,) if random.random() < 0.5 else ()
    settings = ChatSettings(
        estimation=random.choice(("model", "characters")),
        user_request_allowance=random.choice((0, 20)),
        assistant_response_allowance=0,
        max_trim_attempts=random.choice((1, 10)),
    )
    sizer = Sizer(Facts(), dialect=name, settings=settings, tools=tools)
    view = View(ChatHistory(random_facts(random)), sizer, random.choice((400, 700, 2000)), settings)
    view.execute(parse(random.choice(FILTERS)), 100.0)
    run = sending(plan_of(view, random.choice(("and now?", "w" * 120))))
    found: list[str] = []
    try:
        step = next(run)
        while True:
            found += structural_errors(name, step.prompt.messages, tools)
            asked = [message for message in step.prompt.messages if message.role == "user"]
            found += [] if asked and asked[-1] is step.prompt.messages[-1] else ["the prompt is not last"]
            step = run.send(AttemptRefused(random_fault(random)) if random.random() < 0.8 else Delivered())
    except StopIteration:
        return [f"seed {seed}, {name}: {each}" for each in found]


def main() -> None:
    count, wrong = int(sys.argv[1]), 0
    for seed in range(count):
        for problem in problems_of(seed):
            wrong += 1
            sys.stdout.write(f"{problem}\n" if wrong < 20 else "")
    sys.stdout.write(f"{count} histories, {wrong} problems\n")


if __name__ == "__main__":
    main()
