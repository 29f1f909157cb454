from collections.abc import Iterator
from urllib.parse import urlencode

import pytest

from sightline.model.exchange import AttemptStarted, ExchangeFinished, Received
from sightline.store.entries import FactEntry
from tests.server.running import Running, running


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as made:
        made.store.record(
            [
                FactEntry("x_1", 0, 1.0, Received("anthropic", "claude-9", "aa", session="my task")),
                FactEntry("x_1", 1, 1.0, AttemptStarted(1, "acme", "aa")),
                FactEntry("x_1", 2, 2.0, ExchangeFinished("stop", 200, tools=("weather",))),
            ]
        )
        yield made


def looked(server: Running, **query: str) -> tuple[int, dict[str, object]]:
    status, told = server.api(f"/api/filter?{urlencode(query)}")
    return status, told


def texts(server: Running, **query: str) -> list[str]:
    return [offer["text"] for offer in looked(server, **query)[1]["completions"]]  # type: ignore[attr-defined]


def test_a_filter_that_can_be_read(server: Running) -> None:
    assert looked(server, text="model:claude-* ", at="0")[1]["ok"] is True
    assert looked(server)[1]["ok"] is True


def test_what_has_been_there_is_offered(server: Running) -> None:
    assert texts(server, text="model:") == ["model:claude-9"]
    assert texts(server, text="session:") == ['session:"my task"']
    assert texts(server, text="tool:w") == ["tool:weather"]
    assert texts(server, text="provider:") == ["provider:acme"]
    assert texts(server, text="sess & model:x", at="4") == ["session:"]


def test_a_mistake_is_told_with_its_place_as_browsers_count(server: Running) -> None:
    _, told = looked(server, text='text:"😀" & colour:red')
    error = told["error"]
    assert isinstance(error, dict)
    assert (told["ok"], error["column"], error["length"]) == (False, 13, 6)
    assert error["hint"]
    assert "^" not in error["hint"]
    offers = looked(server, text='text:"😀" & mod', at="15")[1]["completions"]
    assert offers == [{"text": "model:", "label": "model", "help": "the model that was asked for", "from": 12}]


def test_a_filter_that_is_far_too_long_is_a_mistake_too(server: Running) -> None:
    error = looked(server, text="a" * 10_001)[1]["error"]
    assert isinstance(error, dict)
    assert "10001" in error["message"]


def test_a_rule_cannot_ask_for_a_place_in_a_list(server: Running) -> None:
    assert looked(server, text="latest:5")[1]["ok"] is True
    assert looked(server, text="latest:5", **{"for": "rules"})[1]["ok"] is False
    assert texts(server, text="late", **{"for": "rules"}) == []
    assert looked(server, **{"for": "cooking"})[0] == 400


@pytest.mark.parametrize("at", ["x", "-1", "1.5", "9" * 10])
def test_a_cursor_that_is_nowhere_is_refused(server: Running, at: str) -> None:
    assert looked(server, text="a", at=at)[0] == 400
    assert looked(server, text="a", at="999")[0] == 200
