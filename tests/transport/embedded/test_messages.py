import msgspec
import pytest

from sightline.transport.embedded.messages import Answer, ChildFailed, ChildOrders, ChildStarted


@pytest.mark.parametrize("answer", [ChildStarted("http://127.0.0.1:1"), ChildFailed("libgomp", "no such file")])
def test_an_answer_comes_over_as_it_was_said(answer: Answer) -> None:
    line = msgspec.json.encode(answer)
    assert b"\n" not in line
    assert msgspec.json.decode(line, type=Answer) == answer


def test_a_cause_that_nobody_knows_is_not_understood() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"type":"failed","cause":"mood"}', type=Answer)


def test_orders_show_no_key() -> None:
    orders = ChildOrders(key="secret-word", threads=1, context_window=512)
    assert "secret-word" not in f"{orders} {orders!r}"
    assert msgspec.json.decode(msgspec.json.encode(orders), type=ChildOrders).key == "secret-word"
