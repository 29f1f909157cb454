"""One send before it begins: what will be asked of whom, with what, frozen from here on."""

from dataclasses import dataclass

from sightline.catalog.compose import Prompt
from sightline.chat.core.assembly import concatenate, has_rounds, question
from sightline.chat.core.pair import MessagePair
from sightline.chat.core.settings import ChatSettings
from sightline.chat.core.topics import Parameters
from sightline.chat.core.view import View
from sightline.errors import Code, Fault
from sightline.model.message import Message
from sightline.model.parts import Part
from sightline.model.tools import Tool
from sightline.tokens.estimate import Estimate, sum_estimates
from sightline.tokens.window_budget import Boundary, Room, count_to_drop


@dataclass(frozen=True, slots=True)
class Item:
    """A pair that was predicted to go along: its messages, what they are likely to take, and what is planned."""

    id: str
    model: str
    messages: tuple[Message, ...]
    estimate: Estimate
    tokens: int


@dataclass(frozen=True, slots=True)
class SendPlan:
    """Nothing that happens after a send has begun changes it: not the filter, the model, a setting nor the history.

    `items` are the predicted pairs from the oldest on, `visible_count` is how many pairs were visible. `aut` is what
    is planned for the prompt, `prompt` its whole estimate. `conversation` names it to the provider. `flattened` are the
    pairs whose tool rounds this model cannot be shown, because no tools go along; their words are sent.
    """

    model: str
    settings: ChatSettings
    room: Room
    items: tuple[Item, ...]
    visible_count: int
    filter_version: int
    prelude: str
    parameters: Parameters
    tools: tuple[Tool, ...]
    asked: Message
    prompt: Estimate
    aut: int
    flattened: tuple[str, ...] = ()
    conversation: str = ""

    @property
    def history_tokens(self) -> int:
        """What is planned for all predicted pairs."""
        return sum(item.tokens for item in self.items)

    @property
    def preflight_count(self) -> int:
        """How many of the oldest must be left out because the prompt takes more than its allowance."""
        return count_to_drop([item.tokens for item in self.items], self.room.beside(self.aut))

    @property
    def is_too_large(self) -> bool:
        """Whether the prompt is likely not to fit even alone."""
        return not self.room.can_ever_hold(self.prompt.tokens)

    def messages(self, trimmed: int) -> tuple[Message, ...]:
        """The conversation without the oldest so many pairs, and the prompt at its end."""
        return (*concatenate(item.messages for item in self.items[trimmed:]), self.asked)

    def prompt_without(self, trimmed: int, *, stream: bool = True) -> Prompt:
        """What is asked of the model, without the oldest so many pairs. There are no other instructions than the
        prelude, also where there is none."""
        told = self.parameters
        return Prompt(
            self.messages(trimmed),
            tools=self.tools,
            instructions=self.prelude,
            temperature=told.temperature,
            top_p=told.top_p,
            max_tokens=told.max_tokens,
            effort=told.effort,
            verbosity=told.verbosity,
            conversation=self.conversation,
            stream=stream,
        )


def plan_of(
    view: View, text: str, attachments: tuple[Part, ...] = (), *, before: str = "", replaces: str = ""
) -> SendPlan:
    """The plan for a question in this view, as it is at this moment. `before` is the pair that is asked again where it
    stands: only what is older goes along. `replaces` is one that will be gone by then."""
    asked = question(text, attachments)
    if asked is None:
        raise Fault(Code.INVALID_REQUEST, "there is nothing to send", hint="Write something, or attach a file.")
    sizer = view.sizer
    included, visible_count = _context(view, before, replaces)
    prompt = sizer.message(asked)
    return SendPlan(
        model=view.model,
        settings=view.settings,
        room=view.room,
        items=tuple(
            Item(pair.id, pair.model, sizer.messages(pair), sizer.pair(pair), sizer.cost(pair)) for pair in included
        ),
        visible_count=visible_count,
        filter_version=view.filter_version,
        prelude=view.prelude,
        parameters=view.inherited.parameters,
        tools=sizer.tools,
        asked=asked,
        prompt=prompt,
        aut=sizer.cautious(prompt),
        conversation=f"chat_{view.topic}" if view.topic else "chat",
        flattened=tuple(pair.id for pair in included if not sizer.has_rounds and has_rounds(pair)),
    )


def likely_tokens(plan: SendPlan, trimmed: int) -> int:
    """What an attempt is likely to take in all, by the middle of the estimates."""
    history = sum_estimates(item.estimate for item in plan.items[trimmed:])
    return history.tokens + plan.prompt.tokens + plan.room.system + plan.room.tools


def _context(view: View, before: str, replaces: str) -> tuple[list[MessagePair], int]:
    if not before and not replaces:
        return list(view.included), len(view.visible)
    pairs = [pair for pair in view.visible if pair.id != replaces]
    if before:
        key = view.history.key(view.history.get(before).id)
        pairs = [pair for pair in pairs if view.history.key(pair.id) < key]
    trial: Boundary[MessagePair] = Boundary(view.sizer.cost, view.room.history)
    trial.replace(pairs)
    return pairs[trial.start :], len(pairs)
