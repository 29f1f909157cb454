import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sightline.catalog.facts import Model
from sightline.catalog.provider import Quirks
from sightline.editing.comparing import SectionChange
from sightline.editing.masks import MaskOutcome
from sightline.editing.operations import Batch, Delete, KeepEdits, Redo, Remove, Set, SetBody, SetText, Undo
from sightline.errors import Code, Fault
from sightline.exchange.interception.hold import Drop, Hold, Shutdown
from sightline.exchange.interception.holds import MOST_OUTCOMES, Changes, Holds, apply_changes, changes_while_held
from sightline.exchange.interception.store import FILE_NAME, KeptInterception, MaskCount
from sightline.exchange.memory import Memory
from sightline.model.exchange import Edited
from sightline.model.parts import Text
from sightline.model.request import Message
from sightline.store.entries import FactEntry
from tests.holding import JSON, asking, held, holding, let_go, one_held, promptly, said_by
from tests.relay_stage import Stage, asks, open_stage
from tests.reply_samples import whole
from tests.stepping_clock import SteppingClock
from tests.upstream import answer

STRIP = {"kind": "strip", "scope": "all", "strip": {"class": "thinking"}}


def holds_in(folder: Path) -> Holds:
    return Holds(Memory(folder, lambda: 1.0), lambda: 1.0, KeptInterception(folder))


@asynccontextmanager
async def holding_twice(folder: Path) -> AsyncIterator[tuple[Stage, Holds]]:
    """A stage on which requests are held, and so are the tool calls of their answers."""
    async with open_stage(folder) as stage:
        stage.relay.holds.set_rules([{"filter": ""}, {"filter": "", "phase": "tool_calls"}])
        stage.upstream.script = [answer(200, whole("openai-chat"), JSON)]
        yield stage, stage.relay.holds


async def calls_held(stage: Stage) -> Hold:
    """The hold of the tool calls, after that of their request."""
    while (hold := await held(stage)).phase == "request":
        pass
    return hold


# --- what will be held ------------------------------------------------------------------------------


def test_mode_rules_and_masks_survive_a_restart(tmp_path: Path) -> None:
    holds = holds_in(tmp_path)
    assert (holds.mode, holds.rules, holds.masks, holds.is_idle) == ("off", (), (), True)
    holds.set_rules([{"filter": "model:m", "timeout_s": 5}])
    holds.set_mode("off")
    assert holds.is_idle
    holds.set_masks([STRIP])
    assert [mask.created for mask in holds.masks] == [1.0]
    assert not holds.is_idle
    again = holds_in(tmp_path)
    assert (again.mode, again.rules, again.masks, again.is_idle) == ("off", holds.rules, holds.masks, False)


def test_what_is_refused_changes_nothing(tmp_path: Path) -> None:
    holds = holds_in(tmp_path)
    holds.set_rules([{"filter": "model:m"}])
    before = (tmp_path / FILE_NAME).read_bytes()
    for wrong in (
        lambda: holds.set_rules([{"filter": ""}, {"filter": "("}]),
        lambda: holds.set_mode("sometimes"),
        lambda: holds.set_masks([{"kind": "strip"}]),
    ):
        with pytest.raises(Fault) as caught:
            wrong()
        assert caught.value.status == 422
    assert [rule.filter for rule in holds.rules] == ["model:m"]
    assert (tmp_path / FILE_NAME).read_bytes() == before


def test_a_change_that_cannot_be_kept_is_not_made(tmp_path: Path) -> None:
    holds = holds_in(tmp_path / "data")
    (tmp_path / "data").write_text("a file in its place")
    with pytest.raises(Fault):
        holds.set_mode("every")
    assert (holds.mode, holds.is_idle) == ("off", True)


# --- what a person does -----------------------------------------------------------------------------


async def test_release_wants_the_hash_of_what_is_on_screen(tmp_path: Path) -> None:
    async with holding(tmp_path) as stage:
        holds = stage.relay.holds
        async with asking(stage, asks("openai-chat")) as _:
            hold = await held(stage)
            old = hold.draft.sha256
            holds.edit("x_1", Set(pointer="/messages/0/content", value="ho"))
            for exchange, sha256, status in (
                ("x_1", None, 422), ("x_1", "", 422), ("x_1", old, 409), ("x_1", "0" * 64, 409), ("x_9", old, 409),
            ):  # fmt: skip
                with pytest.raises(Fault) as caught:
                    holds.release(exchange, sha256)
                assert caught.value.status == status
                assert caught.value.hint
            assert holds.waiting
            let_go(stage, hold)
            for late in (lambda: let_go(stage, hold), lambda: holds.drop("x_1"), lambda: holds.answer("x_1", {}),
                         lambda: holds.edit("x_1", Undo())):  # fmt: skip
                with pytest.raises(Fault, match="not held") as caught:
                    late()
                assert caught.value.status == 409
        assert [seen.json()["messages"][0]["content"] for seen in stage.upstream.seen] == ["ho"]


async def test_what_is_invalid_is_not_sent_and_stays_held(tmp_path: Path) -> None:
    async with holding(tmp_path) as stage:
        holds = stage.relay.holds
        async with asking(stage, asks("openai-chat")) as _:
            orphan = {"role": "tool", "tool_call_id": "c", "content": "found"}
            body = json.dumps({"model": "m", "messages": [orphan]})
            hold = holds.edit("x_1", SetBody(body=body))
            assert not holds.validity(hold).ok
            with pytest.raises(Fault) as caught:
                let_go(stage, hold)
            assert (caught.value.status, caught.value.pointer is not None) == (422, True)
            assert holds.find("x_1") is hold
            assert stage.kinds() == ["received", "held", "edited"]
            holds.edit("x_1", Undo())
            let_go(stage, hold)
        assert stage.kinds()[-1] == "finished"


NESTED = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


@pytest.mark.parametrize("is_vendor", [True, False])
async def test_what_the_vendor_would_refuse_is_kept_from_the_vendor_only(tmp_path: Path, is_vendor: bool) -> None:
    quirks = Quirks(vendor_rules=is_vendor)
    async with open_stage(
        tmp_path, "openai-responses", quirks=quirks, models={"m": Model(refuses=("temperature",))}
    ) as stage:
        holds = stage.relay.holds
        holds.set_mode("every")
        async with asking(stage, asks("openai-responses")) as _:
            body = {"model": "m", "input": "hi", "tools": [NESTED], "temperature": 7}
            hold = holds.edit("x_1", SetBody(body=json.dumps(body)))
            found = holds.validity(hold)
            assert [finding.pointer for finding in found.problems] == ["/temperature", "/tools/0", "/temperature"]
            assert {finding.severity for finding in found.problems} == {"error" if is_vendor else "warning"}
            assert found.ok is not is_vendor
            for finding in found.problems[:2]:
                hold = holds.edit("x_1", Batch(operations=finding.fixes[0].operations))
            hold = holds.edit("x_1", Remove(pointer="/temperature"))
            assert holds.validity(hold).problems == ()
            let_go(stage, hold)
        (sent,) = stage.upstream.seen
        assert sent.json()["tools"] == [{"type": "function", **NESTED["function"]}]  # type: ignore[dict-item]


async def test_what_the_version_of_a_clients_api_refuses_is_shown(tmp_path: Path) -> None:
    async with holding(tmp_path, "anthropic") as stage:
        body = b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"top_k":4}'
        for version, pointers in (("2023-06-01", []), ("2026-10-21", ["/top_k"])):
            headers = (("Content-Type", "application/json"), ("anthropic-version", version))
            async with asking(stage, asks("anthropic", body=body, headers=headers)) as _:
                hold = await held(stage)
                found = stage.relay.holds.validity(hold)
                assert [finding.pointer for finding in found.problems] == pointers
                let_go(stage, hold)


async def test_what_the_client_itself_sent_may_always_be_sent(tmp_path: Path) -> None:
    async with holding(tmp_path) as stage:
        body = b'{"model":"m","messages":[{"role":"tool","tool_call_id":"c","content":"found"}]}'
        async with asking(stage, asks("openai-chat", body=body), asks("openai-chat", body=b'{"model":"m"}')) as _:
            for hold in stage.relay.holds.waiting:
                let_go(stage, hold)
        assert len(stage.upstream.seen) == 2


async def test_an_edit_that_is_refused_or_changes_nothing_leaves_no_trace(tmp_path: Path) -> None:
    async with one_held(tmp_path, asks("openai-chat")) as (stage, holds, hold):
        with pytest.raises(Fault):
            holds.edit("x_1", Delete(section="s99"))
        holds.edit("x_1", SetText(section=hold.draft.sections[0].id, text="hi"))
        assert stage.kinds() == ["received", "held"]
        with pytest.raises(Fault, match="this is no reply"):
            holds.answer("x_1", 3)
        assert hold.is_open


async def test_a_later_edit_of_the_same_place_takes_the_masks_place(tmp_path: Path) -> None:
    async with one_held(tmp_path, asks("openai-chat", session="a@shop")) as (stage, holds, hold):
        section = hold.draft.sections[0].id
        holds.edit("x_1", SetText(section=section, text="one", keep="project"))
        holds.edit("x_1", SetText(section=section, text="two", keep="project"))
        (mask,) = holds.masks
        assert (mask.scope, mask.name, mask.created) == ("project", "shop", stage.clock.now())
        assert [hunk.new for hunk in mask.hunks] == ["two"]
        with pytest.raises(Fault, match="narrower scope") as refused:  # the project would go on to get "two"
            holds.edit("x_1", SetText(section=section, text="three", keep="all"))
        assert refused.value.status == 422
        assert [(each.scope, each.name) for each in holds.masks] == [("project", "shop")]
        assert [type(fact) for fact in stage.facts()][2:] == [Edited] * 2


async def test_an_edit_kept_for_all_comes_beside_one_that_is_kept_for_the_session(tmp_path: Path) -> None:
    async with one_held(tmp_path, asks("openai-chat", session="a")) as (_, holds, hold):
        section = hold.draft.sections[0].id
        came = holds.hold_of("x_1").draft.section(section).text
        holds.edit("x_1", SetText(section=section, text=f"First.\n{came}", keep="session"))
        holds.edit("x_1", SetText(section=section, text=f"First.\n{came}\nLast.", keep="all"))
        assert {each.scope: [hunk.new for hunk in each.hunks] for each in holds.masks} == {
            "session": ["First.\n"],
            "all": ["\nLast."],
        }
        holds.edit("x_1", KeepEdits(scope="all"))
        (mask,) = holds.masks
        assert mask.scope == "all"


async def test_an_edit_is_kept_beside_one_that_came_while_its_request_was_held(tmp_path: Path) -> None:
    async with one_held(tmp_path, asks("openai-chat", session="a")) as (_, holds, hold):
        section = hold.draft.sections[0].id
        came = holds.hold_of("x_1").draft.section(section).text
        hunk = {"old": came[:2], "new": "Other"}
        holds.set_masks([{"scope": "all", "kind": "patch", "anchor": {"kind": "system"}, "hunks": [hunk]}])
        holds.edit("x_1", SetText(section=section, text=f"{came}\nLast.", keep="session"))
        assert [hunk.new for mask in holds.masks for hunk in mask.hunks] == ["Other", "\nLast."]


async def test_what_cannot_be_kept_is_not_done_either(tmp_path: Path) -> None:
    async with holding_twice(tmp_path) as (stage, holds), asking(stage, asks("openai-chat")) as _:
        hold = await held(stage)
        section = hold.draft.sections[0].id
        for edit in (
            SetText(section=section, text="one", keep="session"),
            SetText(section=section, text="one", keep="project"),
            SetBody(body="{}", keep="all"),
            Undo(keep="all"),
        ):
            with pytest.raises(Fault) as caught:
                holds.edit("x_1", edit)
            assert caught.value.status == 422
        assert not hold.draft.is_dirty
        let_go(stage, hold)
        await calls_held(stage)
        with pytest.raises(Fault, match="cannot be kept"):
            holds.edit("x_1", SetText(section="s1", text="{}", keep="all"))
        assert holds.masks == ()
        holds.answer("x_1", said_by("enough"))


async def test_an_edit_whose_mask_cannot_be_written_is_not_done(tmp_path: Path) -> None:
    async with one_held(tmp_path, asks("openai-chat")) as (stage, holds, hold):
        (tmp_path / "full").write_text("a file in the place of the folder")
        holds._kept = KeptInterception(tmp_path / "full")
        with pytest.raises(Fault, match="full"):
            holds.edit("x_1", SetText(section=hold.draft.sections[0].id, text="one", keep="all"))
        assert (hold.draft.is_dirty, holds.masks) == (False, ())
        assert not any(isinstance(fact, Edited) for fact in stage.facts())


async def test_an_edit_that_cannot_be_recorded_is_not_made(tmp_path: Path) -> None:
    async with holding_twice(tmp_path) as (stage, holds):
        record = stage.hub._record

        def refuse(_entries: object) -> None:
            raise Fault(Code.CONFIG, "the disk is full")

        async with asking(stage, asks("openai-chat")) as _:
            hold = await held(stage)
            section = hold.draft.sections[0].id
            holds.edit("x_1", SetText(section=section, text="one"))
            before = hold.draft
            for keep in (None, "all"):
                stage.hub._record = refuse
                with pytest.raises(Fault, match="the disk is full") as caught:
                    holds.edit("x_1", SetText(section=section, text="two", keep=keep))
                assert (caught.value.status, bool(caught.value.hint)) == (503, True)
                stage.hub._record = record
                assert (hold.draft, holds.masks) == (before, ())
            holds.edit("x_1", Undo())
            holds.edit("x_1", Redo())
            let_go(stage, hold)
            calls = await calls_held(stage)
            stage.hub._record = refuse
            with pytest.raises(Fault):
                holds.edit("x_1", SetText(section="s1", text="{}"))
            assert not calls.draft.is_dirty
            stage.hub._record = record
            let_go(stage, calls)
        numbers = [each.n for each in stage.entries if isinstance(each, FactEntry)]
        assert numbers == list(range(len(numbers)))
        assert len([fact for fact in stage.facts() if isinstance(fact, Edited)]) == 3


async def test_request_is_held_even_if_the_mode_cannot_be_saved(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_stage(tmp_path) as stage:
        holds = stage.relay.holds
        holds.set_mode("next")
        (tmp_path / "full").write_text("a file in the place of the folder")
        holds._kept = KeptInterception(tmp_path / "full")
        async with asking(stage, asks("openai-chat")) as _:
            await held(stage)
            assert holds.mode == "off"
            holds.drop("x_1")
    assert "full" in caplog.text


async def test_request_during_shutdown_is_rejected_instead_of_held(tmp_path: Path) -> None:
    async with holding(tmp_path) as stage:
        stage.relay.holds.close()
        got = await stage.ask(asks("openai-chat"))
        assert got.status == 503
        assert stage.relay.holds.waiting == ()


async def test_outcomes_are_remembered_for_a_while(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        holds = stage.relay.holds
        holds.set_masks([STRIP])
        await stage.ask(asks("openai-chat"))
        assert [each.outcome for each in holds.outcomes("x_1")] == ["applied"]
        assert stage.kinds() == ["received", "attempt", "finished"]
        applied = holds.outcomes("x_1")
        for number in range(MOST_OUTCOMES):
            holds.note_outcomes(f"y_{number}", applied)
        assert holds.outcomes("x_1") == ()
        assert holds.outcomes("y_0") == applied


# --- counts of masks --------------------------------------------------------------------------------


async def test_the_counts_of_masks_are_written_once_for_many_requests_and_not_by_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("sightline.exchange.interception.holds.COUNTS_WRITTEN_AFTER", 0.0)

    holds = holds_in(tmp_path)
    holds.set_masks([STRIP])
    name, before = holds.masks[0].id, (tmp_path / FILE_NAME).read_bytes()
    for exchange in ("x_1", "x_2"):
        holds.note_outcomes(exchange, (MaskOutcome(name, "applied"),))
    holds.note_outcomes("x_3", (MaskOutcome(name, "refused"),))
    holds.note_outcomes("x_4", ())
    assert (tmp_path / FILE_NAME).read_bytes() == before
    await asyncio.sleep(0.01)  # behind the timer, which is due at once
    assert holds_in(tmp_path).count_of(holds.masks[0]) == MaskCount(2, 1, "x_2", misses=1)
    holds.note_outcomes("x_5", (MaskOutcome(name, "applied"),))
    holds.close()
    assert holds_in(tmp_path).count_of(holds.masks[0]) == MaskCount(3, 1, "x_5")
    (tmp_path / FILE_NAME).unlink()
    (tmp_path / FILE_NAME).mkdir()
    holds.note_outcomes("x_6", (MaskOutcome(name, "applied"),))
    holds.close()
    assert "counts of masks could not be kept" in caplog.text


def test_counts_go_with_their_masks(tmp_path: Path) -> None:
    holds = Holds(Memory(tmp_path, lambda: 1.0), lambda: 1.0)
    holds.set_masks([STRIP])
    (mask,) = holds.masks
    holds.note_outcomes("x_1", (MaskOutcome(mask.id, "applied"),))
    assert holds.count_of(mask).applied == 1
    holds.remove_mask(mask.id)
    holds.set_masks([STRIP])
    assert holds.count_of(mask) == MaskCount()


@pytest.mark.parametrize(
    ("program", "stream", "patience"),
    [
        ("OpenAI/Python 2.1.0", False, 600),
        ("AsyncAnthropic/Python 1.0", False, 600),
        ("OpenAI/Python 2.1.0", True, None),
        ("curl/8", False, None),
    ],
)
async def test_a_library_that_waits_for_a_whole_answer_does_not_wait_forever(
    tmp_path: Path, program: str, stream: bool, patience: float | None
) -> None:
    asked = asks("openai-chat", stream=stream, headers=(("User-Agent", program),))
    async with holding(tmp_path, clock=SteppingClock()) as stage, asking(stage, asked):
        hold = await held(stage)
        assert hold.client_deadline == (None if patience is None else hold.since + patience)
        stage.relay.holds.drop("x_1")


async def test_it_knows_whose_it_is(tmp_path: Path) -> None:
    async with holding(tmp_path, "anthropic") as stage:
        named = asks("anthropic", session="claude-1@shop")
        unnamed = asks("anthropic", headers=(("session-id", "s9"),))
        async with asking(stage, named, unnamed) as _:
            first, second = stage.relay.holds.waiting
            assert (first.session, first.project) == ("claude-1@shop", "shop")
            assert (second.session, second.project) == ("s9", "")
            for hold in (first, second):
                stage.relay.holds.drop(hold.exchange)


async def test_the_first_decision_counts(tmp_path: Path) -> None:
    async with holding(tmp_path) as stage, asking(stage, asks("openai-chat")) as _:
        hold = await held(stage)
        hold.decide(Drop("no"))
        assert not hold.is_open
        with pytest.raises(Fault, match="not held") as caught:
            hold.decide(Shutdown())
        assert caught.value.status == 409


BODY = b'{"model":"m","messages":[{"role":"user","content":"What is two and two?"}]}'


async def test_what_was_changed_is_known_when_the_request_is_released(tmp_path: Path) -> None:
    """Tool calls that are held later, and released, are no change of the request."""

    async with holding_twice(tmp_path) as (stage, holds):
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
        let_go(stage, await calls_held(stage))
        await promptly(asking)
        ((change,),) = (each for changes in found for each in changes)
        assert (change.old, change.new) == ("What is two and two?", "What is one and two?")


def test_changes_of_several_requests_follow_each_other() -> None:
    def change(old: str, new: str) -> tuple[SectionChange, ...]:
        return (SectionChange(who="user", old=old, new=new, nth=0, count=1),)

    messages = (Message("user", (Text("one"),)),)
    assert apply_changes(messages, (change("one", "two"), change("two", "three"))) == (
        Message("user", (Text("three"),)),
    )
    assert apply_changes(messages, ()) is messages
