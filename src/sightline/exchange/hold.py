"""One hold: a request, or the tool calls of a reply, that waits for a person's decision."""

import asyncio
from dataclasses import dataclass
from typing import Any, TypeAlias

from sightline.catalog.choose import ModelChoice
from sightline.editing.draft import Draft, Editing
from sightline.editing.masks import MaskOutcome, project_of
from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.interception.calls_draft import CallsDraft, CallsEditing
from sightline.exchange.interception.rules import InterceptionRule, OnTimeout, Phase
from sightline.exchange.kept_edits import KeptEdits
from sightline.exchange.recorder import Recorder
from sightline.exchange.rule_subject import session_of
from sightline.model.exchange import Held
from sightline.model.reply import Reply
from sightline.model.report import Report
from sightline.transport.clock import Clock

_SDKS = ("openai/", "anthropic/", "asyncopenai/", "asyncanthropic/", "azureopenai/")
_PATIENCE_OF_SDKS = 600.0
"""Seconds after which the vendors' libraries give a whole answer up."""


@dataclass(frozen=True, slots=True)
class Let:
    """It goes on as it stands: these bytes, which have this hash."""

    data: bytes
    sha256: str


@dataclass(frozen=True, slots=True)
class Drop:
    """It does not go on."""

    reason: str


@dataclass(frozen=True, slots=True)
class ByHand:
    """A person has written the reply."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class Shutdown:
    """The server ends, and nobody can decide any more."""


Decision: TypeAlias = Let | Drop | ByHand | Shutdown


class Hold:
    """What is held, since when and until when, both as times of day. `editing` is the document under edit with its
    history; `masks` says what became of the masks that were put on it before. `kept` are the masks that its own edits
    have made; tool calls have none."""

    def __init__(
        self,
        live: Recorder,
        choice: ModelChoice,
        editing: Editing | CallsEditing,
        rule: InterceptionRule,
        *,
        now: float,
        report: Report | None = None,
        masks: tuple[MaskOutcome, ...] = (),
    ) -> None:
        self.live = live
        self.choice = choice
        self.editing = editing
        self.rule = rule
        self.since = now
        self.report = report
        self.masks = masks
        self.kept = KeptEdits(editing.draft) if isinstance(editing, Editing) else None
        self._decision: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()

    @property
    def exchange(self) -> str:
        """The id of its exchange."""
        return self.live.exchange

    @property
    def asked(self) -> ClientRequest:
        """The client's request."""
        return self.live.asked

    @property
    def phase(self) -> Phase:
        """Whether the request is held, or the tool calls of its reply."""
        return "request" if isinstance(self.editing, Editing) else "tool_calls"

    @property
    def draft(self) -> Draft | CallsDraft:
        """The document on screen."""
        return self.editing.draft

    @property
    def kept_ids(self) -> tuple[str, ...]:
        """The ids of the masks that its edits have made, as it stands now."""
        draft = self.draft
        return tuple(self.kept.at(draft)) if self.kept is not None and isinstance(draft, Draft) else ()

    @property
    def deadline(self) -> float | None:
        """When the rule decides, if nobody has; None where there is no limit."""
        return None if self.rule.timeout_s is None else self.since + self.rule.timeout_s

    @property
    def on_timeout(self) -> OnTimeout:
        """What the rule decides then."""
        return self.rule.on_timeout

    @property
    def client_deadline(self) -> float | None:
        """When the client is likely to give up: one that wants a whole answer cannot be told anything before."""
        program = self.asked.headers_by_name().get("user-agent", "").lower()
        is_sdk = program.startswith(_SDKS)
        return self.since + _PATIENCE_OF_SDKS if is_sdk and not self.asked.is_stream else None

    @property
    def session(self) -> str:
        """The session that it belongs to, empty where nothing says."""
        return session_of(self.asked)

    @property
    def project(self) -> str:
        """The project of that session."""
        return project_of(self.session)

    @property
    def is_open(self) -> bool:
        """Whether nothing is decided yet."""
        return not self._decision.done()

    def decide(self, decision: Decision) -> None:
        """The first decision counts; for any other it is too late."""
        if not self.is_open:
            raise not_held(self.exchange)
        self._decision.set_result(decision)

    async def wait_for_decision(self, clock: Clock) -> Decision:
        """Wait, no longer than the rule says. To be cancelled means that the client has gone."""
        self.live.record_hold(Held(self.phase))
        if self.rule.timeout_s is None:
            return await self._decision
        limit = asyncio.get_running_loop().create_task(clock.sleep(self.rule.timeout_s))
        either: set[asyncio.Future[Any]] = {self._decision, limit}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._decision.cancel()
            raise
        finally:
            limit.cancel()
            await asyncio.wait({limit})
        if self.is_open:
            self._expire(self.rule.timeout_s)
        return self._decision.result()

    def _expire(self, seconds: float) -> None:
        if self.on_timeout == "drop":
            reason = f"nobody decided within {seconds:g} s"
            self.live.drop(reason)
            self.decide(Drop(reason))
            return
        draft = self.draft
        self.live.record_release(draft.sha256)
        self.decide(Let(draft.data, draft.sha256))


def not_held(exchange: str) -> Fault:
    """The fault of whoever comes too late, or to the wrong one."""
    hint = "It was sent, dropped or left by its client before; GET /api/holds lists what is held."
    return Fault(Code.INVALID_REQUEST, f"exchange {exchange!r} is not held", hint=hint, status=409)
