"""The plan of a send: its question, context and model, frozen when the send begins."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from sightline.catalog.compose import Prompt
from sightline.chat.core.pair import MessagePair, prompt_too_large
from sightline.chat.core.sizing import TokenBand, concatenate, question
from sightline.chat.core.topics import Parameters
from sightline.chat.core.view import View
from sightline.errors import Code, Fault
from sightline.model.parts import Part, Text
from sightline.model.request import Message, Tool
from sightline.settings import ChatSettings
from sightline.tokens.estimate import Estimate
from sightline.tokens.window_budget import Boundary, Room, count_to_drop

Stage: TypeAlias = Literal[
    "user_prompt_too_large",
    "preflight",
    "waiting",
    "attempt",
    "overflow_initial",
    "overflow_retry",
    "overflow_exhausted",
    "filter_changed",
    "error",
    "cancelled",
    "success",
]


class TelemetryBudget(msgspec.Struct, frozen=True, rename="camel"):
    """`max_context` is the maximum size of a request (ML); `max_usable_raw` is what history and prompt can use of
    it."""

    max_context: int
    max_usable_raw: int


class Selected(msgspec.Struct, frozen=True):
    """One pair, and the tokens planned for it."""

    id: str
    model: str
    tokens: int


class MessageSummary(msgspec.Struct, frozen=True):
    """A message in short: its role and its text."""

    role: str
    content: str


class SendTelemetry(
    msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, rename="camel", tag_field="kind", tag="telemetry"
):
    """One moment of a send. Token numbers are likely sizes; `bands` has the full estimates, and `margin` is what was
    held back from the budget because the sizes may be larger.

    Fields that begin with `predicted` stay the same during a send; those that begin with `attempt` only decrease.
    `selection` has the pairs that this attempt sends, `trimming_removed` the predicted pairs that it leaves out, of
    which `preflight_trimmed_count` were left out before the first attempt.
    """

    model: str
    stage: Stage
    budget: TelemetryBudget
    selection: tuple[Selected, ...]
    predicted_message_count: int
    predicted_history_tokens: int
    predicted_total_tokens: int
    attempt_history_tokens: int
    attempt_total_tokens: int
    aut: int = msgspec.field(name="AUT")
    trimmed_count: int
    attempts_used: int
    chars_per_token: float
    remaining_reserve: int
    messages: tuple[MessageSummary, ...]
    sent_count: int
    visible_count: int
    user_request_allowance: int
    assistant_response_allowance: int
    max_trim_attempts: int
    system_tokens: int
    tool_tokens: int
    preflight_trimmed_count: int
    trimming_removed: tuple[Selected, ...]
    trimming_removed_tokens: int
    bands: dict[str, TokenBand]
    margin: int = 0
    last_error_message: str | None = None
    overflow_matched: bool | None = None
    final_delivered_tokens: int | None = None
    reported_input_tokens: int | None = None
    wait_seconds: float | None = None


def summarize(messages: tuple[Message, ...]) -> tuple[MessageSummary, ...]:
    """The messages in short; parts that are not text are named in brackets."""
    return tuple(MessageSummary(message.role, "".join(map(_words, message.parts))) for message in messages)


def _words(part: msgspec.Struct) -> str:
    return part.text if isinstance(part, Text) else f"[{type(part).__name__}]"


@dataclass(frozen=True, slots=True)
class Item:
    """A pair that is planned to be sent: its messages, their size, and the tokens planned for it, including a
    margin."""

    id: str
    model: str
    messages: tuple[Message, ...]
    estimate: Estimate
    tokens: int


@dataclass(frozen=True, slots=True)
class SendPlan:
    """A frozen plan: nothing that happens after a send has begun changes it, neither the filter, the model, a setting
    nor the history.

    `items` has the predicted pairs, oldest first; `visible_count` is the number of visible pairs. `aut` is the size
    planned for the prompt, `prompt` is its estimate by the rules alone, and `size` that estimate corrected by past
    counts of the provider. `shown` is the `room` with the sizes of everything that is sent. `conversation` is its id
    for the provider.
    """

    model: str
    settings: ChatSettings
    room: Room
    shown: Room
    items: tuple[Item, ...]
    visible_count: int
    filter_version: int
    prelude: str
    parameters: Parameters
    tools: tuple[Tool, ...]
    user_message: Message
    prompt: Estimate
    size: Estimate
    aut: int
    conversation: str = ""

    @property
    def history_tokens(self) -> int:
        """The tokens of all predicted pairs."""
        return sum(item.estimate.tokens for item in self.items)

    @property
    def preflight_count(self) -> int:
        """How many of the oldest pairs the first attempt leaves out because the prompt is larger than its allowance; 0
        if the settings do not allow that."""
        if not self.settings.preflight_trimming:
            return 0
        return count_to_drop([item.tokens for item in self.items], self.room.beside(self.aut))

    @property
    def first_prompt(self) -> Prompt:
        """The prompt of the first attempt."""
        return self.prompt_without(self.preflight_count)

    @property
    def too_large(self) -> Fault | None:
        """Why the prompt cannot be sent; None if it probably fits, at least without any history."""
        room = self.room
        if room.can_ever_hold(self.prompt.tokens):
            return None
        return prompt_too_large(self.prompt.tokens, room.limit, room.system + room.tools)

    def messages(self, trimmed: int) -> tuple[Message, ...]:
        """The messages without the oldest `trimmed` pairs, ending with the prompt."""
        return (*concatenate(item.messages for item in self.items[trimmed:]), self.user_message)

    def prompt_without(self, trimmed: int) -> Prompt:
        """The prompt for the model, without the oldest `trimmed` pairs. The prelude, possibly empty, is its only
        instruction."""
        return Prompt(
            self.messages(trimmed),
            tools=self.tools,
            instructions=self.prelude,
            **msgspec.structs.asdict(self.parameters),
            conversation=self.conversation,
        )


NO_QUESTION_YET = "…"
"""Stands for the question in a preview before there is one, because not every dialect can express an empty question."""


def plan_of(
    view: View,
    text: str,
    attachments: tuple[Part, ...] = (),
    *,
    before: str = "",
    replaces: str = "",
    is_draft: bool = False,
) -> SendPlan:
    """The plan for a question in this view, as the view is now. `before` is the pair that is asked again in place: only
    older pairs are sent. `replaces` is a pair that will be replaced. An empty question is allowed only if it
    `is_draft`, which is never sent."""
    message = question(text, attachments)
    if message is None and is_draft:
        message = Message("user", (Text(NO_QUESTION_YET),), bare=True)
    if message is None:
        raise Fault(Code.INVALID_REQUEST, "there is nothing to send", hint="Write something, or attach a file.")
    sizer = view.sizer
    included, visible_count = _context(view, before, replaces)
    prompt = sizer.message(message)
    return SendPlan(
        model=view.model,
        settings=view.settings,
        room=view.room,
        shown=view.shown_room,
        items=tuple(
            Item(pair.id, pair.model, sizer.messages(pair), view.size(pair), sizer.cost(pair)) for pair in included
        ),
        visible_count=visible_count,
        filter_version=view.filter_version,
        prelude=view.prelude,
        parameters=view.inherited.parameters,
        tools=sizer.tools,
        user_message=message,
        prompt=prompt,
        size=sizer.correct(prompt),
        aut=sizer.cautious(prompt),
        conversation=f"chat_{view.topic}" if view.topic else "chat",
    )


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
