"""Keeps TensorZero's embedded gateway open: `python tensorzero_gateway.py CONFIG FILE` writes its address into FILE.

The Rust gateway comes with the Python package, which starts it on a port of its own choice. This runs in the
environment of that package and imports nothing of ours.
"""

import signal
import sys
from importlib import import_module
from pathlib import Path


def main() -> None:
    config, told = sys.argv[1:]
    start = import_module("tensorzero")._start_http_gateway
    gateway = start(config_file=config, clickhouse_url=None, postgres_url=None, valkey_url=None, async_setup=False)
    Path(told).write_text(gateway.base_url)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    gateway.close()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    main()
