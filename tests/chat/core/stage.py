"""A small chat to tell stories with: pairs of known sizes, a view over them, and a driver of its sends."""

from collections.abc import Iterable

from sightline.catalog.facts import Facts
from sightline.chat.core.facts import ChatFact, PairAnswered, PairAsked, TopicAdded
from sightline.chat.core.history import ChatHistory
from sightline.chat.core.pair import MessagePair, text_answer
from sightline.chat.core.plan import SendPlan, plan_of
from sightline.chat.core.sending import Attempt, Outcome, SendEnding, Step, sending
from sightline.chat.core.sizing import Sizer
from sightline.chat.core.topics import Topic
from sightline.chat.core.view import View
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import parse
from sightline.model.request import Tool
from sightline.settings import ChatSettings

NOW = 1_800_000_000.0
BY_LETTER = ChatSettings(
    estimation="characters", chars_per_token=1, user_request_allowance=10, assistant_response_allowance=0
)
"""One token a letter, so that a story can count."""

SMALL = Facts(context_window=100)


def answered(name: str, size: int = 20, **more: object) -> MessagePair:
    """A finished pair of so many letters, half of them the question's."""
    asked, said = name.ljust(size // 2, "?"), "!" * (size - size // 2)
    fields = {"user_text": asked, "at": NOW, "model": "acme", "state": "complete", "answer": text_answer(said), **more}
    return MessagePair(id=name, **fields)


def told(pairs: Iterable[MessagePair]) -> list[ChatFact]:
    """The facts of these pairs: each asked and, where it has an answer, answered."""
    facts: list[ChatFact] = []
    for pair in pairs:
        facts.append(PairAsked(pair))
        facts.append(PairAnswered(pair.id, pair.answer or text_answer("")))
    return facts


def history_of(*pairs: MessagePair, topics: Iterable[Topic] = ()) -> ChatHistory:
    """A history of these pairs."""
    return ChatHistory([*map(TopicAdded, topics), *told(pairs)])


def view_of(
    history: ChatHistory,
    *,
    settings: ChatSettings = BY_LETTER,
    limit: int = 100,
    facts: Facts = SMALL,
    dialect: str = "openai-chat",
    tools: tuple[Tool, ...] = (),
) -> View:
    """A view of it through a model with this limit."""
    view = View(history, Sizer(facts, dialect=dialect, settings=settings, tools=tools), limit, settings, now=NOW)
    view.choose("acme", view.sizer, limit)
    return view


def filtered(view: View, text: str) -> View:
    """The view after this filter was executed."""
    view.execute(parse(text, scope=FilterScope.CHAT), NOW)
    return view


def ids(pairs: Iterable[MessagePair]) -> str:
    """Their ids, in one word."""
    return "".join(pair.id for pair in pairs)


def driven(plan: SendPlan, outcomes: Iterable[Outcome], **more: object) -> tuple[list[Step], SendEnding]:
    """All steps of a send to which these are the outcomes, and how it ended."""
    run, steps, answers = sending(plan, **more), [], iter(outcomes)
    try:
        steps.append(next(run))
        while True:
            steps.append(run.send(next(answers)))
    except StopIteration as end:
        return steps, end.value


def planned(view: View, text: str = "hello") -> SendPlan:
    """The plan of a question."""
    return plan_of(view, text)


def attempts(steps: Iterable[Step]) -> list[str]:
    """The pairs of each attempt."""
    return ["".join(step.ids) for step in steps if isinstance(step, Attempt)]
