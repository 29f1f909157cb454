"""One log of facts: appended, cleared of secrets, applied, announced, and shared with other processes or taken over."""

import asyncio
from collections.abc import Sequence

import pytest

from sightline.errors import Code, Fault
from sightline.journal.journal import FactFormat, Journal, JournalCache
from sightline.store.store import Line, overtaken
from tests.logbook_fake import MemoryLogbook

TEXT: FactFormat[str] = FactFormat(lambda fact: (fact.encode(), fact), lambda line: line.data.decode())
SECRET = "sk-secret-123456"


class Facts:
    """A journal of strings whose state is their list, and what it announced."""

    def __init__(
        self,
        logbook: MemoryLogbook,
        form: FactFormat[str] = TEXT,
        *,
        taken_over: Fault | None = None,
        version: int | None = None,
    ) -> None:
        self.announced: list[list[tuple[str, int]]] = []
        facts: list[str] = []

        def apply(fact: str, _at: float) -> int:
            facts.append(fact)
            return len(facts)

        self.journal: Journal[str, list[str], int] = Journal(
            logbook,
            "chat",
            form,
            facts,
            apply,
            now=lambda: 5.0,
            secrets=(SECRET,),
            announce=lambda applied: self.announced.append(list(applied)),
            taken_over=taken_over,
            version=version,
        )


async def test_facts_are_appended_applied_and_announced_together() -> None:
    """What was in the log before is applied and not announced."""

    logbook = MemoryLogbook()
    await logbook.append("chat", 0, [b"old"], 1.0)
    facts = Facts(logbook)
    assert await facts.journal.append(["a", "b"]) == [2, 3]
    assert facts.journal.state == ["old", "a", "b"]
    assert facts.announced == [[("a", 2), ("b", 3)]]
    assert [(line.n, line.at, line.data) for line in await logbook.lines("chat", 1)] == [
        (2, 5.0, b"a"),
        (3, 5.0, b"b"),
    ]
    assert facts.journal.version == 3


@pytest.mark.parametrize(("applies_masked", "kept"), [(True, "the key ***"), (False, f"the key {SECRET}")])
async def test_the_log_never_has_a_secret(*, applies_masked: bool, kept: str) -> None:
    """The state has it only where the format says so."""

    logbook = MemoryLogbook()
    facts = Facts(logbook, FactFormat(TEXT.encode, TEXT.decode, lambda _fact: applies_masked))
    await facts.journal.append([f"the key {SECRET}"])
    assert [line.data for line in await logbook.lines("chat")] == [b"the key ***"]
    assert facts.journal.state == [kept]


async def test_a_shared_log_is_read_and_tried_again_after_a_conflict() -> None:
    """`check` sees the state with what the other process added; that is announced by itself."""

    logbook = MemoryLogbook()
    facts, other = Facts(logbook), Facts(logbook)
    await facts.journal.append(["a"])
    await other.journal.append(["b"])
    seen: list[list[str]] = []
    await facts.journal.append(["c"], check=lambda _fact: seen.append(list(facts.journal.state)))
    assert seen == [["a"], ["a", "b"]]
    assert facts.announced == [[("a", 1)], [("b", 2)], [("c", 3)]]
    assert await other.journal.append(["d"], retry=False) is None
    assert other.journal.state == ["a", "b", "c"]


async def test_a_fact_that_does_not_fit_is_not_appended() -> None:
    def refuse(_fact: str) -> None:
        raise Fault(Code.USAGE, "there is no such pair", hint="")

    logbook = MemoryLogbook()
    facts = Facts(logbook)
    with pytest.raises(Fault, match="no such pair"):
        await facts.journal.append(["a"], check=refuse)
    assert (await logbook.lines("chat"), facts.announced) == ([], [])


async def test_a_log_with_one_owner_is_given_up_when_another_process_took_it_over() -> None:
    """A fault of the logbook that is no conflict is raised as it is."""

    logbook = MemoryLogbook()
    fault = Fault(Code.USAGE, "taken over", hint="", status=409)
    owner = Facts(logbook, taken_over=fault, version=0)
    await owner.journal.append(["a"])
    await Facts(logbook).journal.append(["taken"])
    with pytest.raises(Fault, match="taken over"):
        await owner.journal.append(["b"])
    assert owner.journal.state == ["a"]
    logbook.fault = Fault(Code.CONFIG, "the disk is full", hint="")
    with pytest.raises(Fault, match="the disk is full"):
        await owner.journal.append(["b"])


async def test_a_log_that_always_conflicts_is_given_up() -> None:
    class Busy(MemoryLogbook):
        async def append(self, log: str, after: int, data: Sequence[bytes], at: float) -> None:
            raise overtaken(log)

    with pytest.raises(Fault, match="other processes change the chat all the time") as caught:
        await Facts(Busy()).journal.append(["a"])
    assert (caught.value.code, caught.value.status) == (Code.OVERLOADED, 503)


async def test_a_log_that_was_deleted_elsewhere_is_not_written_again() -> None:
    logbook = MemoryLogbook()
    facts = Facts(logbook)
    await facts.journal.append(["a"])
    await logbook.forget("chat")
    with pytest.raises(Fault, match="the chat was deleted elsewhere") as caught:
        await facts.journal.append(["b"])
    assert caught.value.status == 404
    assert await logbook.lines("chat") == []


async def test_a_cancelled_caller_leaves_a_durable_fact() -> None:
    entered, gate = asyncio.Event(), asyncio.Event()

    class Slow(MemoryLogbook):
        async def append(self, log: str, after: int, data: Sequence[bytes], at: float) -> None:
            entered.set()
            await gate.wait()
            await super().append(log, after, data, at)

    facts = Facts(Slow(), version=0)
    task = asyncio.ensure_future(facts.journal.append(["kept"]))
    await entered.wait()
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    gate.set()
    await asyncio.wait({task})
    assert (task.cancelled(), facts.journal.state, facts.announced) == (True, ["kept"], [[("kept", 1)]])


async def test_lines_can_be_written_without_being_applied() -> None:
    facts = Facts(MemoryLogbook(), version=0)
    await facts.journal.write([b"a", b"b"])
    assert (facts.journal.version, facts.journal.state) == (2, [])


async def test_other_tasks_get_their_turn_while_a_long_log_is_read() -> None:
    logbook = MemoryLogbook()
    await logbook.append("chat", 0, [b"x" * 50_000] * 4, 1.0)
    facts, turns = Facts(logbook), list[int]()

    async def other() -> None:
        turns.append(len(facts.journal.state))

    waiting = asyncio.ensure_future(other())
    await facts.journal.catch_up()
    await waiting
    assert turns == [2]


async def test_a_second_look_at_a_log_reads_only_what_is_new() -> None:
    logbook, opened = MemoryLogbook(), list[str]()

    def open_journal(name: str) -> "Journal[str, list[str], int]":
        opened.append(name)
        return Facts(logbook).journal

    cache: JournalCache[str, list[str], int] = JournalCache(open_journal, 2)
    assert await cache.state("chat") is None
    await logbook.append("chat", 0, [b"a"], 1.0)
    assert await cache.state("chat") == ["a"]
    await logbook.append("chat", 1, [b"b"], 1.0)
    assert await cache.state("chat") == ["a", "b"]
    assert opened == ["chat", "chat"]


async def test_a_line_that_cannot_be_decoded_says_so() -> None:
    def decode(line: Line) -> str:
        raise Fault(Code.CONFIG, f"line {line.n} cannot be read", hint="")

    logbook = MemoryLogbook()
    await logbook.append("chat", 0, [b"?"], 1.0)
    with pytest.raises(Fault, match="line 1 cannot be read"):
        await Facts(logbook, FactFormat(TEXT.encode, decode)).journal.catch_up()
