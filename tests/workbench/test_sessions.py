"""Sessions: turns in their order, what each caused, and what a look at its body tells."""

import json
from pathlib import Path
from typing import Any

import pytest

from sightline.editing.section import CallReference, Kind, Section, SectionPart, Tokens
from sightline.store.summary import Summary
from sightline.tokens.cache_autopsy import REASONS, CacheAutopsy
from sightline.workbench.cache_turns import CacheTurn
from sightline.workbench.session_lines import list_sessions
from sightline.workbench.sessions import SessionThread, arrange, break_of, growth_of, place_of, show_session
from tests.desk_stage import DeskStage, desk_stage
from tests.upstream import answer


def line(number: int, at: float, previous: str = "", **more: Any) -> Summary:
    values = {"state": "finished", "session": "fix", "elapsed": 1.0, "cost": 0.5, "title": "Mend it", **more}
    return Summary(id=f"x_{number}", at=at, previous=previous, **values)


def tree(threads: tuple[SessionThread, ...]) -> list[Any]:
    """The ids of each thread with its kind, and what is below each."""
    return [
        (thread.kind, [(turn.id, tree(turn.below)) if turn.below else turn.id for turn in thread.turns])
        for thread in threads
    ]


def test_turns_that_continue_each_other_are_one_conversation_with_a_running_sum() -> None:
    threads = arrange([line(3, 30, "x_2", title="And now?"), line(1, 10), line(2, 20, "x_1")])
    assert tree(threads) == [("conversation", ["x_1", "x_2", "x_3"])]
    assert [turn.asked for turn in threads[0].turns] == ["Mend it", "", "And now?"]
    assert [turn.total for turn in threads[0].turns] == [0.5, 1.0, 1.5]


def test_a_thread_that_begins_while_a_turn_waits_for_its_tools_is_its_sub_agent() -> None:
    threads = arrange(
        [
            line(1, 10, tools=("Task",)),
            line(2, 12, title="Look for callers", tools=("Grep",)),
            line(3, 14, "x_2", title="Look for callers", tools=("Task",)),
            line(4, 16, title="Deeper"),
            line(5, 18, "x_3", title="Look for callers"),
            line(6, 20, "x_1"),
        ]
    )
    assert tree(threads) == [
        ("conversation", [("x_1", [("agent", ["x_2", ("x_3", [("agent", ["x_4"])]), "x_5"])]), "x_6"])
    ]
    at_once = arrange([line(1, 10, tools=("Task",), elapsed=0.507), line(2, 10.5, title="Look for callers")])
    assert tree(at_once) == [("conversation", [("x_1", [("agent", ["x_2"])])])], "as far as two clocks can tell"
    agent = threads[0].turns[0].below[0]
    assert (agent.title, agent.requests, agent.cost) == ("Look for callers", 4, 2.0)
    assert [turn.total for turn in threads[0].turns] == [2.5, 3.0]


def test_another_conversation_is_not_taken_for_a_sub_agent() -> None:
    ended = [line(1, 10, tools=("Bash",)), line(2, 12, title="New")]
    assert tree(arrange(ended)) == [("conversation", ["x_1"]), ("conversation", ["x_2"])]
    still_answering = [line(1, 10, tools=("Task",), elapsed=5.0), line(2, 12, title="New")]
    assert len(arrange(still_answering)) == 2


def test_errands_and_replays_are_below_the_turn_that_they_belong_to() -> None:
    threads = arrange([line(1, 10), line(2, 11, is_side=True), line(3, 50, "x_1"), line(4, 90, "x_1", origin="x_1")])
    assert tree(threads) == [("conversation", [("x_1", [("side", ["x_2"]), ("replay", ["x_4"])]), "x_3"])]
    far = arrange([line(1, 10), line(2, 9_000, is_side=True)])
    assert tree(far) == [("conversation", ["x_1"]), ("side", ["x_2"])]


def test_a_session_adds_up_what_all_of_its_requests_took() -> None:
    shown = show_session(
        "fix",
        [
            line(1, 10, input_tokens=100, cached_tokens=40, output_tokens=5, model="m"),
            line(2, 12, is_side=True, input_tokens=7, output_tokens=1, cost=None, model="small"),
        ],
    )
    assert (shown.turns, shown.requests, shown.input_tokens, shown.cached_tokens) == (1, 2, 107, 40)
    assert (shown.cost, shown.unpriced, shown.models, shown.ended) == (0.5, 1, ("m", "small"), 13.0)


def test_a_request_knows_its_place_and_its_neighbours() -> None:
    shown = show_session("fix", [line(1, 10), line(2, 20, "x_1"), line(3, 30, "x_2"), line(4, 21, is_side=True)])
    middle = place_of("x_2", shown)
    assert (middle.turn, middle.turns, middle.previous, middle.next, middle.above) == (2, 3, "x_1", "x_3", "")
    assert (place_of("x_1", shown).previous, place_of("x_3", shown).next) == ("", "")
    side = place_of("x_4", shown)
    assert (side.turn, side.turns, side.above) == (1, 1, "x_2")
    assert place_of("x_9", shown).turns == 0


def section(kind: Kind, tokens: int | None, *parts: SectionPart, deleted: bool = False, reads: str = "") -> Section:
    answers = (CallReference("c1", reads, "{}", "s1"),) if reads else ()
    return Section(
        id="s", kind=kind, role="user", label="", pointer="", text="", editable=False, deleted=deleted, parts=parts,
        category="user", tokens=None if tokens is None else Tokens(tokens, tokens, tokens), answers=answers,
    )  # fmt: skip


def part(kind: Any, text: str, **more: str) -> SectionPart:
    return SectionPart(id="p", type=kind, pointer="", text=text, **more)  # type: ignore[arg-type]


def test_what_fills_a_context_is_counted_as_a_person_thinks_of_it() -> None:
    rows = growth_of(
        [
            section("system", 50),
            section("tools", 30, part("tool", "x" * 20, name="Read"), part("tool", "x" * 10, name="mcp__git__log")),
            section("user", 40, part("tool_result", "x" * 30, call_id="c1"), part("text", "y" * 10), reads="Read"),
            section("tool_result", 8, part("tool_result", "x" * 8, name="Bash")),
            section("user", 9, part("text", "<system-reminder>"), part("text", "")),
            section("user", 7, deleted=True),
            section("options", None),
        ]
    )
    assert {row.name: row.tokens for row in rows} == {
        "System prompt": 50,
        "Tools": 20,
        "Tools of git": 10,
        "Files read": 30,
        "User": 11,
        "Tool results": 8,
        "Added by the client": 8,
    }


def turn(autopsy: CacheAutopsy) -> CacheTurn:
    named: dict[str, Any] = {"reason": REASONS[autopsy.cause], "section": "s2", "previous": "x_0", "autopsy": autopsy}
    return CacheTurn(exchange="x_1", at=1.0, model="m", client="c", input_tokens=9, **named)


@pytest.mark.parametrize(
    ("autopsy", "kind", "tokens"),
    [
        (CacheAutopsy(cause="tools", read_tokens=100, lost_tokens=900, offset=3), "changed", 900),
        (CacheAutopsy(cause="expired", lost_tokens=3_900), "missed", 3_900),
        (CacheAutopsy(cause="below_minimum", lost_tokens=700), "", 0),
        (CacheAutopsy(cause=""), "", 0),
        (CacheAutopsy(cause="cold_start"), "", 0),
    ],
)
def test_a_break_is_a_changed_prompt_or_a_cache_that_was_not_read(
    autopsy: CacheAutopsy, kind: str, tokens: int
) -> None:
    found = break_of(turn(autopsy))
    assert (("", 0) if found is None else (found.kind, found.tokens)) == (kind, tokens)
    assert found is None or (found.cause, found.previous) == (autopsy.cause, "x_0")


def test_a_turn_that_was_not_examined_breaks_no_cache() -> None:
    assert break_of(None) is None


def call(name: str, arguments: object, usage: dict[str, Any]) -> bytes:
    function = {"name": name, "arguments": json.dumps(arguments)}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return json.dumps(
        {"id": "r", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
    ).encode()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("sessions")
    with desk_stage(folder) as stage:
        stage.person.put("/api/interception", {"mode": "off"})
        yield stage


def conversation(desk: DeskStage, session: str) -> list[str]:
    """Two turns of an agent: it reads a file, and the system prompt has changed when it answers."""
    details = {"prompt_tokens_details": {"cached_tokens": 0}}
    usage = {"prompt_tokens": 4_000, "completion_tokens": 9, "total_tokens": 4_009, **details}
    desk.upstream.script = [answer(200, call("Read", {"file_path": "/shop/parser.py"}, usage), [])]
    asked = [{"role": "system", "content": "Rules. " * 900}, {"role": "user", "content": "Mend the parser"}]
    first = desk.ask({"model": "m", "messages": asked}, session).result()
    called = {
        "role": "assistant",
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "Read", "arguments": '{"file_path": "/shop/parser.py"}'},
            }
        ],
    }
    result = {"role": "tool", "tool_call_id": "c1", "content": "def parse(): ..." * 50}
    asked[0] = {"role": "system", "content": "Today is Monday. " + "Rules. " * 900}
    second = desk.ask({"model": "m", "messages": [*asked, called, result]}, session).result()
    return [first.exchange, second.exchange]


def test_a_session_is_read_with_the_details_of_its_turns(desk: DeskStage) -> None:
    ids = conversation(desk, "fix@shop")
    shown = desk.person.get("/api/sessions/fix%40shop")
    assert [turn["id"] for turn in shown["threads"][0]["turns"]] == ids
    assert [turn["asked"] for turn in shown["threads"][0]["turns"]] == ["Mend the parser", ""]
    first, second = desk.person.get(f"/api/turns?ids={','.join(ids)}")["turns"]
    assert (first["calls"], first["broken"]) == (["Read parser.py"], None)
    assert second["broken"]["kind"] == "changed"
    assert (second["broken"]["section"], second["broken"]["previous"]) == ("s1", ids[0])
    assert "Files read" in {row["name"] for row in second["kinds"]}
    place = desk.person.get(f"/api/exchanges/{ids[1]}/place")
    assert (place["key"], place["turn"], place["turns"], place["previous"]) == ("fix@shop", 2, 2, ids[0])
    assert desk.person.get(f"/api/sessions/{ids[0]}")["key"] == "fix@shop"


def test_a_session_that_is_not_on_record_and_turns_that_are_too_many_are_refused(desk: DeskStage) -> None:
    assert desk.person.ask("GET", "/api/sessions/nobody")[0] == 404
    assert desk.person.ask("GET", "/api/sessions/x_nothing")[0] == 404
    assert desk.person.ask("GET", "/api/turns?ids=")[0] == 400
    assert desk.person.ask("GET", f"/api/turns?ids={','.join(['x_1'] * 21)}")[0] == 400


def test_sessions_are_listed_by_name_or_conversation_the_latest_first() -> None:
    lines = [
        line(1, 10, session="fix@shop", client="claude-cli/2.0", input_tokens=100, output_tokens=10),
        line(
            2, 12, session="fix@shop", client="claude-cli/2.0", title="Title", is_side=True, cost=None, input_tokens=5
        ),
        line(3, 30, session="", title="Alone"),
        line(4, 40, "x_3", session="", title="And on", state="failed"),
        line(5, 50, session="", title="Replayed", origin="x_4"),
        line(6, 20, session="", title="Another"),
    ]
    briefs = list_sessions(reversed(lines))
    assert [(brief.key, brief.title, brief.turns, brief.requests) for brief in briefs] == [
        ("x_3", "Alone", 2, 3),
        ("x_6", "Another", 1, 1),
        ("fix@shop", "Mend it", 1, 2),
    ]
    named = briefs[-1]
    assert (named.project, named.input_tokens, named.output_tokens) == ("shop", 105, 10)
    assert (named.cost, named.unpriced) == (0.5, 1)
    assert (named.began, named.ended, briefs[0].failed) == (10, 13.0, 1)


@pytest.mark.parametrize(
    "path", ["/v1/messages/count_tokens?beta=true", "/v1/responses/input_tokens", "/m:countTokens"]
)
def test_to_have_tokens_counted_is_no_turn(path: str) -> None:
    (brief,) = list_sessions([line(1, 10), line(2, 20, path=path, title="Counted")])
    assert (brief.requests, brief.turns) == (2, 1)
