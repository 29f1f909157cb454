import msgspec
import pytest

from sightline.agent.core.output import said
from sightline.agent.core.tool import Definition
from sightline.agent.tools.messages import Answer, Broken, Load, Loaded, Order, Ran, Run


@pytest.mark.parametrize("answer", [Loaded((Definition(name="f"),)), Broken("no", 3, "do"), Ran(said("x"))])
def test_every_answer_is_read_as_it_was_written(answer: Answer) -> None:
    assert msgspec.json.decode(msgspec.json.encode(answer), type=Loaded | Broken | Ran) == answer


@pytest.mark.parametrize("order", [Load("def f(): ..."), Run("f", {"a": [1]})])
def test_every_order_is_read_as_it_was_written(order: Order) -> None:
    assert msgspec.json.decode(msgspec.json.encode(order), type=Load | Run) == order
