"""Interception of one exchange: applies masks, decides by the rules, and waits for a user."""

from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import assert_never

import msgspec

from sightline.dialects.dialect import Client
from sightline.editing.draft import Draft
from sightline.errors import Code, Fault
from sightline.exchange import client_response
from sightline.exchange.client_request import ClientRequest, session_of
from sightline.exchange.client_response import ClientResponse, WholeBody
from sightline.exchange.exchange import Exchange
from sightline.exchange.interception.core.drafts import CallsDraft, RawDraft
from sightline.exchange.interception.core.reply_writing import write_reply
from sightline.exchange.interception.core.rules import EVERY, InterceptionRule, Phase
from sightline.exchange.interception.hold import (
    Drop,
    HeldCalls,
    HeldRaw,
    HeldRequest,
    Hold,
    Release,
    Shutdown,
    UserReply,
)
from sightline.exchange.interception.holds import Holds
from sightline.exchange.interception.kept_edits import FinalBody, KeptEdits, refuse_other
from sightline.exchange.interception.rule_subject import RuleSubject, subject_of
from sightline.exchange.keepalive import wants_usage
from sightline.exchange.outbound import Outbound
from sightline.exchange.phase import CancelledEnd, DroppedEnd, FinishedEnd
from sightline.exchange.recorder import tools_of
from sightline.exchange.reply_reader import ReplyReader, decode_body
from sightline.model.reply import Reply
from sightline.transport.waiting import Clock


class Interceptor:
    """Holds what the rules hold, and requests whose sender asks for it."""

    def __init__(self, holds: Holds, clock: Clock) -> None:
        self._holds = holds
        self._clock = clock

    def concerns(self, request: ClientRequest) -> bool:
        """Whether the request may be changed or held. Requests that only count tokens never are."""
        return (request.hold or not self._holds.is_idle) and not request.counts

    # --- a request ---

    def apply_masks(self, exchange: Exchange, outbound: Outbound, digest: str) -> FinalBody:
        """The body after masks, recorded if they changed it. Raises a fault if the sender expected another body."""
        request, choice = exchange.request, exchange.choice
        final = self._holds.final_body(
            outbound.body, choice.dialect, choice.model, session=session_of(request), masks=request.masks
        )
        if final.draft is None:
            final = replace(final, digest=digest)
        else:
            self._holds.note_outcomes(exchange.id, final.outcomes)
            if final.sha256 != digest:
                exchange.recorder.record_masking(digest, final.sha256, final.data)
        refuse_other(request.expect_sha256, final.sha256)
        return final

    async def hold_request(
        self, exchange: Exchange, outbound: Outbound, final: FinalBody, over: Fault | None = None
    ) -> Release | UserReply:
        """The body to send, immediately or after a user has released it; or the reply that a user wrote instead. The
        request is always held if it is `over` a cap.

        Raises a fault if a rule or a user drops the request, and `over` if no user can decide.
        """
        subject = self._subject(exchange)
        exchange.holds_calls = self._holds.may_want_calls(subject)
        if exchange.request.was_sent:
            return Release(final.data, final.sha256)
        rule = self._rule_for_request(exchange, subject, over)
        if rule is None:
            return Release(final.data, final.sha256)
        draft = final.draft or Draft.of(outbound.body, exchange.choice.dialect, exchange.choice.model)
        applied = {each.mask for each in final.outcomes if each.outcome == "applied"}
        hold = HeldRequest(exchange, draft, rule, now=self._clock.now(), reason="" if over is None else over.message)
        hold.report, hold.masks = outbound.report, final.outcomes
        hold.kept = KeptEdits(draft, tuple(mask for mask in self._holds.masks if mask.id in applied))
        return await self._wait_for_decision(exchange, hold)

    async def hold_raw(self, exchange: Exchange, draft: RawDraft, over: Fault | None = None) -> Release:
        """The body of a raw request to send, immediately or after a user has released it; `over` and the faults are
        those of `hold_request`."""
        rule = self._rule_for_request(exchange, self._subject(exchange), over)
        if rule is None:
            return Release(draft.data, draft.sha256)
        reason = "" if over is None else over.message
        hold = HeldRaw(exchange, draft, rule, now=self._clock.now(), reason=reason)
        decision = await self._wait_for_decision(exchange, hold)
        assert isinstance(decision, Release)  # no user can write its response
        return decision

    def _rule_for_request(
        self, exchange: Exchange, subject: RuleSubject, over: Fault | None
    ) -> InterceptionRule | None:
        """The rule by which a request is held; None if it is not. Raises a fault if a rule drops it, and `over` if no
        user can decide."""
        rule = self._holds.decide(subject, "request")
        if rule is None or rule.action == "pass":
            if over is not None and not exchange.request.hold and not self._holds.is_attended:
                raise over
            # The user who asked to see it, or who can raise the cap, has no time limit.
            return EVERY if over is not None or exchange.request.hold else None
        if rule.action == "drop":
            raise _drop_by_rule(rule, exchange)
        return rule

    def answer_by_hand(self, exchange: Exchange, reply: Reply) -> ClientResponse:
        """The response with a reply that a user wrote; nothing is sent to the provider."""
        exchange.recorder.record_head(200, ())
        data = self._write_reply(exchange, _with_stored_id(exchange, reply))
        exchange.recorder.record_chunk(data)
        exchange.end(FinishedEnd(reply))
        return self._reply_response(exchange, data)

    # --- the tool calls of a reply ---

    async def hold_calls(self, exchange: Exchange, reading: Awaitable[ClientResponse]) -> ClientResponse:
        """The response, once it is complete and, if it calls tools, once a user has decided about the calls."""
        try:
            with exchange.waiting_for_user():
                response = await reading
                async with response:
                    body = b"".join([piece async for piece in response])
        except BaseException:
            exchange.conclude()
            raise
        exchange.settle_response()
        reply = _read_reply(exchange.request.dialect, response, body)
        calls = () if reply.fault is not None else tools_of(reply)
        rule = self._holds.decide(self._subject(exchange, calls), "tool_calls") if calls else None
        if rule is None or rule.action == "pass":
            exchange.conclude()
            response.set_body(body)
            return response
        if rule.action == "drop":
            raise _drop_by_rule(rule, exchange)
        first = CallsDraft.of(reply)
        exchange.recorder.keep_reply_document(first.sha256, first.data)
        hold = HeldCalls(exchange, first, rule, now=self._clock.now())
        decision = await self._wait_for_decision(exchange, hold)
        if isinstance(decision, Release) and not hold.draft.is_dirty:
            exchange.conclude()
            response.set_body(body)
            return response
        if isinstance(decision, Release):
            reply = hold.draft.reply(reply)
            exchange.recorder.record_reply(reply)
        else:
            reply = _with_stored_id(exchange, decision.reply)
        data = self._write_reply(exchange, reply)
        exchange.end(FinishedEnd(reply))
        return self._reply_response(exchange, data)

    # --- requests and tool calls ---

    async def _wait_for_decision(self, exchange: Exchange, hold: Hold) -> Release | UserReply:
        self._holds.add(hold)
        try:
            with exchange.waiting_for_user():
                decision = await hold.wait_for_decision(self._clock)
        finally:
            self._holds.forget(hold)
        match decision:
            case Release() | UserReply():
                return decision
            case Drop(reason=reason):
                raise _drop_fault(reason, hold.phase)
            case Shutdown():
                exchange.end(CancelledEnd("shutdown"))
                message = "Sightline is shutting down while the request is held"
                raise Fault(Code.OVERLOADED, message, hint="Send the request again later.", status=503)
            case unreachable:
                assert_never(unreachable)

    def _subject(self, exchange: Exchange, tools: tuple[str, ...] = ()) -> RuleSubject:
        return subject_of(exchange, at=self._clock.now(), tools=tools)

    def _write_reply(self, exchange: Exchange, reply: Reply) -> bytes:
        """A reply that a user wrote or changed, in the client's dialect."""
        request = exchange.request
        client = Client(
            include_usage=reply.usage is not None and wants_usage(request),
            id=reply.id or exchange.id,
            model=reply.model or request.model,
            created=reply.created or int(self._clock.now()),
            as_array=request.wants_array,
        )
        data = write_reply(reply, request.dialect, client, is_stream=request.is_stream)
        return client_response.without(data, exchange.secrets)

    def _reply_response(self, exchange: Exchange, data: bytes) -> ClientResponse:
        if exchange.request.is_stream:
            headers = [*client_response.stream_headers(exchange.request), *exchange.own_headers()]
            return ClientResponse(exchange.id, 200, headers, WholeBody(data))
        headers = [(b"content-type", b"application/json")]
        return client_response.whole(exchange.id, 200, headers, data, exchange.own_headers())


def _with_stored_id(exchange: Exchange, reply: Reply) -> Reply:
    """A reply that a user wrote, with the id by which its client can retrieve it: no provider has it."""
    stored = exchange.store_reply(reply.created or 0)
    return msgspec.structs.replace(reply, id=stored) if stored else reply


_DROPPED: Mapping[Phase, tuple[str, str]] = {
    "request": ("this request was", "the request"),
    "tool_calls": ("the tool calls of this reply were", "the tool calls of the reply"),
}


def _drop_fault(reason: str, phase: Phase) -> Fault:
    """The fault for a dropped request, or for dropped tool calls: an error that client libraries do not retry."""
    what, refused = _DROPPED[phase]
    return Fault(
        Code.INVALID_REQUEST,
        f"{what} dropped in Sightline: {reason}",
        hint=f"A rule, or the user who watches the traffic, refused {refused}.",
        status=400,
    )


def _drop_by_rule(rule: InterceptionRule, exchange: Exchange) -> Fault:
    reason = f"a rule drops it ({rule.filter})" if rule.filter else "a rule drops everything"
    exchange.end(DroppedEnd(reason))
    return _drop_fault(reason, rule.phase)


def _read_reply(spoken: str, response: ClientResponse, body: bytes) -> Reply:
    """The reply that the client would read; empty if there is none, or it cannot be parsed."""
    reader = ReplyReader(spoken)
    if response.status < 400:
        reader.feed(decode_body(client_response.header(tuple(response.headers), b"content-encoding"), body))
        reader.close()
    return reader.reply
