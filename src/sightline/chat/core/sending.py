"""The send: attempts that get smaller as long as the provider finds them too large.

A generator yields what to do and is sent the outcome, so that a live send, a preview and a test follow the same rules.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, assert_never

from sightline.catalog.compose import Prompt
from sightline.chat.core.pair import (
    TRIMMED_FOR,
    Trouble,
    filter_changed,
    overflow_after_trimming,
    trouble_of,
)
from sightline.chat.core.plan import Item, Selected, SendPlan, SendTelemetry, Stage, TelemetryBudget, summarize
from sightline.chat.core.sizing import band
from sightline.chat.core.view import View
from sightline.errors import Fault
from sightline.model.reply import Usage
from sightline.tokens.estimate import sum_estimates
from sightline.tokens.ledger import READY, Wait
from sightline.tokens.window_budget import count_to_drop

_LEAST_SCALE, _MOST_SCALE = 0.25, 4.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """Send this prompt. `ids` are the pairs in it, `number` counts from 1, `tokens` is its planned size. `telemetry`
    has what happened since the previous step, ending with this attempt."""

    prompt: Prompt
    ids: tuple[str, ...]
    number: int
    tokens: int
    telemetry: tuple[SendTelemetry, ...]


@dataclass(frozen=True, slots=True)
class Pause:
    """A limit of the account is used up: wait, or let the user decide."""

    wait: Wait
    telemetry: tuple[SendTelemetry, ...]


Step: TypeAlias = Attempt | Pause


@dataclass(frozen=True, slots=True)
class Delivered:
    """The provider answered."""

    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class AttemptRefused:
    """The provider refused. `filter_version` is the view's at this moment."""

    fault: Fault
    filter_version: int | None = None


@dataclass(frozen=True, slots=True)
class Resumed:
    """The wait is over, or the user sends it `anyway`."""

    anyway: bool = False


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The user cancelled the send."""


Outcome: TypeAlias = Delivered | AttemptRefused | Resumed | Cancelled


@dataclass(frozen=True, slots=True)
class SendEnding:
    """How the send ended. `sent` has the pairs of the last attempt, and `trimmed` those of the `predicted` that it left
    out; the first `preflight` of these were left out before any attempt. If nothing was sent, both are empty."""

    kind: Literal["delivered", "failed", "cancelled"]
    telemetry: tuple[SendTelemetry, ...]
    predicted: int
    sent: tuple[str, ...]
    trimmed: tuple[str, ...]
    preflight: int
    attempts: int
    fault: Fault | None = None

    @property
    def trouble(self) -> Trouble | None:
        """What is shown instead of the answer; None if there is no fault."""
        return None if self.fault is None else trouble_of(self.fault)


def sending(
    plan: SendPlan, quota: Callable[[int], Wait] = lambda _tokens: READY
) -> Generator[Step, Outcome, SendEnding]:
    """Carry out a plan. `quota` returns how long a request of a given size must wait now."""
    return (yield from _Send(plan, quota).steps())


@dataclass(slots=True)
class _Send:
    plan: SendPlan
    quota: Callable[[int], Wait]
    trimmed: int = 0
    preflight: int = 0
    retries: int = 0
    attempts: int = 0
    overflow: Fault | None = None
    handed_out: int = 0
    telemetry: list[SendTelemetry] = field(default_factory=list)

    def steps(self) -> Generator[Step, Outcome, SendEnding]:
        plan = self.plan
        if (fault := plan.too_large) is not None:
            self._record_telemetry("user_prompt_too_large", error=fault)
            return self._end("failed", fault)
        self.trimmed = self.preflight = plan.preflight_count
        if self.preflight:
            self._record_telemetry("preflight")
        while True:
            if not (yield from self._wait()):
                self._record_telemetry("cancelled")
                return self._end("cancelled")
            match (yield self._attempt()):
                case Delivered(usage=usage):
                    self._record_telemetry("success", usage=usage)
                    return self._end("delivered")
                case Cancelled() | Resumed():
                    self._record_telemetry("cancelled")
                    return self._end("cancelled")
                case AttemptRefused() as refused:
                    refusal = self._handle_refusal(refused)
                case unreachable:
                    assert_never(unreachable)
            if refusal is not None:
                return self._end("failed", refusal)

    def _wait(self) -> Generator[Step, Outcome, bool]:
        """Wait if necessary. Returns False if the send was cancelled."""
        # The calibration alone must not make it too large for the account: it would never be sent, and the calibration
        # never corrected.
        while not (wait := self.quota(self._planned - self.plan.room.learned)).is_over:
            self._record_telemetry("waiting", wait=wait)
            outcome = yield Pause(wait, self._take_new_telemetry())
            if not isinstance(outcome, Resumed):
                return False
            if outcome.anyway:
                break
        return True

    def _attempt(self) -> Attempt:
        self.attempts += 1
        self._record_telemetry("overflow_retry" if self.retries else "attempt", error=self.overflow)
        ids = tuple(item.id for item in self._left)
        return Attempt(
            self.plan.prompt_without(self.trimmed), ids, self.attempts, self._planned, self._take_new_telemetry()
        )

    def _handle_refusal(self, outcome: AttemptRefused) -> Fault | None:
        """The Fault that ends the send, or None if a smaller attempt should be made."""
        fault, plan = outcome.fault, self.plan
        if fault.code not in TRIMMED_FOR:
            self._record_telemetry("error", error=fault)
            return fault
        if not self.retries:
            self._record_telemetry("overflow_initial", error=fault)
        more = self._more_to_trim(fault)
        if not more or self.retries >= plan.settings.max_trim_attempts:
            self._record_telemetry("overflow_exhausted", error=fault)
            return overflow_after_trimming(fault, self.trimmed, self.retries)
        if outcome.filter_version not in (None, plan.filter_version):
            self._record_telemetry("filter_changed", error=fault)
            return filter_changed(fault)
        self.trimmed += more
        self.retries += 1
        self.overflow = fault
        return None

    def _more_to_trim(self, fault: Fault) -> int:
        """How many more of the oldest pairs to leave out: one, or as many as the provider's own figures require. 0 if
        nothing helps, because the prompt alone is too large. If leaving out all pairs would not be enough by our
        estimate, that does not count, because it is only an estimate."""
        left, stated = self._left, fault.numbers
        if not left:
            return 0
        if stated.excess is not None:
            is_hopeless = stated.limit is not None and self.plan.prompt.low > stated.limit
            return _count_covering(left, stated.excess / self._scale(stated.requested)) or (
                0 if is_hopeless else len(left)
            )
        if stated.limit is not None:
            room = stated.limit - self._planned + sum(item.tokens for item in left)
            return max(1, count_to_drop([item.tokens for item in left], room))
        return 1

    def _scale(self, requested: int | None) -> float:
        """The ratio of the provider's tokens to ours."""
        if requested is None:
            return 1.0
        likely = self._history + self.plan.size.tokens + self.plan.shown.system + self.plan.shown.tools
        return min(max(requested / max(1, likely), _LEAST_SCALE), _MOST_SCALE)

    @property
    def _left(self) -> tuple[Item, ...]:
        return self.plan.items[self.trimmed :]

    @property
    def _history(self) -> int:
        return sum(item.estimate.tokens for item in self._left)

    @property
    def _planned(self) -> int:
        """The tokens that this attempt will hardly exceed, without the reply."""
        room = self.plan.room
        return sum(item.tokens for item in self._left) + self.plan.aut + room.system + room.tools + room.margin

    def _end(self, kind: Literal["delivered", "failed", "cancelled"], fault: Fault | None = None) -> SendEnding:
        items, was_sent = self.plan.items, self.attempts > 0
        return SendEnding(
            kind,
            tuple(self.telemetry),
            len(items),
            tuple(item.id for item in self._left) if was_sent else (),
            tuple(item.id for item in items[: self.trimmed]) if was_sent else (),
            self.preflight if was_sent else 0,
            self.attempts,
            fault,
        )

    def _take_new_telemetry(self) -> tuple[SendTelemetry, ...]:
        since, self.handed_out = self.handed_out, len(self.telemetry)
        return tuple(self.telemetry[since:])

    def _record_telemetry(
        self, stage: Stage, *, error: Fault | None = None, usage: Usage | None = None, wait: Wait | None = None
    ) -> None:
        plan, room, settings = self.plan, self.plan.shown, self.plan.settings
        history, asked = self._history, self.plan.size.tokens
        removed = plan.items[: self.trimmed]
        record = SendTelemetry(
            model=plan.model,
            stage=stage,
            budget=TelemetryBudget(room.limit, room.usable),
            selection=_selection(self._left),
            predicted_message_count=len(plan.items),
            predicted_history_tokens=plan.history_tokens,
            predicted_total_tokens=plan.history_tokens + room.user,
            attempt_history_tokens=history,
            attempt_total_tokens=history + asked,
            aut=asked,
            trimmed_count=self.trimmed,
            attempts_used=self.retries,
            chars_per_token=settings.chars_per_token,
            remaining_reserve=room.usable - history - asked,
            messages=summarize(plan.messages(self.trimmed)),
            sent_count=len(plan.items) - self.trimmed,
            visible_count=plan.visible_count,
            user_request_allowance=room.user,
            assistant_response_allowance=room.reply,
            max_trim_attempts=settings.max_trim_attempts,
            system_tokens=room.system,
            tool_tokens=room.tools,
            preflight_trimmed_count=self.preflight,
            trimming_removed=_selection(removed),
            trimming_removed_tokens=sum(item.estimate.tokens for item in removed),
            bands={
                "predictedHistory": band(sum_estimates(item.estimate for item in plan.items)),
                "attemptHistory": band(sum_estimates(item.estimate for item in self._left)),
                "AUT": band(plan.size),
            },
            margin=room.margin,
            last_error_message=None if error is None else error.message,
            overflow_matched=None if error is None else error.code in TRIMMED_FOR,
            final_delivered_tokens=history + asked if stage == "success" else None,
            reported_input_tokens=None if usage is None else usage.input_tokens,
            wait_seconds=None if wait is None or wait.is_endless else wait.seconds,
        )
        self.telemetry.append(record)


def _count_covering(items: tuple[Item, ...], tokens: float) -> int:
    """How many of the first items together have at least this many tokens; 0 if all of them have fewer."""
    for count, item in enumerate(items, 1):
        tokens -= item.estimate.tokens
        if tokens <= 0:
            return count
    return 0


def _selection(items: tuple[Item, ...]) -> tuple[Selected, ...]:
    return tuple(Selected(item.id, item.model, item.estimate.tokens) for item in items)


@dataclass(frozen=True, slots=True)
class ContextCounter:
    """How many pairs are sent: `predicted` is X, `visible` is Y, and `trimmed` is T of the last send, which had
    `predicted_then` pairs. `text` is `X / Y`; after a send that left pairs out, `[X-T]/Y`."""

    text: str
    predicted: int
    visible: int
    trimmed: int
    predicted_then: int
    breakdown: tuple[tuple[str, int], ...]


def counter_of(view: View, last: SendEnding | None = None, prompt: int | None = None) -> ContextCounter:
    """The counter for the currently visible pairs, after the last send. `prompt` is the size planned for the draft."""
    room, predicted, visible = view.shown_room, len(view.visible) - view.start, len(view.visible)
    if last is not None and last.trimmed:
        # If one of the last send's pairs is hidden now, its numbers belong to another history and may be larger than
        # this one.
        standings = {view.standing(pair) for pair in (*last.sent, *last.trimmed)}
        last = last if standings <= {"included", "excluded"} else None
    trimmed = 0 if last is None else len(last.trimmed)
    predicted_then = 0 if last is None else last.predicted
    rows = (
        ("Predicted", predicted),
        ("Predicted tokens", view.figures.history),
        ("Visible", visible),
        ("Left out by hand", len(view.left_out)),
        ("Trimmed", trimmed),
        ("Sent", 0 if last is None else len(last.sent)),
        ("ML", room.limit),
        ("System", room.system),
        ("Tools", room.tools),
        ("URA", room.user),
        ("Reply", room.reply),
        ("Margin", room.margin),
        *(() if prompt is None else (("AUT", prompt),)),
    )
    text = f"[{predicted_then}-{trimmed}]/{visible}" if trimmed else f"{predicted} / {visible}"
    return ContextCounter(text, predicted, visible, trimmed, predicted_then, rows)


def trim_summary(ending: SendEnding) -> str:
    """The message about pairs that were left out; empty if none were."""
    if not ending.trimmed:
        return ""
    count, later = len(ending.trimmed), len(ending.trimmed) - ending.preflight
    reasons = []
    if ending.preflight:
        reasons.append(f"{ending.preflight} before sending, because the prompt takes more than its allowance")
    if later:
        reasons.append(f"{later} because the provider found the request too large")
    verb = "was" if count == 1 else "were"
    return f"{count} of {ending.predicted} pairs {verb} left out: {'; '.join(reasons)}. They are still in the history."
