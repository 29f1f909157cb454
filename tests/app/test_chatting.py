import asyncio
from pathlib import Path

import msgspec
import pytest

from sightline.app.configuration import Configuration, configuration
from sightline.app.engine import open_engine, open_record
from sightline.app.server import chat_settings, open_chat
from sightline.chat.core.sizing import ChatSettings
from sightline.errors import Fault
from sightline.exchange.hub import Hub
from sightline.settings import ChatDefaults

CONFIG = """
[chat]
user_request_allowance = 600
style_directives = ["Be short."]
[providers.acme]
base_url = "http://127.0.0.1:1/v1"
[models."acme/large"]
prices = { input = 2.0, output = 4.0 }
[tools.notes]
folder = "."
"""


def loaded(folder: Path, text: str = CONFIG) -> Configuration:
    file = folder / "sightline.toml"
    file.write_text(text)
    return configuration(str(file))


def test_the_table_has_the_settings_of_the_chat_with_their_bounds() -> None:
    def told(kind: type[msgspec.Struct]) -> dict[str, object]:
        return {field.name: (field.default, field.type) for field in msgspec.structs.fields(kind)}

    assert told(ChatDefaults) == told(ChatSettings)


def test_what_is_configured_is_what_the_chat_goes_by(tmp_path: Path) -> None:
    settings = chat_settings(loaded(tmp_path))
    assert (settings.user_request_allowance, settings.style_directives) == (600, ("Be short.",))
    assert settings.max_trim_attempts == 10


def test_a_wrong_key_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(Fault) as caught:
        loaded(tmp_path, "[chat]\nuser_request_alowance = 1\n")
    assert "user_request_allowance" in caught.value.hint


def test_a_chat_is_opened_on_a_store(tmp_path: Path) -> None:
    async def story() -> None:
        config = loaded(tmp_path)
        async with open_engine(config, str(tmp_path)) as engine, open_record(config, str(tmp_path)) as store:
            parts = open_chat(config, engine, Hub(store.record), store.logbook)
            assert len(await parts.service.chat.load()) == 0
            assert parts.service.chat.make_id().startswith("c_")
            prices = parts.prices("acme/large")
            assert prices is not None
            assert prices.input == 2.0
            assert parts.prices("nobody-serves-this") is None
            assert parts.settings.user_request_allowance == 600
            assert parts.toolsets == ("notes",)
            await parts.service.close(0)

    asyncio.run(story())
