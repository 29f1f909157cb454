from pathlib import Path

import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.facts import Model
from sightline.catalog.provider import Provider
from sightline.errors import Fault
from sightline.evals.service.context import EvalContext

CATALOG = Catalog(
    providers={"acme": Provider(dialect="openai-chat", base_url="http://x", key_env="K", default_model="usual")},
    models={"m": Model(providers=("acme",))},
)


def around(**more: object) -> EvalContext:
    return EvalContext(CATALOG, lambda _: True, lambda: "x_1", Path(), **more)  # type: ignore[arg-type]


def test_the_model_is_the_one_that_is_named_the_configured_or_the_usual_one() -> None:
    assert around().choice("acme/m").model == "m"
    assert around(default_model="acme/other").choice("").model == "other"
    assert around().choice("").model == "usual"


def test_nothing_is_alive_priced_or_recorded_where_nobody_says_so() -> None:
    assert (around().is_alive("p"), around().prices("acme", "m")) == (False, None)
    with pytest.raises(Fault, match="there is no record, and it is wanted"):
        around().require_store("it is wanted")
