"""A question with tools, over HTTP from end to end: a topic names them, a page approves, and the pair has it all."""

from pathlib import Path
from typing import Any

from sightline.model.parts import ToolCall
from tests.chat.api.http_stage import ChatDesk, chat_desk
from tests.loop_stage import calls, says
from tests.running_stage import plays

TOOLS = '''
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: the first
        b: the second
    """
    return a + b
'''
CONFIG = '[tools.sums]\npython = "sums.py"\n'


def begun(desk: ChatDesk, folder: Path) -> str:
    """A question in a topic with tools, whose first call waits for the page; the pair."""
    (folder / "sums.py").write_text(TOOLS)
    asked = calls(ToolCall("c1", "add", '{"a": 2, "b": 2}'), ToolCall("c2", "add", '{"a": 1, "b": "1"}'))
    desk.upstream.script = [plays(asked), plays(says("Seven and two."))]
    topic = desk.done("POST", "topics", {"name": "Sums", "toolsets": ["sums"]})
    desk.look(topic=topic["id"])
    return desk.done("POST", "send", {"view": "v", "text": "Add them."})["pair"]


def waiting(desk: ChatDesk) -> Any:
    """The run that waits for somebody."""

    def runs() -> Any:
        return desk.person.ask("GET", "/api/runs")[1]

    (line,) = desk.person.until(runs, lambda told: bool(told) and told[0]["state"] == "waiting")
    return desk.person.ask("GET", f"/api/runs/{line['id']}")[1]


def test_a_call_is_approved_with_other_arguments_and_the_pair_has_all_rounds(tmp_path: Path) -> None:
    with chat_desk(tmp_path, CONFIG) as desk:
        assert desk.person.ask("GET", "/api/about")[1]["places"] == ["traffic", "chat", "runs", "evals", "example"]
        pair = begun(desk, tmp_path)
        run = waiting(desk)
        assert [call["arguments"] for call in run["pending"]["calls"]] == [{"a": 2, "b": 2}, {"a": 1, "b": 1}]
        decisions = {
            "1.1": {"decision": "allowed", "arguments": {"a": 3, "b": 4}},
            "1.2": {"decision": "allowed"},
        }
        status, _ = desk.person.ask("POST", f"/api/runs/{run['id']}/decide", {"decisions": decisions})
        assert status == 200
        shown = desk.ended(pair)
        blocks = shown["answer"]["blocks"]
        assert [block["type"] for block in blocks] == ["call", "call", "text"]
        assert [block["result"]["text"] for block in blocks[:2]] == ["7", "2"]
        assert (shown["run"], blocks[2]["text"]) == (run["id"], "Seven and two.")
        ended = desk.person.ask("GET", f"/api/runs/{run['id']}")[1]
        assert (ended["state"], ended["why"], len(ended["rounds"])) == ("ended", "answered", 2)
        assert ended["origin"]["toolsets"] == ["sums"]
        assert [each["role"] for each in desk.sent[1]["messages"]][-3:] == ["assistant", "tool", "tool"]


def test_a_server_that_ends_while_a_call_waits_leaves_a_run_that_the_next_takes_up(tmp_path: Path) -> None:
    with chat_desk(tmp_path, CONFIG) as desk:
        begun(desk, tmp_path)
        run = waiting(desk)
    with chat_desk(tmp_path, CONFIG) as desk:
        desk.upstream.script = [plays(says("Taken up."))]
        left = desk.person.ask("GET", f"/api/runs/{run['id']}")[1]
        assert left["state"] == "interrupted"
        assert desk.person.ask("POST", f"/api/runs/{run['id']}/resume", {})[0] == 200
        again = waiting(desk)
        decisions = {call["key"]: {"decision": "allowed"} for call in again["pending"]["calls"]}
        assert desk.person.ask("POST", f"/api/runs/{run['id']}/decide", {"decisions": decisions})[0] == 200
        path = f"/api/runs/{run['id']}"
        ended = desk.person.until(lambda: desk.person.ask("GET", path)[1], lambda told: told["state"] == "ended")
        assert (ended["why"], ended["rounds"][-1]["text"]) == ("answered", "Taken up.")
        assert [call["result"]["text"] for call in ended["rounds"][0]["calls"]] == ["4", "2"]
