"""The gate `pytest --pure-coverage`: each pure package is covered whole, branches too, by its own tests.

Every test runs once, spread over the cores. While a test of `tests/<package>` runs, that package's lines are recorded;
while any other test runs, recording is off. At the end each pure package is held to 100 % of what its own tests
recorded, plus what runs on import. `tests/test_<module>.py` counts for a module at the top.
"""

import contextlib
import importlib
import io
import pkgutil
import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage
from coverage.exceptions import CoverageException, NoDataError

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "sightline"
# No package can have this name.
ON_IMPORT = "import"
# The exit code of a run that leaves lines uncovered, whether or not tests failed: none of pytest's own.
GAPS = 10


def pure_names() -> list[str]:
    """The pure packages and modules, as the import contract in pyproject.toml names them."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    contract = next(each for each in tool["importlinter"]["contracts"] if each["id"] == "pure")
    return [name.removeprefix("sightline.") for name in contract["source_modules"]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--pure-coverage",
        action="store_true",
        help="fail unless each pure package is fully covered by its own tests (needs the whole suite)",
    )


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--pure-coverage"):
        return
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker is not None:
        config.pluginmanager.register(Recorder(Path(worker["pure_coverage"]), worker["workerid"]))
        return
    folder = Path(tempfile.mkdtemp(prefix="sightline-coverage-"))
    config.add_cleanup(lambda: shutil.rmtree(folder))
    config.pluginmanager.register(Judge(folder))
    if not config.getoption("numprocesses", default=None):
        config.pluginmanager.register(Recorder(folder, "main"))


def files_of(name: str) -> list[str]:
    """The patterns that a pure package's or module's files fit."""
    place = PACKAGE.joinpath(*name.split("."))
    return [f"{place}.py", str(place / "*")]


class Recorder:
    """Runs where the tests run and records each pure package's lines while its own tests run.

    Only that package's lines: the tests of a room run through the rooms below it, and to record those too takes three
    times as long.
    """

    def __init__(self, folder: Path, worker: str) -> None:
        self._pure = pure_names()
        self._folder, self._worker = folder, worker
        self._coverages: dict[str, Coverage] = {}
        self._current: str | None = None
        self._tested: str | None = None
        self._record(ON_IMPORT)
        for name in self._pure:
            import_whole(f"sightline.{name}")
        self._record(None)

    def _record(self, name: str | None) -> None:
        if name == self._current:
            return
        if self._current is not None:
            self._coverages[self._current].stop()
        if name is not None:
            if name not in self._coverages:
                self._coverages[name] = self._make(name)
            self._coverages[name].start()
        self._current = name

    def _make(self, name: str) -> Coverage:
        recorded = self._pure if name == ON_IMPORT else [name]
        coverage = Coverage(
            data_file=str(self._folder / name),
            data_suffix=self._worker,
            include=[pattern for each in recorded for pattern in files_of(each)],
            config_file=str(ROOT / "pyproject.toml"),
        )
        # Of a package whose tests all ran elsewhere, nothing but the collection is here.
        coverage.set_option("run:disable_warnings", ["no-data-collected"])
        return coverage

    def _owner(self, path: Path) -> str | None:
        try:
            parts = path.relative_to(ROOT / "tests").parts
        except ValueError:
            return None
        # The tests of a core are one or two folders deeper: tests/chat/core, tests/exchange/interception/core.
        names = [".".join(parts[:depth]).removesuffix(".py").removeprefix("test_") for depth in (1, 2, 3)]
        return next((name for name in names if name in self._pure), None)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        # A line that only a drawn example reaches is covered by chance, and to record what hypothesis does takes as
        # long as all the rest.
        self._tested = None if item.get_closest_marker("hypothesis") else self._owner(item.path)
        return (yield)

    # Not while pytest collects, prepares and reports: with recording on, that takes twice as long as with it off.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_fixture_setup(self) -> Iterator[None]:
        return (yield from self._recorded())

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_pyfunc_call(self) -> Iterator[None]:
        return (yield from self._recorded())

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_teardown(self) -> Iterator[None]:
        return (yield from self._recorded())

    def _recorded(self) -> Iterator[None]:
        before = self._current
        self._record(self._tested)
        try:
            return (yield)
        finally:
            self._record(before)

    def pytest_sessionfinish(self) -> None:
        self._record(None)
        for coverage in self._coverages.values():
            coverage.save()


class Judge:
    """Runs once, after all tests: reads what was recorded and fails the session where a line is missing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._gaps: dict[str, str] = {}

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["pure_coverage"] = str(self._folder)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        for name in pure_names():
            table = io.StringIO()
            coverage = Coverage(data_file=str(self._folder / f"{name}.all"), config_file=str(ROOT / "pyproject.toml"))
            recorded = [
                str(path)
                for each in (name, ON_IMPORT)
                for worker in ("gw", "main")
                for path in self._folder.glob(f"{each}.{worker}*")
            ]
            with contextlib.suppress(NoDataError):
                coverage.combine(recorded, keep=True)
            try:
                covered = coverage.report(include=files_of(name), file=table)
            except CoverageException as error:
                self._gaps[name] = f"{error}\n"
            else:
                if covered < 100:
                    self._gaps[name] = table.getvalue()
        if self._gaps and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            session.exitstatus = GAPS

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("coverage of pure packages by their own tests")
        for name in pure_names():
            if name in self._gaps:
                terminalreporter.write_line(f"{name}: below 100 %", red=True)
                terminalreporter.write(self._gaps[name])
            else:
                terminalreporter.write_line(f"{name}: 100 %")


def import_whole(name: str) -> None:
    """Import a module and all modules below it, so that no package's import is credited to one test."""
    # A module that cannot be imported is reported where its tests import it.
    with contextlib.suppress(ImportError, SyntaxError):
        module = importlib.import_module(name)
        for found in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{name}."):
            import_whole(found.name)
