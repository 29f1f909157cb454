from pathlib import Path

import msgspec
import pytest

from sightline.errors import Fault
from sightline.evals.core.run_state import EvalBegan
from sightline.evals.core.target import CommandSpec, TargetSpec
from sightline.evals.service.cluster import messages as parcel_module
from sightline.evals.service.cluster.messages import PackedFile, pack_files, unpack
from sightline.evals.service.suite_files import SuiteFiles
from tests.eval_stage import suite_of

SUITE = """
tests:
  - id: one
    input:
      - role: user
        content:
          - {type: file, value: ../shared/notes.md}
          - {type: text, value: "What is it, e.g. in words?"}
    assertions:
      - {type: code-grader, command: [python3, checks/grade.py]}
      - {type: llm-grader, prompt: rubric.md}
"""


def tree(root: Path, *paths: str) -> None:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(path)


def arrived(
    root: Path, there: Path, *targets: TargetSpec, others: tuple[str, ...] = (), suite: str = SUITE
) -> list[str]:
    """What is on a host then."""
    (root / "evals").mkdir(exist_ok=True)
    (root / "evals/s.yaml").write_text(suite)
    began = EvalBegan(suite=suite_of(suite, root, "evals/s.yaml"), targets=targets)
    there.mkdir()
    unpack(pack_files(SuiteFiles(root), began, others), there)
    return sorted(path.relative_to(there).as_posix() for path in there.rglob("*") if path.is_file())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    tree(folder, "evals/data/a.txt", "evals/checks/grade.py", "shared/notes.md", "shared/other.md", "rubric.md", "x.py")
    return folder


def test_suite_folder_and_referenced_files_are_packed(root: Path, tmp_path: Path) -> None:
    assert arrived(root, tmp_path / "there") == [
        "evals/checks/grade.py",
        "evals/data/a.txt",
        "evals/s.yaml",
        "rubric.md",
        "shared/notes.md",
    ]


def test_what_is_hidden_or_made_by_machines_stays_at_home(root: Path, tmp_path: Path) -> None:
    tree(root, "evals/.env", "evals/.git/config", "evals/__pycache__/a.pyc", "evals/node_modules/m/i.js", "evals/b.txt")
    found = arrived(root, tmp_path / "there")
    assert "evals/b.txt" in found
    assert not any(".env" in path or ".git" in path or "pycache" in path or "node_modules" in path for path in found)


def test_target_programs_are_packed_with_their_working_directory(root: Path, tmp_path: Path) -> None:
    tree(root, "agent/main.py", "agent/lib/part.py", "bin/run.sh", "bin/other.sh", "health.sh", "odd.sh")
    (root / "bin/run.sh").chmod(0o755)
    inside = TargetSpec(name="a", cli=CommandSpec(command="python3 main.py {PROMPT}", cwd="agent"))
    words = CommandSpec(command=("sh", "bin/run.sh", "."), healthcheck_command="sh health.sh")
    odd = TargetSpec(name="c", cli=CommandSpec(command="sh odd.sh 'unclosed"))
    found = arrived(root, tmp_path / "there", inside, TargetSpec(name="b", cli=words), odd)
    assert {"agent/main.py", "agent/lib/part.py", "bin/run.sh", "health.sh", "odd.sh"} <= set(found)
    assert "bin/other.sh" not in found
    assert (tmp_path / "there/bin/run.sh").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "there/health.sh").stat().st_mode & 0o777 == 0o600


def test_words_that_are_too_long_for_a_name_are_no_files(root: Path, tmp_path: Path) -> None:
    program = CommandSpec(command=("python3", "-c", "print(1); " * 60), healthcheck_command=f"echo '{'é. ' * 200}'")
    long_rubric = SUITE + f"      - {{type: llm-grader, prompt: {'评.' * 100}}}\n"
    assert "rubric.md" in arrived(root, tmp_path / "there", TargetSpec(name="a", cli=program), suite=long_rubric)


def test_others_are_files_or_folders_and_nothing_leads_out(root: Path, tmp_path: Path) -> None:
    tree(tmp_path, "outside/secret.txt")
    (root / "evals/link.txt").symlink_to(tmp_path / "outside/secret.txt")
    found = arrived(root, tmp_path / "there", others=("x.py", "shared", "../outside", "nowhere"))
    assert {"x.py", "shared/other.md"} <= set(found)
    assert not any("secret" in path or "link" in path for path in found)


def test_too_much_is_refused_with_a_name(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parcel_module, "LARGEST", 20)
    with pytest.raises(Fault, match="the files for the cluster are more than 0 MB; one of them is"):
        arrived(root, tmp_path / "there")


def test_a_host_takes_no_file_outside_of_its_folder(tmp_path: Path) -> None:
    import zlib

    parcel = zlib.compress(msgspec.msgpack.encode([PackedFile("../away.txt", b"")]))
    with pytest.raises(Fault, match="is not below the folder"):
        unpack(parcel, tmp_path)
