"""What is asked of every subject, and the bytes of the request."""

import json
import secrets
from dataclasses import dataclass, replace

from bench import documents

CHUNKS_OF_A_BURST = 200
CHUNKS_OF_A_PACED_STREAM = 100
PACE_MICROSECONDS = 20_000
# The load generator puts a running number here: the same body twice would be stored once.
NUMBER = "########"
# And it fills this with words that do not repeat; the upstream answers such a request in such words too.
VARIED = "Answer in varied words. " + 640 * "~"
# Made anew for each run: a peer that asks for a key of its own gets this one.
KEY = "sk-" + secrets.token_hex(32)


@dataclass(frozen=True)
class Scenario:
    """One kind of load. It ends after a time or, where that is 0, after so many requests."""

    name: str
    model: str
    connections: int
    milliseconds: int
    requests: int = 0
    chunks: int = 0
    body_size: int = 1_000
    is_varied: bool = False

    @property
    def is_stream(self) -> bool:
        return self.chunks > 0

    @property
    def marks(self) -> int:
        """How many marks a complete answer has: one for each chunk, or the one of a whole answer."""
        return self.chunks or 1

    @property
    def spread(self) -> int:
        """Microseconds between the beginnings of two connections: paced streams must not all send at once."""
        return PACE_MICROSECONDS // self.connections if self.model == "bench-paced" else 0

    def request(self, port: int, path: str, model_prefix: str, headers: dict[str, str]) -> bytes:
        """The request as it goes over the wire."""
        body = self._body(model_prefix + self.model)
        lines = {
            "Host": f"127.0.0.1:{port}",
            "Content-Type": "application/json",
            "Accept": "text/event-stream" if self.is_stream else "application/json",
            "Authorization": f"Bearer {KEY}",
            "User-Agent": "bench/1",
            "Content-Length": str(len(body)),
            **headers,
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body

    def _body(self, model: str) -> bytes:
        if self.body_size > 10_000:
            document = json.loads(documents.request("openai-chat", self.body_size))
        else:
            words = ["Look at this and say in a few sentences what it is about."]
            while not self.is_varied and sum(map(len, words)) < self.body_size - 250:
                words.append("The harbour lay still while the boats came home with the evening tide.")
            document = {
                "messages": [
                    {"role": "system", "content": "You are a patient assistant who answers in plain sentences."},
                    {"role": "user", "content": " ".join(words)},
                ],
                "temperature": 0.7,
                "max_tokens": 512,
            }
        varied = f" {VARIED}" if self.is_varied else ""
        document["messages"].append({"role": "user", "content": f"Go on with number {NUMBER}.{varied}"})
        document = {"model": model, **{key: value for key, value in document.items() if key != "model"}}
        document["stream"] = self.is_stream
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


_PLAIN = (
    Scenario("whole, 1", "bench-whole", 1, 2_000),
    Scenario("whole, 32", "bench-whole", 32, 2_000),
    Scenario("whole, 256", "bench-whole", 256, 2_000),
    Scenario("agent, 8", "bench-whole", 8, 2_000, body_size=97_000),
    Scenario("burst, 32", "bench-burst", 32, 2_000, chunks=CHUNKS_OF_A_BURST),
    Scenario("paced, 64", "bench-paced", 64, 0, requests=64, chunks=CHUNKS_OF_A_PACED_STREAM),
)
SCENARIOS = (*_PLAIN, *(replace(each, name=f"varied {each.name}", is_varied=True) for each in _PLAIN))
"""Each load in words that repeat, as it was first measured, and in words that do not."""


def chosen(*, is_quick: bool) -> tuple[Scenario, ...]:
    """The scenarios, for half of the time where it has to be quick."""
    if not is_quick:
        return SCENARIOS
    return tuple(replace(each, milliseconds=each.milliseconds // 2) for each in SCENARIOS)
