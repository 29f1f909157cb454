"""What Sightline adds to a frame of a WebSocket, and what an idle socket costs."""

import asyncio
import json
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve

from bench.peers.process import Tree
from bench.peers.workshop import MissingError

TURNS = 20
FRAMES = 100
PACE = 0.001
"""Seconds between two frames: about as fast as a model writes at the most."""

IDLE = 200
MOST_ADDED_MS = 0.3
MOST_IDLE_MB = 5.0
CORE = 1
CONFIG = '[providers.bench]\nbase_url = "http://127.0.0.1:{port}/v1"\ndialect = "openai-responses"\n'


async def _answer(connection: ServerConnection) -> None:
    """Answer each request with paced frames that say when they left."""
    async for _ in connection:
        response = {"id": "resp_1", "object": "response", "model": "m", "status": "in_progress", "output": []}
        await connection.send(json.dumps({"type": "response.created", "response": response}))
        for _ in range(FRAMES):
            await asyncio.sleep(PACE)
            delta = {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0}
            await connection.send(json.dumps({**delta, "delta": " word" * 4, "at": time.perf_counter()}))
        response["status"] = "completed"
        await connection.send(json.dumps({"type": "response.completed", "response": response}))


async def _turn(connection: ClientConnection) -> list[float]:
    """The seconds that each frame of a response took."""
    await connection.send('{"type":"response.create","model":"m","input":"hi"}')
    took = []
    while True:
        frame = json.loads(await connection.recv())
        if "at" in frame:
            took.append(time.perf_counter() - frame["at"])
        if frame["type"] == "response.completed":
            return took


async def _figures(folder: Path, compression: str | None) -> tuple[float, float, float, float]:
    """The median of a frame in ms, direct and through Sightline; and the own memory in MB before and with idle
    sockets."""
    async with serve(_answer, "127.0.0.1", 0, compression=compression) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        config = folder / "sightline.toml"
        config.write_text(CONFIG.format(port=port))
        own = _free_port()
        program = str(Path(sys.executable).with_name("sightline"))
        data = str(folder / "data")
        command = [program, "serve", "--no-open", "--port", str(own), "--config", str(config), "--data", data]
        tree = Tree(command, folder, {}, CORE)
        try:
            places = (f"ws://127.0.0.1:{port}/v1/responses", f"ws://127.0.0.1:{own}/p/bench/v1/responses")
            await _until_listening(own, tree)
            direct: list[float] = []
            through: list[float] = []
            async with (
                connect(places[0], compression=compression) as first,
                connect(places[1], compression=compression) as second,
            ):
                await _turn(second)
                for _ in range(TURNS):  # in turn, so that what else the machine does is in both
                    direct += await _turn(first)
                    through += await _turn(second)
            await asyncio.to_thread(tree.settled_cpu_seconds)
            before = tree.own_memory()
            sockets = [await connect(places[1], compression=compression) for _ in range(IDLE)]
            await asyncio.to_thread(tree.settled_cpu_seconds)
            idle = tree.own_memory()
            for each in sockets:
                await each.close()
        finally:
            tree.stop()
    return statistics.median(direct) * 1000, statistics.median(through) * 1000, before, idle


async def _until_listening(port: int, tree: Tree) -> None:
    for _ in range(600):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            if tree.has_ended:
                raise MissingError(f"Sightline did not start: {tree.log.read_text()[-500:]}") from None
            await asyncio.sleep(0.1)
        else:
            writer.close()
            return
    raise MissingError("Sightline did not start within a minute")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def report() -> str:
    """The table of both, with frames as they are and compressed."""
    rows, verdicts = [], []
    for name, compression in (("plain", None), ("compressed", "deflate")):
        with tempfile.TemporaryDirectory() as folder:
            direct, through, before, idle = asyncio.run(_figures(Path(folder), compression))
        rows += [
            f"| direct, {name} | {direct:.3f} | | |",
            f"| Sightline, {name} | {through:.3f} | {before:.1f} | {idle:.1f} |",
        ]
        added, cost = through - direct, idle - before
        verdicts += [
            f"Added to a frame, {name}: {added:.3f} ms (aim: at most {MOST_ADDED_MS}): "
            f"{'held' if added <= MOST_ADDED_MS else '**not held**'}.",
            f"{IDLE} idle sockets, {name}, each with one to the provider: {cost:.1f} MB (aim: at most {MOST_IDLE_MB}): "
            f"{'held' if cost <= MOST_IDLE_MB else '**not held**'}.",
        ]
    head = "| | frame, median ms | own MB before | own MB with idle sockets |\n|---|---:|---:|---:|"
    return "\n".join(["### WebSocket\n", head, *rows, "", *verdicts])
