import hashlib
import json
import stat
from pathlib import Path

import pytest

from sightline.editing.masks import read_masks
from sightline.editing.operations import Delete, KeepEdits, Redo, Reset, Restore, Set, SetText, Undo
from sightline.errors import Code, Fault
from sightline.exchange.interception.core.rules import Interception, Rules
from sightline.exchange.interception.kept_edits import FinalBody, refuse_other
from sightline.exchange.interception.store import FILE_NAME, KeptInterception, MaskCount
from tests.exchange.interception.test_holds import holds_in
from tests.holding import asking, held, holding, one_held
from tests.relay_stage import asks

BODY = (
    b'{"model":"m","messages":[{"role":"system","content":"You are kind and patient."},'
    b'{"role":"user","content":"What is two and two?"}],"temperature":1}'
)


ASK = asks("openai-chat", body=BODY, session="a@shop")


async def test_undo_of_a_kept_edit_takes_its_mask_away_and_redo_brings_it_back(tmp_path: Path) -> None:
    async with one_held(tmp_path, ASK) as (_, holds, hold):
        at = [section.id for section in hold.draft.sections]
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


async def test_an_edit_that_is_not_kept_leaves_what_is(tmp_path: Path) -> None:
    async with one_held(tmp_path, ASK) as (_, holds, hold):
        at = [section.id for section in hold.draft.sections]
        holds.edit("x_1", SetText(section=at[0], text="You are terse and patient.", keep="session"))
        holds.edit("x_1", SetText(section=at[1], text="What is three and two?"))
        assert len(holds.masks) == 1
        holds.edit("x_1", Undo())
        assert len(holds.masks) == 1
        holds.edit("x_1", Undo())
        assert holds.masks == ()


async def test_what_is_brought_back_by_hand_is_kept_no_more(tmp_path: Path) -> None:
    async with one_held(tmp_path, ASK) as (_, holds, hold):
        at = [section.id for section in hold.draft.sections]
        holds.edit("x_1", Delete(section=at[0], keep="all"))
        assert len(holds.masks) == 1
        holds.edit("x_1", Restore(section=at[0]))
        assert holds.masks == ()
        holds.edit("x_1", SetText(section=at[0], text="You are terse.", keep="all"))
        holds.edit("x_1", SetText(section=at[0], text="You are kind and patient."))
        assert holds.masks == ()


async def test_a_mask_that_a_kept_edit_replaced_is_back_after_undo(tmp_path: Path) -> None:
    async with one_held(tmp_path, ASK) as (_, holds, hold):
        at = [section.id for section in hold.draft.sections]
        holds.edit("x_1", SetText(section=at[0], text="You are terse and patient.", keep="all"))
        (first,) = holds.masks
        holds.edit("x_1", SetText(section=at[0], text="You are brief and patient.", keep="all"))
        (second,) = holds.masks
        assert (second.id, second != first) == (first.id, True)
        holds.edit("x_1", Undo())
        assert holds.masks == (first,)


async def test_a_mask_of_an_earlier_request_is_back_after_undo_too(tmp_path: Path) -> None:
    async with holding(tmp_path) as stage:
        holds = stage.relay.holds
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


async def test_the_edits_made_so_far_are_kept_and_each_undo_takes_its_own_away(tmp_path: Path) -> None:
    async with one_held(tmp_path, ASK) as (_, holds, hold):
        at = [section.id for section in hold.draft.sections]
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


async def test_release_keeps_too_and_is_refused_where_that_cannot_be(tmp_path: Path) -> None:
    async with holding(tmp_path) as stage:
        holds = stage.relay.holds
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


MASKS = read_masks([{"kind": "strip", "scope": "session", "name": "blue", "strip": {"class": "thinking"}}])


def test_mode_rules_and_masks_are_there_again(tmp_path: Path) -> None:
    kept = KeptInterception(tmp_path / "new" / "data")
    assert kept.read() == (Interception(), ())
    rules = Rules.of([{"filter": "model:m", "once": True, "timeout_s": 2}])
    kept.write(Interception().with_rules(rules).with_mode("every"), MASKS)
    again, masks = kept.read()
    assert (again.mode, again.rules.rules, masks) == ("every", rules.rules, MASKS)
    kept.write(Interception(), ())
    assert kept.read()[1] == ()


def test_where_no_folder_is_there_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file in its place")
    assert KeptInterception(tmp_path / "data").read_all() == (Interception(), (), {})


def test_half_a_character_is_kept_too(tmp_path: Path) -> None:
    kept = KeptInterception(tmp_path)
    masks = read_masks(
        [{"kind": "set_text", "scope": "all", "anchor": {"kind": "user", "content": "c"}, "text": "\ud83d"}]
    )
    rules = Rules.of([{"filter": 'text:"\ud83d"'}])
    kept.write(Interception().with_rules(rules), masks)
    assert (kept.read()[0].rules.rules, kept.read()[1]) == (rules.rules, masks)


def test_the_file_is_its_owners_alone_and_nothing_lies_beside_it(tmp_path: Path) -> None:
    KeptInterception(tmp_path).write(Interception(), ())
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"\xff",
        b'{"interception":{"mode":"x","before":"off","rules":[]}}',
        b'{"interception":{"mode":"off","before":"off","rules":[{"filter":"("}]}}',
    ],
)
def test_a_file_that_cannot_be_read_is_not_taken_for_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(data)
    with pytest.raises(Fault, match=FILE_NAME) as caught:
        KeptInterception(tmp_path).read()
    assert (caught.value.code, "take it away" in caught.value.hint) == (Code.CONFIG, True)


def test_unwritable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file in its place")
    with pytest.raises(Fault, match="data") as caught:
        KeptInterception(tmp_path / "data").write(Interception(), ())
    assert caught.value.hint


def test_a_command_reads_rules_and_masks_and_writes_nothing(tmp_path: Path) -> None:
    kept = KeptInterception(tmp_path)
    kept.write(Interception().with_mode("every"), MASKS, {MASKS[0].id: MaskCount(1, 2, "x_1")})
    assert kept.read_all()[2] == {MASKS[0].id: MaskCount(1, 2, "x_1")}
    before = (tmp_path / FILE_NAME).read_bytes()
    alone = KeptInterception(tmp_path, is_borrowed=True)
    interception, masks, counts = alone.read_all()
    assert (interception.mode, masks, counts) == ("every", MASKS, {})
    alone.write(Interception(), ())
    assert (tmp_path / FILE_NAME).read_bytes() == before


FINAL_BODY_BODY = json.dumps({"model": "m", "messages": [{"role": "system", "content": "Be kind."}]}).encode()
PATCH = {"scope": "all", "kind": "patch", "anchor": {"kind": "system"}, "hunks": [{"old": "kind", "new": "terse"}]}


def test_without_masks_it_is_the_very_body_and_nothing_is_read(tmp_path: Path) -> None:
    holds = holds_in(tmp_path)
    final = holds.final_body(FINAL_BODY_BODY, "openai-chat", "m", session="s")
    assert (final.data is FINAL_BODY_BODY, final.draft, final.outcomes) == (True, None, ())
    assert final.sha256 == hashlib.sha256(FINAL_BODY_BODY).hexdigest()


def test_it_is_the_body_after_masks_and_asking_for_it_counts_nothing(tmp_path: Path) -> None:
    holds = holds_in(tmp_path)
    holds.set_masks([PATCH])
    final = holds.final_body(FINAL_BODY_BODY, "openai-chat", "m", session="s")
    assert final.data == FINAL_BODY_BODY.replace(b"kind", b"terse")
    assert final.sha256 == hashlib.sha256(final.data).hexdigest()
    assert [outcome.outcome for outcome in final.outcomes] == ["applied"]
    assert holds.count_of(holds.masks[0]).applied == 0
    assert holds.final_body(FINAL_BODY_BODY, "openai-chat", "m", session="s", masks=False) == FinalBody(FINAL_BODY_BODY)


def test_another_body_than_the_one_that_was_looked_at_is_refused() -> None:
    refuse_other("", "a")
    refuse_other("a", "a")
    with pytest.raises(Fault) as caught:
        refuse_other("a", "b")
    assert (caught.value.status, caught.value.details) == (409, {"code": "preview_outdated"})
