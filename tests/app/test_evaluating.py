import asyncio
from pathlib import Path

import pytest

from sightline.app.configuration import configuration
from sightline.app.engine import nowhere
from sightline.app.eval_host import introduction
from sightline.app.evals import elsewhere, open_evaluation
from sightline.errors import Fault
from sightline.evals.core.options import RunOptions
from sightline.evals.core.target import CommandSpec, TargetSpec
from sightline.evals.service.cluster.remote import Needs
from tests.cluster_stage import FakeWorker, NearFleet, opens
from tests.eval_stage import CAPITALS, KNOWN, knows, suite_of, verdicts
from tests.upstream import Upstream

TOOLS = '''
def capital(country: str) -> str:
    """Look it up."""
    return "Paris"
'''


def test_what_is_configured_is_what_evals_run_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_KEY", "sk-test-1234567890")
    root = tmp_path / "root"
    root.mkdir()
    (root / "tools.py").write_text(TOOLS)

    async def story() -> None:
        async with Upstream() as upstream:
            upstream.script = [knows(upstream, KNOWN)]
            (root / "sightline.toml").write_text(
                f'[providers.acme]\ndialect = "openai-chat"\nbase_url = "{upstream.url}"\nkey_env = "ACME_KEY"\n'
                '[tools.look]\npython = "tools.py"\nallow = ["*"]\n[ask]\nmodel = "acme/m"\n'
            )
            targets = [
                TargetSpec(name="usual"),
                TargetSpec(name="agent", model="acme/m", toolsets=("look",)),
                TargetSpec(name="shell", cli=CommandSpec(command="echo key: ${ACME_KEY:-none}")),
            ]
            data = str(tmp_path / "data")
            loaded = configuration(str(root / "sightline.toml"))
            async with open_evaluation(loaded, data, root) as evals:
                suite = suite_of(CAPITALS, root)
                standing = await evals.run(suite, targets, RunOptions(), lambda _: None, run="e_1")
            assert [result.status for result in standing.results if result.target != "shell"].count("ok") == 4
            assert {each.observation.text for each in standing.results if each.target == "shell"} == {"key: none"}
            assert any(seen.json().get("tools") for seen in upstream.seen)
            async with open_evaluation(loaded, data, root) as evals:
                again = await evals.run(suite, targets[:1], RunOptions(), lambda _: None)
                assert all(result.cached for result in again.results)
                assert verdicts(again) == {"france": "pass", "italy": "pass", "spain": "fail"}
                assert (await evals.show("e_1")).state == "ended"

    asyncio.run(story())


def test_a_cluster_is_told_what_the_configuration_needs_there(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for path in ("tools/look.py", "mcp.json", "work/a.txt", "hooks.json", "alone.py"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text('{"headers": {"a": "${TOKEN}", "b": "${env:OTHER:-x} ${TOKEN}"}}')
    (root / "conf").mkdir()
    (root / "conf/sightline.toml").write_text(
        '[tools.look]\npython = "../tools/look.py"\nhooks = "../hooks.json"\n[tools.servers]\nmcp = "../mcp.json"\n'
        '[tools.files]\nfolder = "../work"\n[tools.away]\npython = "/elsewhere/t.py"\n'
        '[tools.alone]\npython = "../alone.py"\n'
    )
    fleet = NearFleet(lambda _root: opens(FakeWorker()), tmp_path)
    there = elsewhere(configuration(str(root / "conf/sightline.toml")), fleet, nowhere, root)
    assert there.config == "conf/sightline.toml"
    assert there.ours == introduction()
    assert there.toolsets == {
        "look": Needs(("tools/look.py", "hooks.json", "tools")),
        "servers": Needs(("mcp.json",), ("TOKEN", "OTHER")),
        "files": Needs(("work",)),
        "away": Needs(),
        "alone": Needs(("alone.py",)),
    }
    (tmp_path / "sightline.toml").write_text("")
    assert elsewhere(configuration(str(tmp_path / "sightline.toml")), fleet, nowhere, root).config == "sightline.toml"


def test_an_address_that_is_none_is_told_before_anything_is_opened(tmp_path: Path) -> None:
    (tmp_path / "sightline.toml").write_text("")

    async def story() -> None:
        loaded = configuration(str(tmp_path / "sightline.toml"))
        with pytest.raises(Fault, match="is not the address of a cluster"):
            async with open_evaluation(loaded, str(tmp_path / "data"), tmp_path, cluster="ray:nowhere"):
                pass

    asyncio.run(story())
    assert not (tmp_path / "data").exists()
