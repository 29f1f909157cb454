import asyncio
from pathlib import Path

import pytest

from sightline.build.configured import configuration
from sightline.build.evaluating import open_evaluation
from sightline.evals.options import Options
from sightline.evals.target import CommandSpec, TargetSpec
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
                standing = await evals.run(suite, targets, Options(), lambda _: None, run="e_1")
            assert [result.status for result in standing.results if result.target != "shell"].count("ok") == 4
            assert {each.observation.text for each in standing.results if each.target == "shell"} == {"key: none"}
            assert any(seen.json().get("tools") for seen in upstream.seen)
            async with open_evaluation(loaded, data, root) as evals:
                again = await evals.run(suite, targets[:1], Options(), lambda _: None)
                assert all(result.cached for result in again.results)
                assert verdicts(again) == {"france": "pass", "italy": "pass", "spain": "fail"}
                assert (await evals.shown("e_1")).state == "ended"

    asyncio.run(story())
