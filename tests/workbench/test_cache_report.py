"""Why the cache missed, for sessions whose cause is known: what is said of every turn, and summed up."""

import asyncio
import copy
import random
import sys
from collections import Counter
from pathlib import Path

import pytest

from sightline.catalog.catalog import Catalog
from sightline.dialects.registry import dialect, names
from sightline.errors import Fault
from sightline.exchange.interception.holds import Holds
from sightline.exchange.interception.viewer import Viewer
from sightline.exchange.memory import Memory
from sightline.exchange.recording.records import Records
from sightline.store.sqlite import open_store
from sightline.store.summary import price_list
from sightline.tokens.cache_autopsy import REASONS
from sightline.web.bodies import Query
from sightline.workbench.cache_report import CacheReports
from sightline.workbench.cache_turns import TurnExaminer, read_provider_reason
from tests.cache_breaks import Break, Sending, breaks, marked, play_all, responses


def test_causes_and_tokens_of_generated_breaks_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    played = [(f"s{n}", found) for n, found in enumerate(breaks(random.Random(18)))]
    reports = asyncio.run(play_all(tmp_path, played))
    wrong_cause, wrong_tokens = [], []
    for (session, found), report in zip(played, reports, strict=True):
        *earlier, last = report.turns
        assert found.lost > 0, (session, found.cause, found.name)
        assert earlier[0].autopsy.cause == "cold_start", session
        told = f"{session} {found.dialect} {found.cause} {found.name}: "
        if last.autopsy.cause != found.cause:
            wrong_cause.append(told + f"{last.autopsy.cause} {last.autopsy.also}")
        if abs(last.autopsy.lost_tokens - found.lost) > 0.01 * found.lost:
            wrong_tokens.append(told + f"{last.autopsy.lost_tokens} instead of {found.lost}")
    kinds = Counter(found.cause for _, found in played)
    if missed := [*wrong_cause, *wrong_tokens]:
        with capsys.disabled():
            sys.stdout.write(f"\n{len(missed)} missed of {len(played)} breaks\n" + "\n".join(missed) + "\n")
    assert len(played) >= 200
    assert min(kinds.values()) >= 3
    assert len(kinds) == 19
    assert {found.dialect for _, found in played} == {"anthropic", "openai-chat", "openai-responses", "gemini"}
    assert len(wrong_cause) <= 0.05 * len(played)
    assert len(wrong_tokens) <= 0.05 * len(played)


def changing(turns: int, *, wants_reason: bool = False) -> Break:
    """A session in which the system prompt of every turn but the first differs from the one before."""
    bodies = marked(random.Random(7), turns=turns - 1)
    for n, body in enumerate(bodies):
        body["system"][0]["text"] = f"It is {n} o'clock. {body['system'][0]['text']}"
        if wants_reason:
            body["diagnostics"] = {"previous_message_id": f"msg_{n - 1}" if n else None}
    sent = [Sending(body) for body in bodies]
    return Break("system", "anthropic", sent, sent[-1])


def test_causes_are_summed_and_the_advice_says_what_it_would_have_saved(tmp_path: Path) -> None:
    (report,) = asyncio.run(play_all(tmp_path, [("fix@shop", changing(4))]))
    assert [turn.autopsy.cause for turn in report.turns] == ["cold_start", "system", "system", "system"]
    assert [(row.cause, row.turns) for row in report.causes] == [("system", 3), ("cold_start", 1)]
    lost = sum(turn.autopsy.lost_tokens for turn in report.turns)
    assert report.lost_tokens == report.causes[0].lost_tokens == lost > 3000
    assert (report.unpriced, report.is_cut, report.agreed, report.disagreed) == (0, False, 0, 0)
    (advice,) = report.advice
    assert (advice.cause, advice.turns, advice.saved_tokens) == ("system", 3, lost)
    assert advice.money == pytest.approx(report.money) == pytest.approx(lost * (3.75 - 0.3) / 1e6)
    last = report.turns[-1]
    assert last.section_name
    assert last.previous == report.turns[-2].exchange
    assert (last.autopsy.before[:13], last.autopsy.after[:13]) == ("It is 2 o'clo", "It is 3 o'clo")


def test_a_turn_behind_one_that_cannot_be_read_is_examined_all_the_same(tmp_path: Path) -> None:
    session = changing(3)
    session.turns[1].body["messages"].append({"role": "user", "content": [7]})
    (report,) = asyncio.run(play_all(tmp_path, [("odd", session)]))
    assert [turn.autopsy.cause for turn in report.turns] == ["cold_start", "system"], (
        "the turn between them is no request"
    )
    assert report.turns[1].previous == report.turns[0].exchange


def test_the_providers_own_reason_is_shown_and_counted(tmp_path: Path) -> None:
    reports = asyncio.run(play_all(tmp_path, [("asks", changing(3, wants_reason=True))]))
    assert [turn.provider_reason for turn in reports[0].turns] == ["", "system_changed", "system_changed"]
    assert [turn.provider_tokens for turn in reports[0].turns] == [None, 1, 1]
    assert (reports[0].agreed, reports[0].disagreed) == (2, 0)


def test_the_reason_of_another_provider_is_counted_too(tmp_path: Path) -> None:
    bodies = responses(random.Random(2))
    for n, body in enumerate(bodies):
        body["instructions"] = f"It is {n} o'clock. {body['instructions']}"
        body["prompt_cache_options"] = {"comparison_response_id": f"resp_{n - 1}" if n else None}
    sent = [Sending(body) for body in bodies]
    (report,) = asyncio.run(play_all(tmp_path, [("asks", Break("system", "openai-responses", sent, sent[-1]))]))
    assert [turn.provider_reason for turn in report.turns] == ["", "input_changed", "input_changed"]
    assert [turn.provider_tokens for turn in report.turns] == [None, 7, 7]
    assert (report.agreed, report.disagreed) == (2, 0)


def pausing(pause: float, turns: int) -> Break:
    bodies = marked(random.Random(3), turns=turns - 1)
    sent = [Sending(body, pause if n == turns - 1 else 20.0) for n, body in enumerate(bodies)]
    return Break("expired", "anthropic", sent, sent[-1])


def test_an_hour_is_advised_where_it_saves_more_than_its_writes_cost(tmp_path: Path) -> None:
    short, long = asyncio.run(play_all(tmp_path, [("short", pausing(900.0, 3)), ("long", pausing(5000.0, 3))]))
    assert [turn.autopsy.cause for turn in (short.turns[-1], long.turns[-1])] == ["expired", "expired"]
    assert not long.advice, "an hour would not have been enough"
    (advice,) = short.advice
    assert advice.cause == "expired"
    assert advice.money is not None
    assert 0 < advice.money < short.money


@pytest.mark.parametrize(
    ("spoken", "reply", "said"),
    [
        ("anthropic", b'{"content":[]}', ("", None)),
        ("anthropic", b'{"diagnostics":{"cache_miss_reason":null}}', ("", None)),
        ("anthropic", b'{"diagnostics":{"cache_miss_reason":{"type":"unavailable"}}}', ("unavailable", None)),
        (
            "openai-responses",
            b'event: response.completed\ndata: {"type":"response.completed","response":{"prompt_cache_diagnostics":'
            b'{"type":"cache_miss","reason":"tools_changed","cache_missed_tokens":5629}}}\n\n',
            ("tools_changed", 5629),
        ),
        ("openai-responses", b'{"prompt_cache_diagnostics":{"type":"cache_hit"}}', ("cache_hit", None)),
        ("openai-responses", b'data: {"prompt_cache_diagnostics": broken\n\n', ("", None)),
        ("openai-responses", b'data: ["prompt_cache_diagnostics"]\n\n', ("", None)),
    ],
)
def test_reasons_are_read_in_every_form_of_a_reply(spoken: str, reply: bytes, said: tuple[str, int | None]) -> None:
    diagnosis = dialect(spoken).cache.diagnosis
    assert diagnosis is not None
    assert read_provider_reason(reply, diagnosis) == said


def test_every_reason_of_a_provider_means_a_cause() -> None:
    for name in names():
        diagnosis = dialect(name).cache.diagnosis
        meant = set() if diagnosis is None else {cause for causes in diagnosis.meanings.values() for cause in causes}
        assert meant <= set(REASONS), name


def test_a_branch_beside_another_is_compared_with_the_turn_that_it_continues(tmp_path: Path) -> None:
    first, second, third = marked(random.Random(5), turns=2)
    beside = copy.deepcopy(second)
    beside["messages"][1]["content"][0]["text"] = "Quite another answer."
    sent = [Sending(body) for body in (first, second, beside, third)]
    (report,) = asyncio.run(play_all(tmp_path, [("fork", Break("", "anthropic", sent, sent[-1]))]))
    assert [turn.autopsy.cause for turn in report.turns] == ["cold_start", "", "", ""]
    ids = [turn.exchange for turn in report.turns]
    assert [turn.previous for turn in report.turns] == ["", ids[0], ids[0], ids[1]]


def test_every_cause_is_in_the_guide() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "costs.md").read_text()
    assert [cause for cause in REASONS if cause and f"`{cause}`" not in guide] == []


async def test_groups_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    store = await open_store(tmp_path, prices=price_list(Catalog()), now=lambda: 0.0)
    try:
        memory = Memory(tmp_path, lambda: 0.0)
        records = Records(store, lambda: 0.0, price_list(Catalog()))
        viewer = Viewer(Holds(memory, lambda: 0.0), records, Catalog(), memory)
        with pytest.raises(Fault, match="causes are not summed by"):
            await CacheReports(TurnExaminer(viewer, lambda: 0.0)).read(Query("by=colour"))
    finally:
        await store.close()
