from pathlib import Path

import pytest

from sightline.errors import Fault
from sightline.exchange.interception.hold import Drop, Shutdown
from tests.holding import asking, held
from tests.relay_stage import Stage, asks, play
from tests.stepping_clock import SteppingClock


@pytest.mark.parametrize(
    ("program", "stream", "patience"),
    [
        ("OpenAI/Python 2.1.0", False, 600),
        ("AsyncAnthropic/Python 1.0", False, 600),
        ("OpenAI/Python 2.1.0", True, None),
        ("curl/8", False, None),
    ],
)
def test_a_library_that_waits_for_a_whole_answer_does_not_wait_forever(
    tmp_path: Path, program: str, stream: bool, patience: float | None
) -> None:
    async def story(stage: Stage) -> None:
        stage.relay.holds.set_mode("every")
        async with asking(stage, asks("openai-chat", stream=stream, headers=(("User-Agent", program),))) as _:
            hold = await held(stage)
            assert hold.client_deadline == (None if patience is None else hold.since + patience)
            stage.relay.holds.drop("x_1")

    play(story, tmp_path, clock=SteppingClock())


def test_it_knows_whose_it_is(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        stage.relay.holds.set_mode("every")
        named = asks("anthropic", session="claude-1@shop")
        unnamed = asks("anthropic", headers=(("session-id", "s9"),))
        async with asking(stage, named, unnamed) as _:
            first, second = stage.relay.holds.waiting
            assert (first.session, first.project) == ("claude-1@shop", "shop")
            assert (second.session, second.project) == ("s9", "")
            for hold in (first, second):
                stage.relay.holds.drop(hold.exchange)

    play(story, tmp_path, "anthropic")


def test_the_first_decision_counts(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        stage.relay.holds.set_mode("every")
        async with asking(stage, asks("openai-chat")) as _:
            hold = await held(stage)
            hold.decide(Drop("no"))
            assert not hold.is_open
            with pytest.raises(Fault, match="not held") as caught:
                hold.decide(Shutdown())
            assert caught.value.status == 409

    play(story, tmp_path)
