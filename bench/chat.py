"""A chat of a hundred thousand pairs: one pass over it beside a filter, a boundary and one more pair."""

from collections.abc import Callable

from bench.timing import medians, milliseconds, ratio, table
from sightline.catalog.facts import Facts
from sightline.chat.core.facts import ChatImported, PairAnswered, PairAsked
from sightline.chat.core.history import ChatHistory
from sightline.chat.core.pair import MessagePair, text_answer
from sightline.chat.core.sizing import Sizer
from sightline.chat.core.topics import Topic
from sightline.chat.core.view import View
from sightline.filters.parsing import parse
from sightline.settings import ChatSettings

ROUNDS = 5
PAIRS = 100_000
TOPICS = 50
LIMIT = 200_000
FACTS = Facts(tokenizer="o200k_base", context_window=LIMIT, message_tokens=3, reply_tokens=3)
FILTERS = {"stars": "s>=2", "topic and model": "t'Topic 1*' & m'acme-1'", "words": "c'answer 77'", "in context": "o1"}


def report() -> str:
    history = ChatHistory([ChatImported(tuple(map(_topic, range(TOPICS))), tuple(map(_pair, range(PAIRS))))])
    settings = ChatSettings()
    view = View(history, Sizer(FACTS, dialect="openai-chat", settings=settings), LIMIT, settings)
    included = len(view.included)
    added = iter(range(10**9))

    def one_pass() -> object:
        return sum(len(pair.user_text) + len(pair.assistant_text) for pair in history)

    def filtering(text: str) -> Callable[[], object]:
        def execute() -> object:
            view.execute(parse(text), float(PAIRS))
            return view.visible

        return execute

    def boundary() -> object:
        view.choose("acme-1", view.sizer, LIMIT)
        return view.start

    def one_more() -> object:
        name = f"new {next(added)}"
        view.on_change(history.apply(PairAsked(MessagePair(id=name, user_text="and now?", at=float(PAIRS)))))
        view.on_change(history.apply(PairAnswered(name, text_answer("now"))))
        return view.start

    tasks = {"one pass": one_pass, **{f"filter: {name}": filtering(text) for name, text in FILTERS.items()}}
    times = medians(tasks, ROUNDS)
    filtering("")()
    times |= medians({"boundary anew": boundary, "one more pair": one_more}, ROUNDS)
    rows = [[name, milliseconds(time), ratio(time / times["one pass"])] for name, time in times.items()]
    return table(
        f"Chat: {PAIRS:,} pairs, {included:,} go along (median of {ROUNDS}; aims: filter 100 ms, boundary 50 ms)",
        ["task", "time", "to one pass"],
        rows,
    )


def _topic(number: int) -> Topic:
    return Topic(id=f"t{number}", name=f"Topic {number}")


def _pair(number: int) -> MessagePair:
    return MessagePair(
        id=f"p{number}",
        topic=f"t{number % TOPICS}",
        model=f"acme-{number % 3}",
        user_text=f"Question {number}: what did the scheduler do with worker {number}, and why? " * 2,
        answer=text_answer(f"It is answer {number}: the task was given to the next one that was free. " * 6),
        star=number % 4,
        state="complete",
        at=float(number),
    )
