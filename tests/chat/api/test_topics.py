from collections.abc import Iterator
from typing import Any

import pytest

from tests.chat.api.http_stage import ChatDesk, chat_desk


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatDesk]:
    with chat_desk(tmp_path_factory.mktemp("topics")) as made:
        yield made


def listed(desk: ChatDesk) -> dict[str, Any]:
    return {" > ".join(each["path"]): each for each in desk.done("GET", "topics")}


def test_topics_are_a_tree_with_counts(desk: ChatDesk) -> None:
    above = desk.done("POST", "topics", {"name": "Science", "system_prompt": "Be exact.", "model": "acme/large"})
    below = desk.done(
        "POST",
        "topics",
        {"name": "Physics", "parent": above["id"], "parameters": {"temperature": 0.5}, "style_directives": ["short"]},
    )
    assert (below["path"], below["direct"], below["total"]) == (["Science", "Physics"], 0, 0)
    desk.look(topic=below["id"])
    desk.ask("What is light?")
    assert desk.sent[-1]["messages"][0] == {"role": "system", "content": "Be exact.\n\nshort"}
    assert desk.sent[-1]["temperature"] == 0.5
    told = listed(desk)
    assert list(told) == ["", "Science", "Science > Physics"]
    assert [(each["direct"], each["total"]) for each in told.values()] == [(0, 1), (0, 1), (1, 1)]
    shown = desk.done("GET", "views/v")
    assert shown["inherited"]["system_prompt"] == "Be exact."
    desk.look(topic="")


def test_what_is_left_out_of_a_change_stays_and_null_is_as_above(desk: ChatDesk) -> None:
    topic = desk.done("POST", "topics", {"name": "Art", "system_prompt": "Be kind.", "model": "acme/large"})["id"]
    changed = desk.done("PUT", f"topics/{topic}", {"name": "Arts", "model": None})
    assert (changed["name"], changed["system_prompt"], changed["model"]) == ("Arts", "Be kind.", None)
    desk.done("DELETE", f"topics/{topic}")
    assert "Arts" not in listed(desk)
    desk.refused(404, "DELETE", f"topics/{topic}")
    desk.refused(404, "PUT", f"topics/{topic}", {"name": "x"})


def test_what_holds_everywhere_is_said_of_the_topic_of_all_topics(desk: ChatDesk) -> None:
    for path in ("topics", "topics/"):
        assert desk.done("PUT", path, {"system_prompt": "Everywhere."})["id"] == ""
    assert desk.look("other", topic="")["inherited"]["system_prompt"] == "Everywhere."
    desk.refused(400, "PUT", "topics", {"name": "Root"})
    desk.done("PUT", "topics", {"system_prompt": None})


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ({}, 422),
        ({"name": ""}, 400),
        ({"name": "A", "parent": "none"}, 404),
        ({"name": "A", "parameters": {"temperature": 9}}, 422),
        ({"name": "A", "parameters": {"temp": 1}}, 422),
        ({"name": "A", "toolsets": ["shell"]}, 422),
        ({"name": "A", "id": "mine"}, 422),
    ],
)
def test_what_a_topic_cannot_be(desk: ChatDesk, wanted: dict[str, object], status: int) -> None:
    desk.refused(status, "POST", "topics", wanted)


def test_a_topic_with_pairs_stays(desk: ChatDesk) -> None:
    topic = desk.done("POST", "topics", {"name": "Busy"})["id"]
    desk.look(topic=topic)
    desk.ask("here")
    desk.look(topic="")
    assert "Move or delete them first." in desk.refused(400, "DELETE", f"topics/{topic}")["hint"]


def test_no_topic_is_below_itself(desk: ChatDesk) -> None:
    topic = desk.done("POST", "topics", {"name": "Loop"})["id"]
    desk.refused(400, "PUT", f"topics/{topic}", {"parent": topic})
