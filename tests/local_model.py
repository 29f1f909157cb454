"""The real embedded model for tests: whether it can run here, and one that is serving."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec
import pytest

from sightline.dialects.endpoint import counting_of, read_token_count
from sightline.transport.embedded.causes import ChildOrders
from sightline.transport.embedded.child import inspect
from sightline.transport.embedded.process import child_environment
from tests.http_call import Answer, call

CHILD = [sys.executable, "-P", "-m", "sightline.transport.embedded.child"]
KEY = "a-key-for-tests"


@cache
def why_not() -> str:
    """What the model lacks on this machine; empty where it must run."""
    seen = inspect()
    lacking = {
        "its engine (make local)": not seen.engine,
        "its weights (make local)": not seen.weights,
        f"OpenMP: {seen.openmp_problem}": bool(seen.openmp_problem),
        "a processor with AVX2": seen.avx2 is False,
    }
    return ", ".join(what for what, is_lacking in lacking.items() if is_lacking)


needs_model = pytest.mark.skipif(bool(why_not()), reason=f"the embedded model lacks {why_not()}")


@dataclass(frozen=True)
class Served:
    """A model that is listening."""

    url: str
    key: str = KEY

    def ask(self, path: str, body: Any = None) -> Answer:
        """POST a body, or GET where there is none."""
        method = "GET" if body is None else "POST"
        return call(method, self.url + path, body, token=self.key, headers={"content-type": "application/json"})

    def count(self, spoken: str, body: Any) -> int:
        """The tokens of a request of this dialect."""
        return read_token_count(spoken, self.ask(f"/v1{counting_of(spoken).path}", body).json())


@contextmanager
def serving(context_window: int = 2048) -> Iterator[Served]:
    """The real child, started directly and ended by closing its input."""
    with subprocess.Popen(
        CHILD, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=child_environment(os.environ)
    ) as process:
        process.stdin.write(msgspec.json.encode(ChildOrders(key=KEY, threads=0, context_window=context_window)) + b"\n")
        process.stdin.flush()
        said = json.loads(process.stdout.readline())
        assert said["type"] == "started", said
        yield Served(said["address"])
        process.stdin.close()
        assert process.wait(60) == 0
