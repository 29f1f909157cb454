"""Where requests and replies are stopped on their way: masks are put on, rules decide, and a person is waited for."""

from collections.abc import Awaitable
from dataclasses import replace
from typing import assert_never

from msgspec import structs

from sightline.dialects.dialect import Client
from sightline.editing.draft import Draft, Editing
from sightline.errors import Code, Fault
from sightline.exchange import answers
from sightline.exchange.client_response import ClientResponse, WholeBody
from sightline.exchange.exchange import Journey
from sightline.exchange.final_body import FinalBody, refuse_other
from sightline.exchange.hold import ByHand, Drop, Hold, Let, Shutdown
from sightline.exchange.holds import Holds
from sightline.exchange.interception.calls_draft import CallsDraft, CallsEditing
from sightline.exchange.interception.reply_writing import write_reply
from sightline.exchange.interception.rules import EVERY, InterceptionRule
from sightline.exchange.keepalive import wants_usage
from sightline.exchange.outbound import Outbound
from sightline.exchange.recorder import Recorder
from sightline.exchange.reply_reader import BodyDecoder, ReplyReader
from sightline.exchange.rule_subject import RuleSubject, session_of
from sightline.model.reply import Reply
from sightline.transport.clock import Clock


class Interceptor:
    """Stops what the holds say, and what its sender wants to be stopped. It is not asked where there is neither."""

    def __init__(self, holds: Holds, clock: Clock) -> None:
        self._holds = holds
        self._clock = clock

    # --- a request ---

    async def request(self, journey: Journey, live: Recorder, outbound: Outbound, digest: str) -> Let | ClientResponse:
        """What goes out in place of this body, which is on record by its hash; or the answer, if nothing goes out."""
        final = self._final(journey, live, outbound, digest)
        subject = self._subject(journey)
        journey.is_stopped = self._holds.may_want_calls(subject)
        rule = self._holds.decide(subject, "request")
        if journey.asked.hold and (rule is None or rule.action == "pass"):
            rule = EVERY  # whoever sent it is there, and takes the time that it takes
        if rule is None or rule.action == "pass":
            return Let(final.data, digest if final.draft is None else final.sha256)
        if rule.action == "drop":
            raise _drop_by_rule(rule, live)
        draft = final.draft or Draft.of(outbound.body, journey.chosen.dialect, journey.chosen.model)
        now = self._clock.now()
        hold = Hold(live, journey.chosen, Editing(draft), rule, now=now, report=outbound.report, masks=final.outcomes)
        decision = await self._wait_for_decision(journey, hold)
        if isinstance(decision, Let):
            return decision
        live.record_head(200, ())
        data = self._write_reply(journey, decision.reply)
        live.record_chunk(data)
        live.finish(decision.reply)
        return self._reply_response(journey, data)

    def _final(self, journey: Journey, live: Recorder, outbound: Outbound, digest: str) -> FinalBody:
        """The body after masks, on record where they changed it; a fault where another one was expected."""
        asked, chosen = journey.asked, journey.chosen
        final = self._holds.final_body(
            outbound.body, chosen.dialect, chosen.model, session=session_of(asked), masks=asked.masks
        )
        if final.draft is not None:
            self._holds.note_outcomes(journey.exchange, final.outcomes)
            if final.sha256 != digest:
                live.record_masking(digest, final.sha256, final.data)
        refuse_other(asked.expect_sha256, digest if final.draft is None else final.sha256)
        return final

    # --- a reply ---

    async def reply(self, journey: Journey, live: Recorder, coming: Awaitable[ClientResponse]) -> ClientResponse:
        """The reply once it is whole and, if it calls tools, once a person has seen the calls."""
        live.postpone()
        try:
            with journey.patience.hold_open(), journey.waiting():
                relayed = await coming
                body = await _read_body(relayed)
        except BaseException:
            live.conclude()
            raise
        live.reopen()
        reply = _read(journey.asked.dialect, relayed, body)
        rule = self._rule_for_calls(journey, reply)
        if rule is None or rule.action == "pass":
            live.conclude()
            return relayed.with_body(body)
        if rule.action == "drop":
            raise _drop_by_rule(rule, live)
        first = CallsDraft.of(reply)
        live.keep_reply_document(first.sha256, first.data)
        hold = Hold(live, journey.chosen, CallsEditing(first), rule, now=self._clock.now())
        decision = await self._wait_for_decision(journey, hold)
        draft = hold.draft
        assert isinstance(draft, CallsDraft)  # as it began
        if isinstance(decision, Let) and not draft.is_dirty:
            live.conclude()
            return relayed.with_body(body)
        if isinstance(decision, Let):
            reply = draft.reply(reply)
            live.record_reply(reply)
        else:
            reply = decision.reply
        data = self._write_reply(journey, reply)
        live.finish(reply)
        return self._reply_response(journey, data)

    def _rule_for_calls(self, journey: Journey, reply: Reply) -> InterceptionRule | None:
        calls = tuple(dict.fromkeys(call.name for choice in reply.choices for call in choice.tool_calls))
        if not calls or reply.fault is not None:
            return None
        return self._holds.decide(self._subject(journey, calls), "tool_calls")

    # --- either ---

    async def _wait_for_decision(self, journey: Journey, hold: Hold) -> Let | ByHand:
        self._holds.add(hold)
        try:
            with journey.patience.hold_open(), journey.waiting():
                decision = await hold.wait_for_decision(self._clock)
        finally:
            self._holds.forget(hold)
        match decision:
            case Let() | ByHand():
                return decision
            case Drop(reason=reason):
                raise drop_fault(reason)
            case Shutdown():
                hold.live.cancel("shutdown")
                raise _ending()
            case unreachable:
                assert_never(unreachable)

    def _subject(self, journey: Journey, tools: tuple[str, ...] = ()) -> RuleSubject:
        now, losses = self._clock.now(), journey.losses
        return RuleSubject(journey.exchange, journey.asked, journey.chosen, at=now, losses=losses, tools=tools)

    def _write_reply(self, journey: Journey, reply: Reply) -> bytes:
        """A reply that a person wrote or changed, in the words of the client."""
        asked = journey.asked
        client = Client(
            include_usage=reply.usage is not None and wants_usage(asked),
            id=reply.id or journey.exchange,
            model=reply.model or asked.model,
            created=reply.created or int(self._clock.now()),
            as_array=asked.wants_array,
        )
        data = write_reply(reply, asked.dialect, client, is_stream=asked.is_stream)
        return answers.without(data, journey.secrets)

    def _reply_response(self, journey: Journey, data: bytes) -> ClientResponse:
        if journey.asked.is_stream:
            return ClientResponse(
                journey.exchange, 200, [*answers.stream_headers(journey.asked), *journey.own_headers()], WholeBody(data)
            )
        headers = [(b"content-type", b"application/json")]
        return answers.whole(journey.exchange, 200, headers, data, journey.own_headers())


def carrying(outbound: Outbound, let: Let) -> Outbound:
    """The same request with the body that was let go; another body than the client's goes out uncoded."""
    if let.data == outbound.body:
        return outbound
    headers = tuple(each for each in outbound.request.headers if each[0].lower() != "content-encoding")
    return structs.replace(outbound, request=replace(outbound.request, headers=headers, body=let.data), body=let.data)


def drop_fault(reason: str) -> Fault:
    """What a client is told of a request that was dropped: an error upon which nobody tries again."""
    return Fault(
        Code.INVALID_REQUEST,
        f"this request was dropped in Sightline: {reason}",
        hint="Whoever watches the traffic has refused it; ask them, or change the request.",
        status=400,
    )


def _drop_by_rule(rule: InterceptionRule, live: Recorder) -> Fault:
    reason = f"a rule drops it ({rule.filter})" if rule.filter else "a rule drops everything"
    live.drop(reason)
    return drop_fault(reason)


def _ending() -> Fault:
    hint = "Send the request again later."
    return Fault(Code.OVERLOADED, "Sightline is shutting down while the request is held", hint=hint, status=503)


async def _read_body(relayed: ClientResponse) -> bytes:
    async with relayed:
        return b"".join([piece async for piece in relayed])


def _read(spoken: str, relayed: ClientResponse, body: bytes) -> Reply:
    """What a client would read; nothing where it cannot be read."""
    coding = answers.header(tuple(relayed.headers), b"content-encoding").strip().lower()
    reading = ReplyReader(spoken)
    if relayed.status >= 400:
        return reading.reply
    reading.feed(body if coding in ("", "identity") else BodyDecoder(coding).feed(body))
    reading.close()
    return reading.reply
