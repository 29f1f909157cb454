import asyncio
from pathlib import Path

from sightline.editing.conversation_changes import SectionChange
from sightline.editing.operations import SetText
from sightline.exchange.interception.hold_changes import Changes, apply_changes, changes_while_held
from sightline.model.message import Message
from sightline.model.parts import Text
from sightline.store.entries import FactEntry
from tests.holding import JSON, held, let_go, promptly
from tests.relay_stage import Stage, asks, play
from tests.reply_samples import whole
from tests.upstream import answer

BODY = b'{"model":"m","messages":[{"role":"user","content":"What is two and two?"}]}'


def test_what_was_changed_is_known_when_the_request_is_released(tmp_path: Path) -> None:
    """Tool calls that are held later, and released, are no change of the request."""

    async def story(stage: Stage) -> None:
        holds = stage.relay.holds
        holds.set_rules([{"filter": ""}, {"filter": "", "phase": "tool_calls"}])
        stage.upstream.script = [answer(200, whole("openai-chat"), JSON)]
        found: list[Changes] = []

        def note(noted: FactEntry) -> None:
            found.append(changes_while_held(holds, noted))

        async def ask() -> None:
            async with await stage.relay.start(asks("openai-chat", body=BODY), note) as relayed:
                async for _ in relayed:
                    pass

        asking = asyncio.ensure_future(ask())
        hold = await held(stage)
        holds.edit(hold.exchange, SetText(section=hold.draft.sections[0].id, text="What is one and two?"))
        let_go(stage, hold)
        first = hold
        while (hold := await held(stage)) is first:
            pass
        let_go(stage, hold)
        await promptly(asking)
        ((change,),) = (each for changes in found for each in changes)
        assert (change.old, change.new) == ("What is two and two?", "What is one and two?")

    play(story, tmp_path)


def test_changes_of_several_requests_follow_each_other() -> None:
    def change(old: str, new: str) -> tuple[SectionChange, ...]:
        return (SectionChange(who="user", old=old, new=new, nth=0, count=1),)

    messages = (Message("user", (Text("one"),)),)
    assert apply_changes(messages, (change("one", "two"), change("two", "three"))) == (
        Message("user", (Text("three"),)),
    )
    assert apply_changes(messages, ()) is messages
