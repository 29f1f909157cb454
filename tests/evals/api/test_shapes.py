import msgspec
from msgspec import inspect

from sightline.evals.api import shapes


def test_every_answer_can_be_written_as_json() -> None:
    kinds = [each for each in vars(shapes).values() if isinstance(each, type) and issubclass(each, msgspec.Struct)]
    assert {"EvalShown", "CaseShown", "CompareShown", "MadeShown"} <= {each.__name__ for each in kinds}
    for kind in inspect.multi_type_info(kinds):
        assert isinstance(kind, inspect.StructType)
