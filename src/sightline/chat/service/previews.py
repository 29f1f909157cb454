"""The exact bytes of the next send, before it is sent."""

from dataclasses import dataclass

from sightline.chat.core.pair import Trouble, prompt_too_large, trouble_of
from sightline.chat.core.plan import SendPlan, plan_of
from sightline.chat.core.sizing import question
from sightline.chat.service.answerer import SESSION, measure
from sightline.chat.service.sends import first_request
from sightline.chat.service.views import Looking, Views
from sightline.errors import Fault
from sightline.exchange.engine import Engine
from sightline.exchange.prepare import Prepared
from sightline.model.parts import Part
from sightline.tokens.estimate import Estimate, exactly


@dataclass(frozen=True, slots=True)
class SendPreview:
    """`prepared` is the first attempt, where there can be one; `included` are the pairs in it, and `left_out_preflight`
    those that the prompt takes the room of. `trouble` is why it would not be sent, or not in this way."""

    prepared: Prepared | None = None
    plan: SendPlan | None = None
    included: int = 0
    left_out_preflight: int = 0
    estimate: Estimate | None = None
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class Sized:
    """How large the next request is: for the send button, with its band, and whether it can be sent at all. `prompt` is
    what is planned for the question alone."""

    estimate: Estimate
    limit: int
    fits: bool
    line: str
    prompt: int = 0


@dataclass(frozen=True, slots=True)
class Previews:
    """Looks ahead by the same steps that a send takes, and sends nothing."""

    views: Views
    engine: Engine

    async def preview(
        self, view: str, text: str, attachments: tuple[Part, ...] = (), *, before: str = "", replaces: str = ""
    ) -> SendPreview:
        """The body of the next send from this view; `before` and `replaces` as a send has them."""
        looking = await self.views.get(view)
        text, attachments = self.views.mask_question(text, attachments)
        try:
            plan = plan_of(looking.view, text, attachments, before=before, replaces=replaces)
            ready = self.engine.final(first_request(plan, looking.choice), session=SESSION)
        except Fault as fault:
            return SendPreview(trouble=trouble_of(fault))
        left_out = plan.preflight_count if plan.settings.preflight_trimming else 0
        included = len(plan.items) - left_out
        return SendPreview(ready, plan, included, left_out, await measure(self.engine, ready), _trouble(looking, plan))

    async def estimate(self, view: str, text: str, attachments: tuple[Part, ...] = (), *, replaces: str = "") -> Sized:
        """How large the request with this question is: the preview's own number."""
        looking = await self.views.get(view)
        text, attachments = self.views.mask_question(text, attachments)
        limit = looking.view.room.limit
        if question(text, attachments) is None:
            nothing = exactly(0, "nothing to send")
            return Sized(nothing, limit, True, _line(nothing))
        plan = plan_of(looking.view, text, attachments, replaces=replaces)
        try:
            ready = self.engine.final(first_request(plan, looking.choice), session=SESSION)
            estimate = await measure(self.engine, ready)
        except Fault:  # it cannot be written for this model, which the send will say
            estimate = plan.prompt
        return Sized(estimate, limit, not plan.is_too_large, _line(estimate), plan.aut)


def _trouble(looking: Looking, plan: SendPlan) -> Trouble | None:
    if looking.trouble is not None:
        return trouble_of(looking.trouble)
    room = plan.room
    if plan.is_too_large:
        return trouble_of(prompt_too_large(plan.prompt.tokens, room.limit, room.system + room.tools))
    return None


def _line(estimate: Estimate) -> str:
    if estimate.is_exact:
        return f"{estimate.tokens:,}"
    band = max(estimate.high - estimate.tokens, estimate.tokens - estimate.low)
    return f"~{estimate.tokens:,} ± {band:,}"
