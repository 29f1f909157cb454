"""The targets and judges of a suite: from the configuration, AgentV's file or the suite itself, or any model by
name."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from sightline.agent.tools.commands import without_variables
from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import ModelChoice, choose
from sightline.catalog.loading import variables_of
from sightline.catalog.problem import likely
from sightline.catalog.provider import Provider
from sightline.errors import Code, Fault
from sightline.evals.core.reading.agentv_targets import FILE, AgentvTargets, read_targets, resolve_target
from sightline.evals.core.reading.files import folder_of, join_path, read_variables
from sightline.evals.core.reading.sources import LISTS
from sightline.evals.core.suite import Case, Suite, SuiteProblem
from sightline.evals.core.target import CommandSpec, SuiteTarget, TargetSpec
from sightline.evals.service.suite_files import SuiteFiles
from sightline.evals.service.target import check_priced
from sightline.model.json import Json
from sightline.settings import EvalsSettings, EvalTarget
from sightline.transport.embedded.process import KEY_VARIABLE

USUAL = "default"
"""The target that is used if none is named, as in AgentV."""


@dataclass(frozen=True, slots=True)
class SuiteTargets:
    """The targets and judges of one suite. `usual` are the names of the targets for cases that name none. `catalog` has
    the providers of all of them, `environment` their variables. `odd` are remarks about their definitions. `sure` are
    the judges that will certainly be asked; other `judges` may be."""

    catalog: Catalog
    environment: Mapping[str, str]
    targets: tuple[TargetSpec, ...]
    judges: tuple[TargetSpec, ...] = ()
    usual: tuple[str, ...] = ()
    odd: tuple[SuiteProblem, ...] = ()
    sure: tuple[TargetSpec, ...] = ()

    def check_prices(self) -> None:
        """Refuse a judge without known prices before the run starts, because a budget could not count its costs."""
        for spec in self.sure:
            if spec.kind == "model" and spec.model:
                check_priced(_choose(self.catalog, spec.model, self.environment))


class KnownTargets:
    """The targets that a suite can name. `catalog` gains a provider for each target that AgentV's file or the suite
    defines, `environment` the variables of the `.env` files beside it."""

    def __init__(
        self, catalog: Catalog, settings: EvalsSettings, environment: Mapping[str, str], files: SuiteFiles, suite: str
    ) -> None:
        self._settings = settings
        self._suite = suite
        self._agentv = _agentv(files, suite)
        self._described: dict[str, SuiteTarget] = {}
        self._odd: dict[SuiteProblem, None] = {}
        if self._agentv.problems:
            raise self._agentv.problems[0].fault(Code.CONFIG)
        self.catalog = catalog
        self.environment = {**_dotenv_variables(files, self._agentv), **environment}

    @property
    def suite_environment(self) -> dict[str, str]:
        """The variables that a suite may use: the environment without keys."""
        return without_variables(self.environment, {*variables_of(self.catalog), KEY_VARIABLE} - {""})

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self._settings.targets, *self._agentv.nodes, *self._described)))

    def describe(self, suite: Suite) -> None:
        """Add the targets that the suite defines itself."""
        self._described = {each.name: each for each in suite.targets}

    def answering(self, suite: Suite, named: Sequence[str], judge: str = "") -> SuiteTargets:
        """The targets and judges of a suite: the targets `named`, or those that the suite names, or the default one."""
        self.describe(suite)
        usual = tuple(dict.fromkeys(named)) or suite.execution.targets or (self._settings.target or USUAL,)
        others = () if named else (name for case in suite.cases for name in case.execution.targets)
        targets = tuple(self.spec(name) for name in dict.fromkeys((*usual, *others)))
        target_names = {spec.name for spec in targets}
        # A judge that no grader needs may be missing: AgentV files often name one that another file defines.
        their = (spec.judge for spec in targets) if any(_is_judged(case) for case in suite.cases) else ()
        configs = [spec.config for case in suite.cases for spec in case.all_graders]
        wanted = (judge, *their, *(name for config in configs for name in _targets_in(config)))
        judges = tuple(self.spec(name) for name in dict.fromkeys(wanted) if name and name not in target_names)
        odd, sure = tuple(self._odd), judges
        if any(map(_asks_models, configs)):
            judges += tuple(self._askable({*target_names, *wanted}))
        return SuiteTargets(self.catalog, self.environment, targets, judges, usual, odd, sure)

    def spec(self, name: str) -> TargetSpec:
        """The target of this name. A name that is not a target is taken for a model's. Raises a fault if there is no
        such model."""
        found = self._find(name)
        if found.file_form is not None:
            return found
        return msgspec.structs.replace(found, file_form=self._settings.file_form)

    def _find(self, name: str) -> TargetSpec:
        configured = self._settings.targets.get(name)
        if configured is not None:
            return target_from_settings(name, configured)
        if name in self._agentv.nodes:
            return self._of_agentv(name)
        if name in self._described:
            return self._of_suite(self._described[name])
        if name == USUAL:
            return TargetSpec(name=name)
        try:
            _choose(self.catalog, name, self.environment)
        except Fault as fault:
            known = ", ".join(self.names)
            meant = likely(name, self.names) or (f"Targets are: {known}." if known else "")
            message = f"{name!r} is neither a target nor a model: {fault.message}"
            raise Fault(Code.USAGE, message, hint=f"{meant} {fault.hint}".strip()) from None
        return TargetSpec(name=name, model=name)

    def _askable(self, names_given: set[str]) -> Iterator[TargetSpec]:
        """All other targets that can be used: a command that may ask models can name any of them."""
        for name in self.names:
            if name not in names_given:
                with suppress(Fault):
                    yield self.spec(name)

    def _of_agentv(self, name: str) -> TargetSpec:
        found = resolve_target(self._agentv, name, self.environment, self.catalog)
        if found.spec is None:
            raise next(each for each in found.problems if each.severity == "error").fault(Code.CONFIG)
        self._odd |= dict.fromkeys(found.problems)
        if found.provider is not None:
            self._add(found.spec.model.partition("/")[0], found.provider)
        return _with_folders(found.spec, self._suite)

    def _of_suite(self, target: SuiteTarget) -> TargetSpec:
        if not target.has_own_provider:
            return target.spec(self._find(target.model))
        choice = _choose(self.catalog, target.model, self.environment)
        name = own_provider_name(target)
        self._add(name, target.provider(choice.provider))
        return target.spec(TargetSpec(name=target.name, model=f"{name}/{choice.model}"))

    def _add(self, name: str, provider: Provider) -> None:
        self.catalog = msgspec.structs.replace(self.catalog, providers={**self.catalog.providers, name: provider})


def _choose(catalog: Catalog, model: str, environment: Mapping[str, str]) -> ModelChoice:
    return choose(catalog, model, has_key=lambda provider: provider.has_key(environment))


def own_provider_name(target: SuiteTarget) -> str:
    """The name in the catalogue of the provider that a suite's target defines."""
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', target.name).strip('-')}-provider"


def target_from_settings(name: str, table: EvalTarget) -> TargetSpec:
    fields = {field: getattr(table, field) for field in table.__struct_fields__ if field != "cli"}
    command = table.cli
    cli = None
    if command is not None:
        given = {field: getattr(command, field) for field in command.__struct_fields__ if field != "words"}
        cli = CommandSpec(**given | {"command": command.words or command.command})
    spec = TargetSpec(name=name, cli=cli, **fields)
    spec.check()
    return spec


def _agentv(files: SuiteFiles, suite: str) -> AgentvTargets:
    found = files.find(FILE, suite)
    data = None if found is None else files.read(found)
    return AgentvTargets() if found is None or data is None else read_targets(data, found)


def _dotenv_variables(files: SuiteFiles, targets: AgentvTargets) -> dict[str, str]:
    """The values of the variables that AgentV's file uses, from the `.env` files beside it and one folder up; the
    nearer one wins."""
    found: dict[str, str] = {}
    folder = folder_of(targets.file)
    for place in (join_path(folder, "../.env"), join_path(folder, ".env")) if targets.file else ():
        data = files.read(place) if place else None
        if data is not None:
            found |= read_variables(data, targets.variables)
    return found


def _with_folders(spec: TargetSpec, suite: str) -> TargetSpec:
    """Resolve the folders in which a target's command and health check run, relative to the suite."""
    if spec.cli is None:
        return spec

    def resolve_folder(cwd: str) -> str:
        folder = join_path(folder_of(suite), cwd)
        if folder is None:
            hint = "Name a folder of the repository."
            raise Fault(Code.CONFIG, f"the target {spec.name!r} runs in {cwd!r}, outside of it", hint=hint)
        return folder

    check = spec.cli.healthcheck_cwd
    cli = msgspec.structs.replace(
        spec.cli, cwd=resolve_folder(spec.cli.cwd), healthcheck_cwd=None if check is None else resolve_folder(check)
    )
    return msgspec.structs.replace(spec, cli=cli)


def _is_judged(case: Case) -> bool:
    """Whether a judge is needed for this case: a grader asks one, or a turn has an expected answer and no grader."""
    is_compared = any(turn.expected and not turn.graders for turn in case.turns)
    return is_compared or any(_wants_judge({**spec.config, "type": spec.type}) for spec in case.all_graders)


def _configs_in(config: Json) -> Iterator[Json]:
    """A grader's configuration, and those of the graders inside it. Only the keys that contain graders are followed,
    because other values may have the same keys, for example the arguments of a tool."""
    yield config
    if isinstance(config, dict):
        for inner in (config.get(key) for key in (*LISTS, "aggregator")):
            for each in inner if isinstance(inner, list) else [inner]:
                yield from _configs_in(each)


def _wants_judge(config: Json) -> bool:
    for each in _configs_in(config):
        kind = each.get("type") if isinstance(each, dict) else None
        is_judge = isinstance(kind, str) and kind.replace("_", "-") in ("llm-grader", "rubrics")
        if is_judge or isinstance(each, str):  # a sentence that has to hold
            return True
    return _asks_models(config)


def _asks_models(config: Json) -> bool:
    """Whether a grader has a command that may ask models: its `target` is an object or true."""
    targets = (each.get("target") for each in _configs_in(config) if isinstance(each, dict))
    return any(isinstance(target, dict) or target is True for target in targets)


def _targets_in(config: Json) -> list[str]:
    targets = (each.get("target") for each in _configs_in(config) if isinstance(each, dict))
    return [target for target in targets if isinstance(target, str)]
