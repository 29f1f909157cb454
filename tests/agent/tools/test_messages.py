import msgspec
import pytest

from sightline.agent.core.output import text_outcome
from sightline.agent.core.tool import Definition
from sightline.agent.tools.worker import Answer, FileBroken, FileLoaded, Load, Order, Ran, RunFunction


@pytest.mark.parametrize(
    "answer", [FileLoaded((Definition(name="f"),)), FileBroken("no", 3, "do"), Ran(text_outcome("x"))]
)
def test_every_answer_is_read_as_it_was_written(answer: Answer) -> None:
    assert msgspec.json.decode(msgspec.json.encode(answer), type=FileLoaded | FileBroken | Ran) == answer


@pytest.mark.parametrize("order", [Load("def f(): ..."), RunFunction("f", {"a": [1]})])
def test_every_order_is_read_as_it_was_written(order: Order) -> None:
    assert msgspec.json.decode(msgspec.json.encode(order), type=Load | RunFunction) == order
