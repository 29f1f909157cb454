"""A summary that replaces older pairs: drafted, edited, accepted and undone by the user."""

from collections.abc import Sequence
from dataclasses import dataclass

from sightline.catalog.compose import Prompt
from sightline.chat.core.facts import PairsCompacted
from sightline.chat.core.history import ChatHistory
from sightline.chat.core.pair import MessagePair
from sightline.chat.core.sizing import Sizer, concatenate, question
from sightline.errors import Code, Fault
from sightline.model.message import Message
from sightline.model.parts import Text
from sightline.tokens.estimate import Estimate, sum_estimates

INSTRUCTION = (
    "Write a summary of the conversation above that can replace it, so that we can continue without it. Keep "
    "decisions, facts, names, numbers, open questions and what was asked for; leave out pleasantries. Write only the "
    "summary."
)


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a compaction changes: the pairs, and their tokens before and after."""

    ids: tuple[str, ...]
    before: Estimate
    after: Estimate

    @property
    def saved(self) -> int:
        """The likely number of tokens saved; negative if the summary is longer than the pairs."""
        return self.before.tokens - self.after.tokens


def drafting(pairs: Sequence[MessagePair], sizer: Sizer, instruction: str = INSTRUCTION) -> Prompt:
    """The request for a draft: the pairs, and the instruction to summarise them."""
    if not pairs:
        raise Fault(Code.USAGE, "there is nothing to sum up", hint="Choose some pairs.")
    messages = concatenate(map(sizer.messages, pairs))
    return Prompt((*messages, Message("user", (Text(instruction),), bare=True)), tools=sizer.tools, instructions="")


def compare(pairs: Sequence[MessagePair], text: str, sizer: Sizer) -> Compaction:
    """The tokens before and after, for this summary."""
    message = question(text)
    return Compaction(
        tuple(pair.id for pair in pairs),
        sum_estimates(map(sizer.pair, pairs)),
        sum_estimates(() if message is None else (sizer.message(message),)),
    )


def compaction_fact(
    history: ChatHistory, ids: Sequence[str], text: str, *, new_id: str, model: str = ""
) -> PairsCompacted:
    """The fact that replaces these pairs by the summary: a question without an answer, in the topic and at the time of
    the newest of them."""
    if not ids or not text.strip():
        raise Fault(Code.USAGE, "a summary needs a text and pairs to stand for", hint="Choose some, and write it.")
    pairs = sorted(map(history.get, ids), key=lambda pair: history.key(pair.id))
    newest = pairs[-1]
    return PairsCompacted(
        MessagePair(
            id=new_id,
            topic=newest.topic,
            model=model or newest.model,
            user_text=text,
            star=max(pair.star for pair in pairs),
            state="complete",
            at=newest.at,
            summary_of=tuple(pair.id for pair in pairs),
        )
    )
