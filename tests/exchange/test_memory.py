import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sightline.errors import Code, Fault
from sightline.exchange.memory import FILE_NAME, Memory, writable
from sightline.model.reply import Usage
from sightline.tokens.estimate import Estimate
from tests.fake_clock import FakeClock

NOW = 1_760_000_000.0


def memory(folder: Path) -> Memory:
    return Memory(folder, lambda: NOW)


def taught(folder: Path, model: str, times: int = 1) -> Memory:
    learning = memory(folder)
    for size in range(times):
        raw = Estimate(100 + size, 80, 150)
        learning.learn("acme", model, raw, Usage(input_tokens=130 + size), tools=False)
    learning.ledger.add_request("acme", model, 130, NOW)
    learning.save()
    return learning


def test_nothing_is_known_at_first(tmp_path: Path) -> None:
    fresh = memory(tmp_path / "data")
    assert fresh.ratio("acme", "m", tools=False) is None
    assert fresh.trouble == ""
    assert not (tmp_path / "data").exists()


def test_what_was_learned_is_there_in_the_next_run(tmp_path: Path) -> None:
    first = taught(tmp_path / "data", "m", times=5)
    assert first.trouble == ""
    second = memory(tmp_path / "data")
    ratio = second.ratio("acme", "m", tools=False)
    assert ratio == first.ratio("acme", "m", tools=False)
    assert ratio is not None
    assert second.ratio("acme", "m", tools=True) is None
    assert second.ledger.usage("acme", "m", NOW).rpd == 1


def test_the_folder_is_the_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "data"
    taught(folder, "m")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_a_file_that_others_could_read_is_shut(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("")
    (tmp_path / FILE_NAME).chmod(0o644)
    taught(tmp_path, "m")
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600


def test_a_reply_without_a_count_teaches_nothing(tmp_path: Path) -> None:
    learning = memory(tmp_path)
    learning.learn("acme", "m", Estimate(1, 1, 1), Usage(output_tokens=3), tools=False)
    assert learning.ratio("acme", "m", tools=False) is None


def test_runs_that_end_at_once_all_count(tmp_path: Path) -> None:
    learning = [memory(tmp_path) for _ in range(8)]
    for number, each in enumerate(learning):
        each.learn("acme", f"m{number}", Estimate(100, 80, 150), Usage(input_tokens=130), tools=False)
        each.ledger.add_request("acme", f"m{number}", 130, NOW)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(Memory.save, learning))
    last = memory(tmp_path)
    assert all(last.ratio("acme", f"m{number}", tools=False) for number in range(8))
    assert [last.ledger.usage("acme", f"m{number}", NOW).rpm for number in range(8)] == [1] * 8


def test_runs_of_the_same_model_that_overlap_all_count(tmp_path: Path) -> None:
    idle = memory(tmp_path)
    for _ in range(3):
        taught(tmp_path, "m")
    idle.save()
    assert memory(tmp_path).ledger.usage("acme", "m", NOW).rpd == 3
    late = memory(tmp_path)
    taught(tmp_path, "m")
    sent = late.ledger.add_request("acme", "m", 100, NOW)
    late.ledger.settle(sent, 40, NOW)
    late.ledger.observe_headers("acme", "m", {"x-ratelimit-limit-requests": "60"}, NOW)
    late.save()
    used = memory(tmp_path).ledger.usage("acme", "m", NOW)
    assert (used.rpd, used.tpd) == (5, 4 * 130 + 40)


def test_a_run_that_learned_nothing_writes_nothing(tmp_path: Path) -> None:
    memory(tmp_path / "data").save()
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"calibration":{"version":9,"models":{}},"ledger":{}}'])
def test_unreadable_file_is_replaced_and_reported(tmp_path: Path, data: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(data)
    fresh = memory(tmp_path)
    assert "begun anew" in fresh.trouble
    taught(tmp_path, "m")
    assert memory(tmp_path).trouble == ""
    assert json.loads((tmp_path / FILE_NAME).read_bytes())["ledger"]["accounts"]


def test_a_folder_that_cannot_be_written_is_a_trouble_and_no_failure(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file stands in the way")
    blocked = memory(tmp_path / "data")
    blocked.ledger.add_request("acme", "m", 1, NOW)
    blocked.save()
    assert "data" in blocked.trouble
    with pytest.raises(OSError, match="exists"):
        writable(tmp_path / "data")


def test_a_run_of_hours_and_short_ones_beside_it_all_count_at_their_own_times(tmp_path: Path) -> None:
    clock = FakeClock(NOW)
    long_one = Memory(tmp_path, clock.now)
    long_one.ledger.add_request("acme", "m", 1, clock.now())
    clock.time += 10_000
    short_one = Memory(tmp_path, clock.now)
    for _ in range(20):
        short_one.ledger.add_request("acme", "m", 100, clock.now())
    short_one.save()
    clock.time += 10
    long_one.ledger.add_request("acme", "m", 1, clock.now())
    clock.time += 10
    long_one.save()
    used = Memory(tmp_path, clock.now).ledger.usage("acme", "m", clock.now())
    assert (used.rpm, used.rpd) == (21, 22)
    assert Memory(tmp_path, clock.now).ledger.usage("acme", "m", NOW + 86_400 + 5000).rpd == 21


def test_what_is_saved_twice_counts_once(tmp_path: Path) -> None:
    saved = taught(tmp_path, "m", times=2)
    saved.save()
    again = memory(tmp_path)
    assert again.ledger.usage("acme", "m", NOW).rpd == 1
    ratio = again.ratio("acme", "m", tools=False)
    assert ratio.seen == 2
    sent = saved.ledger.add_request("acme", "m", 50, NOW)
    saved.save()
    saved.ledger.settle(sent, 7, NOW)
    saved.save()
    assert memory(tmp_path).ledger.usage("acme", "m", NOW).tpd == 130 + 7


def test_a_folder_that_was_full_for_a_while_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.write_text("a file stands in the way")
    learning = taught(folder, "m")
    assert learning.trouble
    folder.unlink()
    learning.save()
    assert memory(folder).ledger.usage("acme", "m", NOW).rpd == 1
    assert memory(folder).ratio("acme", "m", tools=False) is not None


def test_a_run_without_end_holds_no_more_than_the_file_would(tmp_path: Path) -> None:
    learning = memory(tmp_path)
    for _ in range(100):
        learning.learn("acme", "m", Estimate(100, 80, 150), Usage(input_tokens=130), tools=False)
    assert len(learning._fresh.to_json()) < 1000


@pytest.mark.parametrize("absurd", [2**63, 2**64, 10**20, 10**400])
def test_an_absurd_count_leaves_no_trace(tmp_path: Path, absurd: int) -> None:
    learning = memory(tmp_path)
    learning.learn("acme", "m", Estimate(10, 8, 12), Usage(input_tokens=absurd, output_tokens=1), tools=False)
    sent = learning.ledger.add_request("acme", "m", 5, NOW)
    learning.ledger.settle(sent, absurd, NOW)
    learning.save()
    again = memory(tmp_path)
    assert (learning.trouble, again.trouble) == ("", "")
    assert again.ratio("acme", "m", tools=False) is None
    assert again.ledger.usage("acme", "m", NOW).tpd == 5


def test_what_was_learned_can_be_forgotten_here_and_in_the_folder(tmp_path: Path) -> None:
    learning = taught(tmp_path, "m", times=3)
    taught(tmp_path, "other")
    assert [lesson.model for lesson in learning.lessons()] == ["acme/m", "acme/other"]
    assert learning.forget("m") == ["acme/m"]
    assert [lesson.model for lesson in memory(tmp_path).lessons()] == ["acme/other"]
    assert learning.forget("unheard-of") == []
    assert learning.forget() == ["acme/other"]
    assert memory(tmp_path).lessons() == []


def test_a_program_that_runs_forgets_what_another_one_forgot(tmp_path: Path) -> None:
    serving = taught(tmp_path, "m", times=3)
    serving.learn("acme", "m", Estimate(100, 80, 150), Usage(input_tokens=140), tools=False)
    serving.note_count(["d"], 140)
    memory(tmp_path).forget("acme/m")
    assert serving.ratio("acme", "m", tools=False) is None
    assert serving.longest_counted(["", "d"]) is None
    serving.save()
    assert memory(tmp_path).ratio("acme", "m", tools=False) is None


def test_a_program_that_runs_learns_what_another_one_learned(tmp_path: Path) -> None:
    serving = memory(tmp_path)
    taught(tmp_path, "m")
    assert serving.ratio("acme", "m", tools=False) is not None


def test_what_cannot_be_forgotten_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Fault) as caught:
        memory(tmp_path / "file").forget()
    assert caught.value.code is Code.CONFIG
    assert "--data" in caught.value.hint


def test_what_was_counted_survives_a_restart(tmp_path: Path) -> None:
    first = taught(tmp_path, "m")
    first.note_count(["a", "b"], 130)
    first.learn("acme", "m", Estimate(100, 80, 150), Usage(input_tokens=130), tools=False)
    first.save()
    assert memory(tmp_path).longest_counted(["a", "b", "c"]) == (1, 130)


def test_requests_with_pictures_are_taken_as_others_until_something_is_learned_of_them(tmp_path: Path) -> None:
    learning = taught(tmp_path, "m", times=3)
    assert learning.ratio("acme", "m", tools=False, media=True) == learning.ratio("acme", "m", tools=False)
    learning.learn("acme", "m", Estimate(100, 80, 150), Usage(input_tokens=90), tools=False, media=True)
    assert learning.ratio("acme", "m", tools=False, media=True) != learning.ratio("acme", "m", tools=False)
