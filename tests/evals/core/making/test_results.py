from sightline.evals.core.making.case import behind_calls
from sightline.model.json import JsonObject

USER: JsonObject = {"role": "user", "content": "Hurry."}


def calls(*names: str, **more: str) -> JsonObject:
    return {
        "role": "assistant",
        **more,
        "tool_calls": [{"id": name, "name": "look", "arguments": {}} for name in names],
    }


def result(name: str, text: str = "seen") -> JsonObject:
    return {"role": "tool", "tool_call_id": name, "name": "look", "content": text}


def ordered(*messages: JsonObject) -> tuple[list[JsonObject], list[str]]:
    left: list[str] = []
    return behind_calls(messages, lambda what, _why: left.append(what)), left


def test_what_can_be_sent_stays_as_it_is() -> None:
    talk = [USER, calls("a", "b"), result("b"), result("a"), {"role": "assistant", "content": "Done."}, USER]
    assert ordered(*talk) == (talk, [])


def test_results_move_behind_their_calls() -> None:
    found, left = ordered(calls("a", "b"), USER, result("b"), {"role": "assistant", "content": "Hm."}, result("a"))
    assert found == [calls("a", "b"), result("b"), result("a"), USER, {"role": "assistant", "content": "Hm."}]
    assert left == ["the place of a result"]


def test_a_call_without_a_result_is_left_out() -> None:
    assert ordered(USER, calls("a"), USER) == ([USER, USER], ["a call of look"])
    said = calls("a", content="I look.")
    assert ordered(said, USER) == ([{"role": "assistant", "content": "I look."}, USER], ["a call of look"])
    assert ordered(calls("a", "b"), result("b")) == ([calls("b"), result("b")], ["a call of look"])


def test_a_second_result_of_a_call_is_left_out() -> None:
    found, left = ordered(calls("a"), result("a"), result("a", "again"), USER)
    assert (found, left) == ([calls("a"), result("a"), USER], ["a second result of a call"])


def test_a_result_of_no_call_stays_where_it_is() -> None:
    orphan: JsonObject = {"role": "tool", "name": "look", "content": "seen"}
    assert ordered(orphan, result("x"), USER) == ([orphan, result("x"), USER], [])
