import asyncio

import pytest

from sightline.app.configuration import configuration
from sightline.app.engine import make_embedded_model


def test_the_embedded_model_is_as_it_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGHTLINE_LOCAL_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("SIGHTLINE_LOCAL_KEY", "k")
    model = make_embedded_model(configuration(None))
    assert model.runs_elsewhere
    running = asyncio.run(model.running())
    assert (running.url, running.key) == ("http://127.0.0.1:9", "k")
