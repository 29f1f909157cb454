"""What a keystroke costs: the estimate of a long request after one message changed, beside counting all of it."""

from collections.abc import Iterator

from bench.timing import medians, milliseconds, ratio, table
from sightline.catalog.facts import Facts
from sightline.model.parts import Text
from sightline.model.request import Message, Request
from sightline.tokens.estimator import Estimator

ROUNDS = 9
MESSAGES = 1_000
AIM = "< 0.10x"
PARAGRAPH = (
    "Round {number}: the scheduler gave the task to worker {number}, which reported 200 OK after {number} ms; see "
    "`queue.py`, line {number}, where the retry is counted. Nothing else was waiting, so the next one began at once.\n"
)
MODELS = {
    "o200k_base, exact": Facts(tokenizer="o200k_base", message_tokens=3, reply_tokens=3),
    "like o200k_base": Facts(nearest_tokenizer="o200k_base", token_ratio=1.1, message_tokens=3, reply_tokens=3),
    "characters": Facts(chars_per_token=3.5),
}


def report() -> str:
    history = tuple(_message(number) for number in range(MESSAGES))
    rows = []
    for name, facts in MODELS.items():
        warm = Estimator(facts, dialect="openai-chat")
        total = warm.request(Request(messages=history)).tokens
        keys = iter(range(10**9))

        def keystroke(warm: Estimator = warm, keys: Iterator[int] = keys) -> object:
            return warm.request(Request(messages=(*history, _typed(next(keys)))))

        def whole(facts: Facts = facts, keys: Iterator[int] = keys) -> object:
            return Estimator(facts, dialect="openai-chat").request(Request(messages=(*history, _typed(next(keys)))))

        times = medians({"whole": whole, "keystroke": keystroke}, ROUNDS)
        share = ratio(times["keystroke"] / times["whole"])
        rows.append([name, f"{total:,}", milliseconds(times["whole"]), milliseconds(times["keystroke"]), share, AIM])
    return table(
        f"Estimates: one keystroke in {MESSAGES:,} messages (median of {ROUNDS})",
        ["model", "tokens", "count all", "keystroke", "ratio", "aim"],
        rows,
    )


def _message(number: int) -> Message:
    return Message(role="assistant" if number % 2 else "user", parts=(Text(text=PARAGRAPH.format(number=number) * 4),))


def _typed(key: int) -> Message:
    return Message(role="user", parts=(Text(text=f"And then what happened {key}"),))
