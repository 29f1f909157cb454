from dataclasses import dataclass
from pathlib import Path

import pytest

from sightline.app.configuration import Configuration, configuration
from sightline.app.evals import random_draws, root_of, targets_for
from sightline.errors import Code, Fault
from sightline.evals.core.suite import Suite
from sightline.evals.core.target import CommandSpec
from sightline.evals.service.suite_files import SuiteFiles, require_suite, suite_in
from sightline.evals.service.suite_targets import KnownTargets, target_from_settings
from sightline.settings import EvalCommand, EvalTarget

CONFIG = """
[providers.acme]
base_url = "http://127.0.0.1:1/v1"
key_env = "ACME_KEY"
[evals]
judge = "strict"
[evals.targets.fixed]
mock = "Yes."
[evals.targets.strict]
model = "acme/judge"
temperature = 0
"""
TARGETS = """
targets:
  - {name: default, use_target: recorded}
  - {name: recorded, provider: openai, base_url: "${{ URL }}", api_key: "${{ MY_KEY }}", model: m, grader_target: fixed}
  - {name: agent, provider: cli, command: "run {PROMPT}", cwd: tools, verbose: true}
  - {name: outside, provider: cli, command: "run {PROMPT}", cwd: ../../..}
  - {name: broken, provider: cli}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Repository":
    monkeypatch.setenv("ACME_KEY", "sk-acme-123456789")
    monkeypatch.delenv("MY_KEY", raising=False)
    monkeypatch.setenv("HARMLESS", "yes")
    file = tmp_path / "sightline.toml"
    file.write_text(CONFIG)
    (tmp_path / ".git").mkdir()
    (tmp_path / "evals" / ".agentv").mkdir(parents=True)
    (tmp_path / "evals" / ".agentv" / "targets.yaml").write_text(TARGETS)
    (tmp_path / "evals" / ".env").write_text("MY_KEY=sk-mine-123456789\nURL=http://127.0.0.1:2/v1\nOTHER=not kept\n")
    return Repository(tmp_path, configuration(str(file)))


@dataclass
class Repository:
    """A repository with a configuration, and AgentV's targets beside its suite."""

    root: Path
    loaded: Configuration

    def write_targets(self, text: str) -> None:
        (self.root / "evals" / ".agentv" / "targets.yaml").write_text(text)

    def known(self) -> KnownTargets:
        return targets_for(self.loaded, SuiteFiles(self.root), "evals/s.yaml")

    def suite(self, text: str) -> Suite:
        (self.root / "evals" / "s.yaml").write_text(text)
        return require_suite(suite_in(SuiteFiles(self.root), "evals/s.yaml", {}), "evals/s.yaml")


def test_a_suite_may_read_in_its_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository, alone = tmp_path / "repository", tmp_path / "alone"
    for folder in (repository / ".git", repository / "evals", alone / "deep"):
        folder.mkdir(parents=True)
    assert root_of(repository / "evals" / "s.yaml") == repository
    monkeypatch.chdir(alone)
    assert root_of(Path("deep/s.yaml")) == alone
    monkeypatch.chdir(repository)
    assert root_of(alone / "deep" / "s.yaml") == alone / "deep"


def test_agentv_target_uses_its_own_provider_and_adjacent_key(here: Repository) -> None:
    targets = here.known()
    answering = targets.answering(here.suite("tests: [{id: a, criteria: x, input: hi}]"), ())
    (spec,) = answering.targets
    assert (spec.name, spec.model, answering.usual) == ("default", "default/m", ("default",))
    provider = answering.catalog.providers["default"]
    assert (provider.base_url, provider.key_env) == ("http://127.0.0.1:2/v1", "MY_KEY")
    assert answering.environment["MY_KEY"] == "sk-mine-123456789"
    assert "OTHER" not in answering.environment
    assert [each.name for each in answering.judges] == ["fixed"]
    assert "default" not in here.loaded.catalog.providers


def test_a_suite_may_name_the_environment_but_no_keys(here: Repository) -> None:
    targets = here.known()
    targets.spec("recorded")
    assert targets.suite_environment["HARMLESS"] == "yes"
    assert not {"ACME_KEY", "MY_KEY"} & set(targets.suite_environment)


def test_explicit_targets_override_the_targets_of_the_suite(here: Repository) -> None:
    text = """
execution: {target: recorded}
tests:
  - {id: a, criteria: x, input: hi, execution: {target: fixed}}
  - {id: b, criteria: x, input: hi}
"""
    targets = here.known()
    own = targets.answering(here.suite(text), ())
    assert ([each.name for each in own.targets], own.usual) == (["recorded", "fixed"], ("recorded",))
    named = targets.answering(here.suite(text), ["acme/large", "fixed", "fixed"])
    assert [(each.name, each.model) for each in named.targets] == [("acme/large", "acme/large"), ("fixed", "")]


def test_all_referenced_judges_are_included(here: Repository) -> None:
    text = """
tests:
  - id: a
    criteria: x
    input: hi
    assertions:
      - {type: llm-grader, target: acme/one}
      - type: composite
        assertions: [{type: llm-grader, target: strict}]
        aggregator: {type: weighted_average}
      - {type: tool-trajectory, mode: in_order, expected: [{tool: t, args: {target: not one}}]}
  - id: b
    mode: conversation
    criteria: x
    turns: [{input: hi, assertions: [{type: llm-grader, target: fixed}]}]
"""
    answering = here.known().answering(here.suite(text), ["fixed"], "acme/two")
    assert [each.name for each in answering.judges] == ["acme/two", "acme/one", "strict"]


def test_a_command_of_agentvs_runs_beside_the_suite(here: Repository) -> None:
    targets = here.known()
    spec = targets.spec("agent")
    assert spec.cli == CommandSpec(command="run {PROMPT}", cwd="evals/tools")
    answering = targets.answering(here.suite("tests: [{id: a, criteria: x, input: hi}]"), ["agent"])
    assert [each.message for each in answering.odd] == ["verbose of a target is not used"]
    with pytest.raises(Fault, match="outside of it"):
        targets.spec("outside")


def test_unknown_target_is_reported_with_suggestions(here: Repository) -> None:
    targets = here.known()
    with pytest.raises(Fault) as caught:
        targets.spec("fixd")
    assert caught.value.code is Code.USAGE
    assert 'Did you mean "fixed"?' in caught.value.hint
    with pytest.raises(Fault) as far:
        targets.spec("zzzzzz")
    assert "Targets are: fixed, strict, default" in far.value.hint
    with pytest.raises(Fault, match="a target lacks the key") as broken:
        targets.spec("broken")
    assert broken.value.code is Code.CONFIG


def test_without_targets_the_default_model_is_used(here: Repository) -> None:
    (here.root / "evals" / ".agentv" / "targets.yaml").unlink()
    targets = here.known()
    assert targets.spec("default").model == ""
    assert targets.names == ("fixed", "strict")


def test_a_file_of_targets_that_cannot_be_read_is_a_fault(here: Repository) -> None:
    here.write_targets("targets: {}")
    with pytest.raises(Fault, match=r"targets\.yaml:1:10"):
        here.known()


def test_a_table_of_the_configuration_is_a_target() -> None:
    command = EvalCommand(words=("run", "{PROMPT}"), env=("KEY",))
    spec = target_from_settings("mine", EvalTarget(cli=command, judge="j", concurrency=3))
    assert spec.cli == CommandSpec(command=("run", "{PROMPT}"), env=("KEY",))
    assert (spec.name, spec.judge, spec.concurrency) == ("mine", "j", 3)
    with pytest.raises(Fault, match="names cli and mock"):
        target_from_settings("mine", EvalTarget(cli=command, mock="Yes."))


def test_chance_is_the_same_each_time() -> None:
    assert random_draws()(10, 5) == random_draws()(10, 5)
    assert set(random_draws()(3, 100)) == {0, 1, 2}


MANY = """
targets:
  - {name: default, provider: mock, grader_target: elsewhere}
  - {name: other, provider: mock}
  - {name: unset, provider: openai, model: "${{ NOT_SET }}"}
"""


@pytest.mark.parametrize(
    ("graders", "is_judged"),
    [
        ("[{type: contains, value: x}]", False),
        ("[{type: composite, assertions: [{type: is-json}], aggregator: {type: threshold, threshold: 1}}]", False),
        ("[{type: composite, assertions: [is kind], aggregator: {type: threshold, threshold: 1}}]", True),
        ("[{type: composite, assertions: [{type: is-json}], aggregator: {type: llm-grader}}]", True),
        ("[{type: llm_grader}]", True),
        ("[is kind]", True),
        ("[{type: code-grader, command: 'true', target: {}}]", True),
    ],
)
def test_judge_is_required_only_when_a_grader_uses_one(here: Repository, graders: str, *, is_judged: bool) -> None:
    here.write_targets(MANY)
    asked = here.suite(f"tests: [{{id: a, input: x, assertions: {graders}}}]\n")
    if is_judged:
        with pytest.raises(Fault, match="'elsewhere' is neither a target nor a model"):
            here.known().answering(asked, ())
    else:
        assert here.known().answering(asked, ()).judges == ()


def test_a_turn_that_only_says_what_it_expects_is_judged(here: Repository) -> None:
    here.write_targets(MANY)
    asked = here.suite("tests: [{id: a, turns: [{input: x, expected_output: y}]}]\n")
    with pytest.raises(Fault, match="'elsewhere'"):
        here.known().answering(asked, ())


def test_command_grader_with_target_access_gets_every_available_judge(here: Repository) -> None:
    here.write_targets(MANY)
    asked = here.suite("tests: [{id: a, input: x, assertions: [{type: code-grader, command: c, target: true}]}]\n")
    answering = here.known().answering(asked, ("other",), "strict")
    assert [each.name for each in answering.judges] == ["strict", "fixed", "default"]


def test_a_healthcheck_of_agentvs_runs_in_the_folder_of_the_suite_or_one_seen_from_there(here: Repository) -> None:
    here.write_targets("""
targets:
  - {name: a, provider: cli, command: x, cwd: .., healthcheck: {command: y}}
  - {name: b, provider: cli, command: x, cwd: .., healthcheck: {command: y, cwd: ../tools, timeout_seconds: 3}}
  - {name: c, provider: cli, command: x, cwd: ..}
  - {name: d, provider: cli, command: x, healthcheck: {command: y, cwd: ../..}}
""")
    targets = here.known()
    specs = [targets.spec(name).cli for name in ("a", "b", "c")]
    assert [(spec.cwd, spec.healthcheck_cwd) for spec in specs if spec] == [("", "evals"), ("", "tools"), ("", None)]
    with pytest.raises(Fault, match="'d' runs in"):
        targets.spec("d")
    asked = here.suite("tests: [{id: a, input: x, assertions: [{type: is-json}]}]\n")
    (odd,) = targets.answering(asked, ("b",)).odd
    assert "timeout_seconds of a healthcheck is not used" in odd.message
