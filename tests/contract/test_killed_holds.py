"""A process that is killed while it holds a request: every edit that it told of is there, and the hold has ended."""

import asyncio
import subprocess
import sys
from pathlib import Path

from sightline.model.exchange import Edited, Held
from sightline.store.sqlite import open_store
from tests.store.traffic import NOON, prices

ROOT = Path(__file__).parents[2]
HOLDING = """
import asyncio, sys
from sightline.app.configuration import configuration
from sightline.app.engine import open_relay
from sightline.editing.operations import Set
from tests.relay_stage import asks

async def main(config, folder):
    async with open_relay(configuration(config), folder) as (relay, _):
        relay.holds.set_mode("every")
        waiting = asyncio.ensure_future(relay.start(asks("openai-chat", provider="acme")))
        while not relay.holds.waiting:
            await asyncio.sleep(0)
        for number in range(3):
            edit = Set(pointer="/messages/0/content", value=f"{number}")
            hold = relay.holds.edit(relay.holds.waiting[0].exchange, edit)
            print(hold.exchange, hold.draft.sha256, flush=True)
        await waiting

asyncio.run(main(*sys.argv[1:]))
"""


def test_edits_that_were_told_survive_and_the_hold_is_cancelled(tmp_path: Path) -> None:
    config = tmp_path / "sightline.toml"
    config.write_text('[providers.acme]\ndialect = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n')
    command = [sys.executable, "-c", HOLDING, str(config), str(tmp_path / "data")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            told = [child.stdout.readline().split() for _ in range(3)]
        finally:
            child.kill()

    async def story() -> None:
        store = await open_store(tmp_path / "data", prices=prices, now=lambda: NOON)
        try:
            await store.settle()
            exchange = told[0][0]
            facts = [noted.fact for noted in await store.facts(exchange)]
            assert [str(type(fact).__struct_config__.tag) for fact in facts] == [
                "received", "held", "edited", "edited", "edited", "cancelled",
            ]  # fmt: skip
            assert facts[1] == Held("request")
            assert [fact.after for fact in facts if isinstance(fact, Edited)] == [name for _, name in told]
            for number, (_, name) in enumerate(told):
                assert f'"content": "{number}"'.encode() in (await store.body(name) or b"")
        finally:
            await store.close()

    asyncio.run(story())
