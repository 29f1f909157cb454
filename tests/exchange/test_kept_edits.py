from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from sightline.editing.operations import Delete, KeepEdits, Redo, Reset, Restore, Set, SetText, Undo
from sightline.errors import Fault
from sightline.exchange.interception.hold import Hold
from sightline.exchange.interception.holds import Holds
from tests.holding import JSON, asking, held
from tests.relay_stage import Stage, asks, play
from tests.reply_samples import SAYS, whole
from tests.upstream import answer

BODY = (
    b'{"model":"m","messages":[{"role":"system","content":"You are kind and patient."},'
    b'{"role":"user","content":"What is two and two?"}],"temperature":1}'
)


def played(folder: Path, act: Callable[[Holds, Hold, tuple[str, str]], Awaitable[None] | None]) -> None:
    """What happens to one held request; then it is dropped."""

    async def story(stage: Stage) -> None:
        holds = stage.relay.holds
        holds.set_mode("every")
        async with asking(stage, asks("openai-chat", body=BODY, session="a@shop")) as _:
            hold = await held(stage)
            act(holds, hold, (hold.draft.sections[0].id, hold.draft.sections[1].id))
            if hold.is_open:
                holds.drop("x_1")

    play(story, folder)


def test_undo_of_a_kept_edit_takes_its_mask_away_and_redo_brings_it_back(tmp_path: Path) -> None:
    def act(holds: Holds, hold: Hold, at: tuple[str, str]) -> None:
        holds.edit("x_1", SetText(section=at[0], text="You are terse and patient.", keep="session"))
        (mask,) = holds.masks
        assert hold.kept_ids == (mask.id,)
        holds.edit("x_1", Undo())
        assert (holds.masks, hold.kept_ids, hold.draft.is_dirty) == ((), (), False)
        holds.edit("x_1", Redo())
        assert holds.masks == (mask,)
        holds.edit("x_1", Reset())
        assert holds.masks == ()
        holds.edit("x_1", Undo())
        assert holds.masks == (mask,)

    played(tmp_path, act)


def test_an_edit_that_is_not_kept_leaves_what_is(tmp_path: Path) -> None:
    def act(holds: Holds, hold: Hold, at: tuple[str, str]) -> None:
        holds.edit("x_1", SetText(section=at[0], text="You are terse and patient.", keep="session"))
        holds.edit("x_1", SetText(section=at[1], text="What is three and two?"))
        assert len(holds.masks) == 1
        holds.edit("x_1", Undo())
        assert len(holds.masks) == 1
        holds.edit("x_1", Undo())
        assert holds.masks == ()

    played(tmp_path, act)


def test_what_is_brought_back_by_hand_is_kept_no_more(tmp_path: Path) -> None:
    def act(holds: Holds, hold: Hold, at: tuple[str, str]) -> None:
        holds.edit("x_1", Delete(section=at[0], keep="all"))
        assert len(holds.masks) == 1
        holds.edit("x_1", Restore(section=at[0]))
        assert holds.masks == ()
        holds.edit("x_1", SetText(section=at[0], text="You are terse.", keep="all"))
        holds.edit("x_1", SetText(section=at[0], text="You are kind and patient."))
        assert holds.masks == ()

    played(tmp_path, act)


def test_a_mask_that_a_kept_edit_replaced_is_back_after_undo(tmp_path: Path) -> None:
    def act(holds: Holds, hold: Hold, at: tuple[str, str]) -> None:
        holds.edit("x_1", SetText(section=at[0], text="You are terse and patient.", keep="all"))
        (first,) = holds.masks
        holds.edit("x_1", SetText(section=at[0], text="You are brief and patient.", keep="all"))
        (second,) = holds.masks
        assert (second.id, second != first) == (first.id, True)
        holds.edit("x_1", Undo())
        assert holds.masks == (first,)

    played(tmp_path, act)


def test_a_mask_of_an_earlier_request_is_back_after_undo_too(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        holds = stage.relay.holds
        holds.set_mode("every")
        stage.upstream.script = [answer(200, whole("openai-chat", SAYS), JSON)]
        async with asking(stage, asks("openai-chat", body=BODY)) as _:
            hold = await held(stage)
            edit = SetText(section=hold.draft.sections[0].id, text="You are terse and patient.", keep="all")
            holds.edit("x_1", edit)
            holds.release("x_1", hold.draft.sha256)
        (first,) = holds.masks
        async with asking(stage, asks("openai-chat", body=BODY)) as _:
            hold = await held(stage)
            edit = SetText(section=hold.draft.sections[0].id, text="You are quick and patient.", keep="all")
            holds.edit("x_2", edit)
            assert holds.masks != (first,)
            holds.edit("x_2", Undo())
            assert holds.masks == (first,)
            holds.edit("x_2", Redo())
            holds.remove_mask(first.id)
            holds.edit("x_2", Undo())
            assert holds.masks == ()  # taken away by hand, and not brought back by undo
            holds.drop("x_2")

    play(story, tmp_path)


def test_the_edits_made_so_far_are_kept_and_each_undo_takes_its_own_away(tmp_path: Path) -> None:
    def act(holds: Holds, hold: Hold, at: tuple[str, str]) -> None:
        with pytest.raises(Fault, match="no edit to keep") as caught:
            holds.edit("x_1", KeepEdits(scope="session"))
        assert caught.value.status == 422
        holds.edit("x_1", SetText(section=at[0], text="You are terse and patient."))
        holds.edit("x_1", Set(pointer="/temperature", value=0))
        assert holds.masks == ()
        holds.edit("x_1", KeepEdits(scope="project"))
        assert [(mask.kind, mask.scope, mask.name) for mask in holds.masks] == [
            ("patch", "project", "shop"),
            ("set_text", "project", "shop"),
        ]
        assert len(hold.kept_ids) == 2
        holds.edit("x_1", Undo())
        assert [mask.kind for mask in holds.masks] == ["patch"]
        holds.edit("x_1", Undo())
        assert holds.masks == ()
        holds.edit("x_1", Redo())
        assert [mask.kind for mask in holds.masks] == ["patch"]

    played(tmp_path, act)


def test_release_keeps_too_and_is_refused_where_that_cannot_be(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        holds = stage.relay.holds
        holds.set_mode("every")
        stage.upstream.script = [answer(200, whole("openai-chat", SAYS), JSON)]
        async with asking(stage, asks("openai-chat", body=BODY)) as _:
            hold = await held(stage)
            section = hold.draft.sections[0].id
            holds.edit("x_1", SetText(section=section, text="You are terse and patient."))
            for scope in ("session", "project"):
                with pytest.raises(Fault, match=f"says nothing of its {scope}"):
                    holds.release("x_1", hold.draft.sha256, scope)
            assert hold.is_open
            holds.release("x_1", hold.draft.sha256, "all")
        assert [mask.kind for mask in holds.masks] == ["patch"]
        holds.set_mode("off")
        changed = BODY.replace(b"patient.", b"patient.\\nGit status: clean")
        await stage.ask(asks("openai-chat", body=changed))
        assert stage.upstream.seen[-1].body == changed.replace(b"kind", b"terse")

    play(story, tmp_path)
