"""Answers out of the record, to requests that say the same as recorded ones. A miss is loud, and nothing is sent."""

import msgspec

from sightline.errors import Fault
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.model_target import ModelTarget
from sightline.evals.service.observation import observe_reply
from sightline.evals.service.target import CaseQuestion, TargetAnswer, no_answer
from sightline.exchange.recording.library import Library
from sightline.exchange.recording.likeness import lines_of
from sightline.exchange.replay_handler import no_recording


class ReplayTarget:
    """The trial says which of several recordings of the same request answers; behind the last, the last again."""

    def __init__(self, model: ModelTarget, library: Library) -> None:
        self._model = model
        self._library = library

    @property
    def spec(self) -> TargetSpec:
        """How it was described."""
        return self._model.spec

    async def answer(self, wanted: CaseQuestion) -> TargetAnswer:
        """The recorded answer; where there is none, the nearest recording and in what it differs."""
        try:
            ready = self._model.final(self._model.prepare(wanted.messages, wanted.tools))
            lines = lines_of(ready.dialect, ready.body, ready.choice.model)
            recorded = await self._library.at(lines, wanted.trial, ready.dialect)
            if recorded is None:
                raise await no_recording(self._library, lines)
            reply = recorded.reply()
        except Fault as fault:
            return no_answer(wanted, fault, cost=0.0)
        seconds = recorded.frames[-1].after if recorded.frames else None
        observation = msgspec.structs.replace(
            observe_reply(reply, self._model.choice),
            asked=wanted.messages,
            question=wanted.question,
            exchanges=(recorded.id,),
            request_sha256=ready.sha256,
            seconds=seconds,
        )
        return TargetAnswer(observation, is_cached=True)

    async def close(self) -> None:
        """Nothing was started."""
