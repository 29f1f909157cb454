"""A pair as the page shows it, with its answer so far."""

from collections.abc import Callable
from typing import TypeAlias

from sightline.catalog.facts import Prices
from sightline.chat.api.files import size_of
from sightline.chat.api.shapes import (
    AnswerShown,
    AttachmentShown,
    CitationShown,
    PairOpened,
    PairShown,
    TokenBand,
    TroubleShown,
)
from sightline.chat.core.attachment import kind_of, name_of
from sightline.chat.core.pair import ChatAnswer, MessagePair, Trouble
from sightline.chat.core.plan import SendTelemetry
from sightline.chat.core.sizing import Sizer
from sightline.chat.core.view import Standing, View
from sightline.chat.service.blocks import blocks_of
from sightline.chat.service.service import ChatService
from sightline.model.parts import Part
from sightline.tokens.estimate import Estimate, cost_of

ModelPrices: TypeAlias = Callable[[str], Prices | None]
"""The prices of a model, by its name in the chat."""


class PairShowing:
    """Shows pairs. The answer that is arriving is taken from memory."""

    def __init__(self, service: ChatService, prices: ModelPrices) -> None:
        self._service = service
        self._prices = prices

    def row(self, pair: MessagePair, view: View) -> PairShown:
        """The pair as it is in a view."""
        return PairShown(**self._fields(pair, view.sizer, view.standing(pair.id)))  # type: ignore[arg-type]

    def details(self, pair: MessagePair, view: View | None, telemetry: tuple[SendTelemetry, ...]) -> PairOpened:
        """The pair with all its details."""
        standing: Standing = "hidden" if view is None else view.standing(pair.id)
        fields = self._fields(pair, None if view is None else view.sizer, standing)
        return PairOpened(
            **fields,  # type: ignore[arg-type]
            earlier_answers=tuple(self.answer(each, pair.model) for each in self.earlier(pair)),
            telemetry=telemetry,
        )

    def answer_of(self, pair: MessagePair) -> ChatAnswer | None:
        """Its answer; while it is being sent, what has arrived so far."""
        if pair.state != "sending":
            return pair.answer
        so_far = self._service.sends.so_far(pair.id)
        return so_far if so_far is not None and so_far.messages else None

    def answer(self, answer: ChatAnswer, model: str) -> AnswerShown:
        """An answer of this model."""
        cost = None if answer.usage is None else cost_of(answer.usage, self._prices(model))
        return AnswerShown(
            blocks=blocks_of(answer),
            text=answer.text,
            citations=tuple(CitationShown(each.title, each.url, each.cited_text) for each in answer.citations),
            finish=answer.finish,
            reason=answer.reason,
            is_partial=answer.is_partial,
            model=answer.model,
            usage=answer.usage,
            predicted=answer.predicted,
            cost=None if cost is None else cost.dollars,
            seconds=answer.seconds,
            exchange=answer.exchange,
            at=answer.at,
            run=answer.run,
        )

    def earlier(self, pair: MessagePair) -> tuple[ChatAnswer, ...]:
        """The earlier answers, including the one that is kept until a new one has arrived."""
        is_kept = pair.state == "sending" and pair.answer is not None
        return (*pair.earlier, pair.answer) if is_kept and pair.answer is not None else pair.earlier

    def _fields(self, pair: MessagePair, sizer: Sizer | None, standing: Standing) -> dict[str, object]:
        answer = self.answer_of(pair)
        model = pair.asking or pair.model
        return {
            "id": pair.id,
            "topic": pair.topic,
            "topic_path": self._path(pair.topic),
            "model": pair.model,
            "asking": pair.asking,
            "user_text": pair.user_text,
            "attachments": tuple(_attachment(n, part) for n, part in enumerate(pair.attachments)),
            "answer": None if answer is None else self.answer(answer, model),
            "earlier": len(self.earlier(pair)),
            "star": pair.star,
            "flag": pair.flag,
            "state": pair.state,
            "trouble": trouble(pair.trouble),
            "hand": pair.hand,
            "at": pair.at,
            "exchange": pair.exchange,
            "summary_of": pair.summary_of,
            "standing": standing,
            "tokens": TokenBand(0, 0, 0) if sizer is None else band(sizer.pair(pair)),
            "is_edited": pair.is_edited,
            "run": pair.run or ("" if answer is None else answer.run),
        }

    def _path(self, topic: str) -> tuple[str, ...]:
        topics = self._service.chat.history.topics
        return topics.path(topic) if topic in topics else ()


def band(estimate: Estimate) -> TokenBand:
    """An estimate with its band."""
    return TokenBand(estimate.tokens, estimate.low, estimate.high)


def trouble(cause: Trouble | None) -> TroubleShown | None:
    """What is shown instead of an answer."""
    return (
        None
        if cause is None
        else TroubleShown(cause.code, cause.message, cause.label, cause.hint, cause.line, cause.reason)
    )


def _attachment(n: int, part: Part) -> AttachmentShown:
    media_type, size = size_of(part)
    return AttachmentShown(n, kind_of(part), name_of(part), media_type, size)
