"""Who is compared: how each gateway is had, configured and started, as its own documentation says for production."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from bench.peers import workshop
from bench.peers.page import open_page
from bench.peers.scenarios import KEY
from sightline.exchange.interception.core.rules import Interception, Rules
from sightline.exchange.interception.store import KeptInterception

MODELS = ("bench-whole", "bench-burst", "bench-paced")
LITELLM = "litellm[proxy]==1.106.2"
# The last release that is known to carry the gateway itself.
TENSORZERO = "tensorzero==2026.6.0"
MITMPROXY = "mitmproxy==11.0.2"
PORTKEY = {"@portkey-ai/gateway": "1.15.2"}
# With much later ones it cannot stream (its issue 1389).
PORTKEY_NEEDS = {"@hono/node-server": "1.13.8"}


@dataclass(frozen=True)
class Launch:
    """How to start a subject. Where it chooses its port itself, its address appears in `address_file`."""

    command: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    address_file: Path | None = None


@dataclass(frozen=True)
class Subject:
    """One way from the client to the upstream. `launch` gets a folder, a port to listen at and the upstream's port."""

    name: str
    about: str
    get_version: Callable[[], str]
    launch: Callable[[Path, int, int], Launch] | None
    path: str = "/v1/chat/completions"
    model_prefix: str = ""
    headers: Callable[[int], dict[str, str]] = lambda _upstream: {}
    beside: Callable[[Path, int], AbstractContextManager[None]] = lambda _folder, _port: nullcontext()
    """What goes on beside the load: it gets the folder, and the port at which the subject listens."""
    skips: tuple[str, ...] = ()
    """Loads that it is not for, by the beginnings of their names."""


# --- nginx ------------------------------------------------------------------------------------------------------

NGINX = """\
{user}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log error;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  tcp_nodelay on;
  keepalive_requests 100000000;
  client_body_buffer_size 256k;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  upstream bench {{
    server 127.0.0.1:{upstream};
    keepalive 512;
    keepalive_requests 100000000;
  }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      proxy_pass http://bench;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }}
  }}
}}
"""


def _launch_nginx(folder: Path, port: int, upstream: int) -> Launch:
    config = folder / "nginx.conf"
    user = "user root;" if os.geteuid() == 0 else ""
    config.write_text(NGINX.format(user=user, folder=folder, port=port, upstream=upstream))
    return Launch([str(workshop.nginx()), "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(config)])


def _nginx_version() -> str:
    done = subprocess.run([str(workshop.nginx()), "-v"], capture_output=True, text=True, check=True)
    return done.stderr.strip().rpartition("/")[2]


# --- Sightline --------------------------------------------------------------------------------------------------

SIGHTLINE = """\
[providers.bench]
dialect = "{dialect}"
base_url = "http://127.0.0.1:{upstream}{version}"

[[routes]]
model = "bench-*"
provider = "bench"
"""


def _launch_sightline(
    folder: Path, port: int, upstream: int, dialect: str = "openai-chat", version: str = "/v1"
) -> Launch:
    config = folder / "sightline.toml"
    config.write_text(SIGHTLINE.format(upstream=upstream, dialect=dialect, version=version))
    program = str(Path(sys.executable).with_name("sightline"))
    return Launch(
        [program, "serve", "--no-open", "--port", str(port), "--config", str(config), "--data", str(folder / "data")]
    )


def _launch_workers(folder: Path, port: int, upstream: int) -> Launch:
    launch = _launch_sightline(folder, port, upstream)
    return Launch([*launch.command, "--workers", "2"])


def _launch_translating(folder: Path, port: int, upstream: int) -> Launch:
    return _launch_sightline(folder, port, upstream, "anthropic", "")


def _launch_with_a_rule(folder: Path, port: int, upstream: int) -> Launch:
    """With a rule that holds what never comes, so that each request is looked at for it."""
    rules = Rules.of([{"filter": "model:another", "action": "hold"}])
    KeptInterception(folder / "data").write(Interception(mode="rules", rules=rules), ())
    return _launch_sightline(folder, port, upstream)


def _sightline_version() -> str:
    return f"{version('sightline')}, Python {sys.version.split()[0]}"


# --- LiteLLM ----------------------------------------------------------------------------------------------------


def _launch_litellm(folder: Path, port: int, upstream: int) -> Launch:
    models = [
        {
            "model_name": name,
            "litellm_params": {
                "model": f"openai/{name}",
                "api_base": f"http://127.0.0.1:{upstream}/v1",
                "api_key": "sk-bench",
            },
        }
        for name in MODELS
    ]
    config = folder / "config.yaml"
    # JSON is YAML.
    config.write_text(json.dumps({"model_list": models, "litellm_settings": {"set_verbose": False}}))
    program = str(workshop.environment("litellm", LITELLM) / "litellm")
    options = ["--host", "127.0.0.1", "--port", str(port), "--num_workers", "1", "--telemetry", "False"]
    settings = {
        "LITELLM_LOG": "ERROR",
        "LITELLM_MODE": "PRODUCTION",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        # It does not start without one.
        "LITELLM_MASTER_KEY": KEY,
    }
    return Launch([program, "--config", str(config), *options], settings)


# --- TensorZero -------------------------------------------------------------------------------------------------

TENSORZERO_MODEL = """
[models.{name}]
routing = ["bench"]
[models.{name}.providers.bench]
type = "openai"
api_base = "http://127.0.0.1:{upstream}/v1"
model_name = "{name}"
api_key_location = "none"
"""


def _launch_tensorzero(folder: Path, port: int, upstream: int) -> Launch:
    config, address = folder / "tensorzero.toml", folder / "address"
    models = "".join(TENSORZERO_MODEL.format(name=name, upstream=upstream) for name in MODELS)
    config.write_text("[gateway]\nobservability.enabled = false\n" + models)
    python = workshop.environment("tensorzero", TENSORZERO) / "python"
    starter = Path(__file__).with_name("tensorzero_gateway.py")
    return Launch([str(python), str(starter), str(config), str(address)], {"RUST_LOG": "error"}, address)


# --- others -----------------------------------------------------------------------------------------------------


def _launch_mitmproxy(folder: Path, port: int, upstream: int) -> Launch:
    program = str(workshop.environment("mitmproxy", MITMPROXY) / "mitmdump")
    options = ["-q", "--listen-host", "127.0.0.1", "-p", str(port), "--set", "stream_large_bodies=1"]
    mode = ["--mode", f"reverse:http://127.0.0.1:{upstream}", "--set", f"confdir={folder}"]
    return Launch([program, *options, *mode])


def _launch_portkey(folder: Path, port: int, upstream: int) -> Launch:
    script = workshop.node_program("node_modules/@portkey-ai/gateway/build/start-server.js", PORTKEY, PORTKEY_NEEDS)
    return Launch(["node", str(script), f"--port={port}", "--headless"], {"NODE_ENV": "production"})


def _portkey_headers(upstream: int) -> dict[str, str]:
    return {"x-portkey-provider": "openai", "x-portkey-custom-host": f"http://127.0.0.1:{upstream}/v1"}


def _pinned(package: str) -> Callable[[], str]:
    return lambda: package.rpartition("==")[2]


DIRECT = Subject("direct", "no proxy", lambda: "", None)
SIGHTLINE_SUBJECT = Subject("sightline", "full recording, SQLite", _sightline_version, _launch_sightline)
SUBJECTS = {
    subject.name: subject
    for subject in (
        DIRECT,
        Subject("nginx", "plain proxy, kept connections, no buffering", _nginx_version, _launch_nginx),
        SIGHTLINE_SUBJECT,
        Subject("sightline-2", "2 workers, on the same core", _sightline_version, _launch_workers),
        Subject("page", "sightline while its page is open", _sightline_version, _launch_sightline, beside=open_page),
        Subject("rule", "sightline with a rule that matches nothing", _sightline_version, _launch_with_a_rule),
        Subject(
            "translating",
            "sightline, to an upstream that speaks Anthropic's API",
            _sightline_version,
            _launch_translating,
            skips=("paced", "varied paced"),
        ),
        Subject(
            "tensorzero",
            "embedded Rust gateway, records nothing",
            _pinned(TENSORZERO),
            _launch_tensorzero,
            path="/openai/v1/chat/completions",
            model_prefix="tensorzero::model_name::",
        ),
        Subject("litellm", "proxy, 1 worker, master key, no database", _pinned(LITELLM), _launch_litellm),
        Subject("mitmproxy", "reverse mode, records nothing", _pinned(MITMPROXY), _launch_mitmproxy),
        Subject(
            "portkey",
            "Node, records nothing",
            "".join(PORTKEY.values()).strip,
            _launch_portkey,
            headers=_portkey_headers,
        ),
    )
}
