import json

import pytest

from sightline.errors import Fault
from sightline.exchange import socket_history
from sightline.exchange.socket_history import SocketHistory


def ask(history: SocketHistory, text: str, answer: str, *, before: str = "", response: str) -> list[str]:
    """What goes out as the input of a request that continues `before`; its answer is remembered as `response`."""
    frame = {"type": "response.create", "input": [text], "previous_response_id": before or None}
    form = history.http_form(json.dumps(frame).encode())
    event = {"type": "response.completed", "response": {"id": response, "output": [answer]}}
    history.keep(form, json.dumps(event).encode())
    sent: list[str] = json.loads(form.body)["input"]
    return sent


def test_response_continues_the_turn_that_it_names() -> None:
    history = SocketHistory()
    ask(history, "a", "A", response="r1")
    assert ask(history, "b", "B", before="r1", response="r2") == ["a", "A", "b"]
    assert ask(history, "c", "C", before="r1", response="r3") == ["a", "A", "c"]
    assert ask(history, "d", "D", before="r2", response="r4") == ["a", "A", "b", "B", "d"]


def test_provider_may_use_an_id_again() -> None:
    history = SocketHistory()
    ask(history, "a", "A", response="r")
    assert ask(history, "b", "B", before="r", response="r") == ["a", "A", "b"]
    assert ask(history, "c", "C", before="r", response="s") == ["a", "A", "b", "B", "c"]
    assert ask(history, "d", "D", before="s", response="r") == ["a", "A", "b", "B", "c", "C", "d"]
    assert ask(history, "e", "E", before="r", response="t") == ["a", "A", "b", "B", "c", "C", "d", "D", "e"]


def test_conversation_whose_beginning_is_forgotten_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_history, "_MOST_KEPT", 20)
    history = SocketHistory()
    ask(history, "a" * 5, "A", response="r1")
    ask(history, "b", "B", before="r1", response="r2")
    ask(history, "c" * 5, "C", response="r3")
    with pytest.raises(Fault, match="beginning of this conversation"):
        ask(history, "d", "D", before="r2", response="r4")
    frame = json.dumps({"type": "response.create", "input": "e", "previous_response_id": "r1"}).encode()
    assert json.loads(history.http_form(frame).body)["previous_response_id"] == "r1"


def test_texts_with_half_a_surrogate_pair_are_kept_and_sent_again() -> None:
    history = SocketHistory()
    assert ask(history, "\ud83d", "\udc4d", response="r1") == ["\ud83d"]
    assert ask(history, "b", "B", before="r1", response="r2") == ["\ud83d", "\udc4d", "b"]
