"""The API calls for the calibration of token estimates: show it, and reset it."""

from collections.abc import Awaitable, Callable

import msgspec

from sightline.exchange.memory import Memory
from sightline.tokens.calibration import Lesson
from sightline.web.bodies import read_body
from sightline.web.routes import ApiCall, Calls


class ForgetWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Forget the calibration of this model, `provider/model` or its name alone; without one, of all models."""

    model: str = ""


class LearnedShown(msgspec.Struct, frozen=True):
    """The calibration of each model: its estimates are multiplied by `factor`, plus `added`."""

    lessons: tuple[Lesson, ...]


class ForgottenShown(msgspec.Struct, frozen=True):
    """What was forgotten, by model and kind of request."""

    forgotten: tuple[str, ...]


def calibration_calls(memory: Memory, settled: Callable[[], Awaitable[None]] | None = None) -> Calls:
    """The two calls. `settled` waits until pending counts are learned, so that they are included."""

    async def lessons() -> LearnedShown:
        if settled is not None:
            await settled()
        return LearnedShown(tuple(memory.lessons()))

    async def forget(call: ApiCall) -> ForgottenShown:
        body = await read_body(call.receive, ForgetWanted)
        if settled is not None:
            await settled()
        return ForgottenShown(tuple(memory.forget(body.model)))

    return {"learned": {"GET": lambda _call: lessons()}, "learned/forget": {"POST": forget}}
