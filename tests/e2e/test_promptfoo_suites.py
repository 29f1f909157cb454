"""promptfoo's files, run and imported as they are: providers, prompts in files, lists of values, defaults."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.cli.program import main
from tests.cli.evals.eval_folder import eval_folder, run_reported
from tests.upstream import Upstream

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    with eval_folder(tmp_path, monkeypatch) as upstream:
        monkeypatch.setenv("RELAY_KEY", "sk-relay-0123456789")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-openai-0123456789")
        yield upstream


def run(capsys: Captured, *words: str) -> tuple[int, dict[str, object], str]:
    return run_reported(capsys, "promptfooconfig.yaml", *words)


CONFIG = """
description: Capitals
tags: {{team: blue}}
providers:
  - id: openai:chat:gpt-4o-mini
    label: small
    config: {{apiBaseUrl: {url}/v1, apiKeyEnvar: RELAY_KEY, temperature: 0.2, max_tokens: 64, top_p: 0.9, seed: 7}}
  - openai:chat:gpt-4o:
      config: {{apiBaseUrl: {url}/v1, max_completion_tokens: 32}}
prompts:
  - file://prompts/*.txt
  - file://prompts/chat.json
  - file://prompts/note.md
defaultTest:
  vars: {{tone: brief}}
  options: {{suffix: " Please."}}
  assert: [{{type: not-contains, value: sorry}}]
tests:
  - description: capitals
    vars: {{country: [France, Italy], tone: [kind, short]}}
    assert: [{{type: contains-any, value: [Paris, Rome]}}]
"""


def test_a_whole_file_is_run_as_promptfoo_means_it(upstream: Upstream, capsys: Captured) -> None:
    folder = Path("prompts")
    folder.mkdir()
    (folder / "a.txt").write_text("Be {{ tone }}. {{ country }}?\n---\nCapital of {{country}}?\n")
    (folder / "chat.json").write_text(
        '[{"role": "system", "content": "Be {{tone}}."}, {"role": "user", "content": "{{country}}?"}]'
    )
    (folder / "note.md").write_text("# {{ country }}\n\n---\n\nWhich capital?\n")
    config = CONFIG.format(url=upstream.url).replace('  options: {suffix: " Please."}\n', "")
    Path("promptfooconfig.yaml").write_text(config)
    code, report, err = run(capsys)
    assert code == 0, report["failed"]
    assert (report["cases"], report["of"]) == (16, 32)  # 4 prompts, 2 countries, 2 tones, 2 providers
    bodies = [(seen.json(), dict(seen.headers)) for seen in upstream.seen]
    small = [body for body, _ in bodies if body["model"] == "gpt-4o-mini"]
    assert len(small) == 12  # the rest asks the same again, and is answered from the record
    assert {(body["temperature"], body["top_p"], body["seed"]) for body in small} == {(0.2, 0.9, 7)}
    assert {body.get("max_tokens", body.get("max_completion_tokens")) for body in small} == {64}
    said = [[(each["role"], each["content"]) for each in body["messages"]] for body in small]
    assert [("user", "Be kind. France?")] in said
    assert [("user", "Capital of Italy?")] in said
    assert [("system", "Be short."), ("user", "France?")] in said
    assert [("user", "# Italy\n\n---\n\nWhich capital?\n")] in said  # rules belong to Markdown, and separate nothing
    keys = {body["model"]: headers.get("authorization") for body, headers in bodies}
    assert keys["gpt-4o-mini"] == "Bearer sk-relay-0123456789"
    assert keys["gpt-4o"] is None  # OpenAI's key is for OpenAI
    assert "no key is sent" in err
    assert [each["target"] for each in report["targets"]] == ["small", "openai:chat:gpt-4o"]


def test_an_import_carries_it_all_and_says_what_belongs_in_the_configuration(
    upstream: Upstream, capsys: Captured
) -> None:
    Path("p.txt").write_text("Capital of {{ country }}?")
    Path("promptfooconfig.yaml").write_text(
        "providers:\n  - openai:gpt-4o-mini\n  - {id: 'anthropic:messages:claude-sonnet-4-5', label: claude,"
        f" config: {{temperature: 0.5}}}}\n  - {{id: 'openai:chat:x', config: {{apiBaseUrl: '{upstream.url}/v1',"
        " apiKeyEnvar: RELAY_KEY}}\nprompts: file://p.txt\n"
        "tests: [{vars: {country: [France, Italy]}, assert: [{type: regex, value: Paris|Rome}]}]\n"
    )
    assert main(["eval", "import", "promptfooconfig.yaml"]) == 0
    out, err = capsys.readouterr()
    assert "openai/gpt-4o-mini" in out
    assert "Capital of {{ country }}?" in out
    tables = tomllib.loads("\n".join(line for line in err.splitlines() if not line.startswith("note:")))
    assert tables["evals"]["targets"]["claude"] == {"model": "anthropic/claude-sonnet-4-5", "temperature": 0.5}
    own = tables["evals"]["targets"]["openai:chat:x"]["model"].partition("/")[0]
    assert tables["providers"][own]["base_url"] == f"{upstream.url}/v1"
    assert tables["providers"][own]["key_env"] == "RELAY_KEY"
    Path("s.eval.yaml").write_text(out)
    with Path("sightline.toml").open("a") as file:
        file.write("\n".join(line for line in err.splitlines() if not line.startswith("note:")))
    assert main(["eval", "run", "s.eval.yaml", "--target", "openai:chat:x", "--json"]) == 0
    assert len(upstream.seen) == 2


def test_a_run_is_resumed_with_the_targets_that_its_suite_describes(upstream: Upstream, capsys: Captured) -> None:
    Path("promptfooconfig.yaml").write_text(
        "providers:\n  - id: openai:chat:x\n    label: mine\n"
        f"    config: {{apiBaseUrl: '{upstream.url}/v1', temperature: 0}}\n"
        "prompts: [Spain?]\ntests: [{assert: [{type: contains, value: Madrid}]}]\n"
    )
    code, report, _ = run(capsys)
    assert code == 1
    assert main(["eval", "run", "--rerun-failed", str(report["run"]), "--json"]) == 1
    first, second = (seen.json() for seen in upstream.seen)
    assert (first["model"], first["temperature"]) == ("x", 0)
    assert second == first
