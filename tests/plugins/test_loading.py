"""What is loaded, and what becomes of a plug-in that fails."""

import logging
import sys
from pathlib import Path

import pytest

from sightline.app.configuration import configuration, load_with_problems
from sightline.cli.program import main
from sightline.errors import Fault
from sightline.plugins.loading import load_plugins
from tests.background import upstream_in_background
from tests.gateway_server import served
from tests.http_call import call
from tests.plugins.test_signed_requests import REPLY, post
from tests.relay_stage import REQUESTS
from tests.upstream import says

HEAD = "from sightline.plugins import Plugin\n"


def write(folder: Path, name: str, text: str) -> None:
    (folder / "plugins").mkdir(exist_ok=True)
    (folder / "plugins" / name).write_text(text)


def config(folder: Path, text: str) -> str:
    file = folder / "sightline.toml"
    file.write_text(text)
    return str(file)


def test_nothing_is_loaded_that_is_not_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "bad.py", "raise SystemExit('loaded')")
    file = config(tmp_path, "")
    assert configuration(file).plugins is None
    assert main(["plugin", "list", "--config", file]) == 0
    assert "nothing is loaded" in capsys.readouterr().err


def test_the_list_says_what_is_loaded_and_from_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "good.py", f"{HEAD}def double(n: int) -> int:\n    'Twice n.'\n    return 2 * n\n"
          "PLUGIN = Plugin(name='good', tools=(double,))")  # fmt: skip
    write(tmp_path, "broken.py", "import no_such_module")
    file = config(tmp_path, '[plugins]\nuse = ["good.py", "broken.py", "absent.py", "no-such-package"]')
    assert main(["plugin", "list", "--config", file]) == 1
    out = capsys.readouterr().out
    assert f"good.py  {tmp_path / 'plugins' / 'good.py'}\n  tool double\n" in out
    assert "NOT LOADED: ModuleNotFoundError: No module named 'no_such_module'" in out
    assert f"NOT LOADED: FileNotFoundError: there is no file {tmp_path / 'plugins' / 'absent.py'}" in out
    assert "no installed package has an entry point 'no-such-package' of sightline.plugins" in out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it has no `PLUGIN = Plugin(name=…)`"),
        (f"{HEAD}PLUGIN = Plugin(name='none')", "the plug-in 'none' adds nothing"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_file_that_is_no_plug_in_is_named_and_left_out(tmp_path: Path, text: str, words: str) -> None:
    write(tmp_path, "odd.py", text)
    plugins = load_plugins(["odd.py"], tmp_path)
    assert words in plugins.loaded[0].failures[""]
    assert list(plugins.working()) == []


def test_a_file_is_looked_for_in_plugins_alone(tmp_path: Path) -> None:
    assert "named without its folder" in load_plugins(["../x.py"], tmp_path).loaded[0].failures[""]
    assert load_with_problems(config(tmp_path, '[plugins]\nuse = ["../x.py"]')).problems


def install_package(folder: Path, entry: str, module: str) -> None:
    """A package as an installer leaves it behind: a module, and its entry point in the group `sightline.plugins`."""
    (folder / "acme_tools.py").write_text(module)
    facts = folder / "acme_tools-1.2.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-tools\nVersion: 1.2\n")
    (facts / "entry_points.txt").write_text(f"[sightline.plugins]\n{entry}\n")


PACKAGE = f"{HEAD}def answer() -> int:\n    'The answer.'\n    return 42\nPLUGIN = Plugin(name='acme', tools=(answer,))"


@pytest.mark.parametrize("target", ["acme_tools:PLUGIN", "acme_tools"])
def test_an_installed_package_is_loaded_if_it_is_named(
    tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "acme_tools", None)
    monkeypatch.delitem(sys.modules, "acme_tools")
    monkeypatch.syspath_prepend(tmp_path)
    install_package(tmp_path, f"mine = {target}", PACKAGE)
    assert main(["plugin", "list", "--config", config(tmp_path, "")]) == 0
    assert "acme_tools" not in sys.modules  # what is installed is not loaded for that
    assert main(["plugin", "list", "--config", config(tmp_path, '[plugins]\nuse = ["mine"]')]) == 0
    assert capsys.readouterr().out == "mine  package acme-tools 1.2\n  tool answer\n"
    assert main(["plugin", "test", "mine"]) == 0


# --- isolation --------------------------------------------------------------------------------------

BAD_HOOK = f"""{HEAD}
seen = []
def hook(event):
    seen.append(event.kind)
    raise RuntimeError("no disk")
def other(event):
    with open("{{log}}", "a") as file:
        file.write(event.kind + "\\n")
PLUGIN = Plugin(name="hooks", hooks=(hook, other))
"""


def test_a_hook_that_fails_is_switched_off_and_the_others_hear_everything(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = tmp_path / "events.txt"
    write(tmp_path, "hooks.py", BAD_HOOK.replace("{log}", str(log)))
    with upstream_in_background() as upstream:
        upstream.script = [says(REPLY)]
        text = f'[plugins]\nuse = ["hooks.py"]\n[providers.acme]\nbase_url = "{upstream.url}/v1"\n'
        with caplog.at_level(logging.WARNING), served(tmp_path, text) as server:
            for _ in range(2):
                assert b"Hello" in post(server, "/p/acme/v1/chat/completions", REQUESTS["openai-chat"])
    assert log.read_text().split() == ["received", "attempt", "finished"] * 2
    failures = [each.getMessage() for each in caplog.records if "plug-in" in each.getMessage()]
    assert failures == ["the plug-in 'hooks.py' (hook hook) failed: RuntimeError: no disk (hooks.py, line 6)"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise RuntimeError('no clock')", "failed: RuntimeError: no clock"),
        ("return 7", "sign returned int, not an HttpRequest"),
        ("return request.with_body(b'{}')", "has changed the body"),
    ],
)
def test_a_signer_that_fails_fails_its_request_alone_and_nothing_is_sent_unsigned(
    tmp_path: Path, body: str, words: str
) -> None:
    text = (
        f"{HEAD}class S:\n    def __init__(self, context): pass\n    async def sign(self, request):\n        {body}\n"
    )
    write(tmp_path, "signer.py", f"{text}PLUGIN = Plugin(name='s', signers={{'s': S}})")
    with upstream_in_background() as upstream:
        upstream.script = [says(REPLY)]
        tables = f"""
            [plugins]
            use = ["signer.py"]
            [providers.signed]
            base_url = "{upstream.url}/v1"
            sign = "s"
            [providers.open]
            base_url = "{upstream.url}/v1"
            """
        with served(tmp_path, tables) as server:
            refused = call("POST", f"{server.url}/p/signed/v1/chat/completions", REQUESTS["openai-chat"])
            assert refused.status >= 400
            assert words in refused.json()["error"]["message"]
            assert b"Hello" in post(server, "/p/open/v1/chat/completions", REQUESTS["openai-chat"])
    assert len(upstream.seen) == 1


@pytest.mark.parametrize(
    ("catalogue", "words"),
    [
        ("[providers.openai]\nbase_url = 'http://127.0.0.1:1'", "it changes the built-in provider 'openai' (law 10)"),
        ("[providers.x]\nbase_url = 'http://127.0.0.1:1'\nkey_env = 'OPENAI_API_KEY'", "would get the key of 'openai'"),
        ("[server]\nhost = '0.0.0.0'", "it sets server"),
        ("[providers.x]\nbase = 1", "base"),
    ],
)
def test_a_catalogue_that_takes_a_key_elsewhere_is_left_out(tmp_path: Path, catalogue: str, words: str) -> None:
    write(tmp_path, "cat.py", f"{HEAD}PLUGIN = Plugin(name='c', catalogue={catalogue!r})")
    loaded = configuration(config(tmp_path, '[plugins]\nuse = ["cat.py"]'))
    assert loaded.plugins is not None
    assert words in loaded.plugins.loaded[0].failures["catalogue models"]
    assert loaded.catalog.providers["openai"].base_url == "https://api.openai.com/v1"
    assert "x" not in loaded.catalog.providers


def test_the_tools_of_a_plug_in_that_is_not_loaded_are_asked_for_in_vain(tmp_path: Path) -> None:
    file = config(tmp_path, '[tools.mine]\nplugin = "mine"\nallow = ["*"]')
    assert main(["ask", "-m", "local", "--tools", "mine", "--config", file, "--data", str(tmp_path), "hi"]) == 2


def test_what_a_plug_in_raises_on_purpose_passes(tmp_path: Path) -> None:
    text = f"""{HEAD}
from sightline.errors import Code, Fault
def write(archive): raise Fault(Code.USAGE, "too many", hint="Filter.")
PLUGIN = Plugin(name="x", exporters={{"x": write}})
"""
    write(tmp_path, "x.py", text)
    with pytest.raises(Fault, match="too many"):
        load_plugins(["x.py"], tmp_path).exporters()["x"]({})
