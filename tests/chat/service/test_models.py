"""What the chat knows of models."""

from pathlib import Path

import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.facts import Model
from sightline.catalog.provider import Provider
from sightline.chat.core.settings import ChatSettings
from sightline.chat.service import views as module
from sightline.chat.service.views import Models
from sightline.errors import Fault
from sightline.exchange.memory import Memory
from sightline.model.tools import FunctionTool
from sightline.model.usage import Usage
from sightline.tokens.estimate import between
from tests.chat.core.stage import answered


def models_of(folder: Path, preferred: str = "") -> Models:
    providers = {"acme": Provider(base_url="http://127.0.0.1:9", key_env="ACME_KEY", default_model="m")}
    facts = {name: Model(providers=("acme",), context_window=1000, tpm=500) for name in ("m", "n")}
    return Models(Catalog(providers=providers, models=facts), lambda _: True, Memory(folder, lambda: 1.0), preferred)


def test_a_name_means_somebody_or_nobody(tmp_path: Path) -> None:
    models = models_of(tmp_path)
    assert models.resolve("m").provider_name == "acme"
    assert models.find("acme/other") is not None
    assert models.find("nonsense") is None
    with pytest.raises(Fault, match="no provider is known"):
        models.resolve("nonsense")
    assert models.default == "acme/m"
    assert models_of(tmp_path, "n").default == "n"


def test_ml_is_the_window_or_the_tokens_of_a_minute_also_as_the_provider_tells_them(tmp_path: Path) -> None:
    models = models_of(tmp_path)
    assert models.limit(models.resolve("m")) == 500
    models.memory.ledger.observe_headers("acme", "m", {"x-ratelimit-limit-tokens": "200"}, 1.0)
    assert models.limit(models.resolve("m")) == 200


def test_what_was_counted_is_counted_once_and_stays_counted_when_something_is_learned(tmp_path: Path) -> None:
    models, settings = models_of(tmp_path), ChatSettings()
    choice = models.resolve("m")
    sizer = models.sizer(choice, settings)
    assert models.sizer(choice, ChatSettings(max_trim_attempts=1)) is sizer
    assert models.sizer(choice, ChatSettings(chars_per_token=1)) is not sizer
    assert models.sizer(choice, settings, (FunctionTool("look"),)) is not sizer
    pair = answered("a")
    estimate = sizer.pair(pair)
    models.memory.learn("acme", "m", between(10, 20, 30, ""), Usage(input_tokens=60), tools=False)
    wiser = models.sizer(choice, settings)
    assert wiser is not sizer
    assert wiser.pair(pair) is estimate
    assert wiser.cost(pair) != sizer.cost(pair)


def test_so_many_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SIZERS", 1)
    models, settings = models_of(tmp_path), ChatSettings()
    first = models.sizer(models.resolve("m"), settings)
    models.sizer(models.resolve("n"), settings)
    assert models.sizer(models.resolve("m"), settings) is not first
