"""What happened in a run, round by round: one request, its reply, and what became of each call in it."""

from typing import Literal, TypeAlias

import msgspec

from sightline.agent.core.approval import DeniedBy
from sightline.agent.core.arguments import Repair
from sightline.agent.core.conversation import Amendment
from sightline.agent.core.limits import Reached, RunUsage
from sightline.agent.core.output import ToolOutcome
from sightline.errors import CancelReason
from sightline.model.json import Json
from sightline.model.parts import Opaque, Text, Thinking
from sightline.model.reply import Finish, Reply
from sightline.model.request import Request
from sightline.model.usage import Usage

Fate: TypeAlias = Literal["ran", "refused", "denied", "answered", "cancelled", "limit", "cut"]
Why: TypeAlias = Literal["answered", "length", "content_filter", "refusal", "limit", "cancelled", "failed"]


class CallRecord(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One call and its result. `arguments` are as the model wrote them, `ran` what the tool was given, if it ran.

    `id` is the model's, `sent_id` the one that goes back where a provider would not take the model's own. `denied_by`
    says who did not allow it.
    """

    key: str
    id: str
    name: str
    arguments: str
    fate: Fate
    outcome: ToolOutcome | None = None
    ran: dict[str, Json] | str | None = None
    sent_id: str | None = None
    is_edited: bool = False
    denied_by: DeniedBy | None = None
    repairs: tuple[Repair, ...] = ()


class Round(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One request and what came of it. `mistakes` is how many rounds in a row had a call that could not be run.

    `marker` is the id under which the provider knows the reply. `server` is what the provider's own tools did.
    """

    number: int
    reply: Reply
    calls: tuple[CallRecord, ...] = ()
    usage: Usage | None = None
    cost: float | None = None
    mistakes: int = 0
    context: str = ""
    amendments: tuple[Amendment, ...] = ()

    @property
    def text(self) -> str:
        """The words of the reply."""
        return "".join(part.text for part in self.reply.choice.parts if isinstance(part, Text))

    @property
    def thinking(self) -> tuple[Thinking, ...]:
        """The reasoning of the reply, sealed or not."""
        return tuple(part for part in self.reply.choice.parts if isinstance(part, Thinking))

    @property
    def server(self) -> tuple[Opaque, ...]:
        """What the provider did by itself: recorded, never run here."""
        return tuple(part for part in self.reply.choice.parts if isinstance(part, Opaque))

    @property
    def finish(self) -> Finish | None:
        """How the reply ended."""
        return self.reply.choice.finish

    @property
    def marker(self) -> str | None:
        """The provider's id of the reply."""
        return self.reply.id


class FinishedRun(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How a run ended. `request` holds the whole conversation and can be continued. `reason` is why it was
    cancelled."""

    why: Why
    request: Request
    rounds: tuple[Round, ...] = ()
    spent: RunUsage = RunUsage()
    reached: Reached | None = None
    amendments: tuple[Amendment, ...] = ()
    reason: CancelReason | None = None

    @property
    def reply(self) -> Reply | None:
        """The last reply, with its fault where that is why the run ended."""
        return self.rounds[-1].reply if self.rounds else None
