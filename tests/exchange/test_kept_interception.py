import stat
from pathlib import Path

import pytest

from sightline.editing.masks import read_masks
from sightline.errors import Code, Fault
from sightline.exchange.interception.core.rules import Interception, Rules
from sightline.exchange.interception.store import FILE_NAME, BorrowedInterception, KeptInterception, MaskCount

MASKS = read_masks([{"kind": "strip", "scope": "session", "name": "blue", "strip": {"class": "thinking"}}])


def test_mode_rules_and_masks_are_there_again(tmp_path: Path) -> None:
    kept = KeptInterception(tmp_path / "new" / "data")
    assert kept.read() == (Interception(), ())
    rules = Rules.of([{"filter": "model:m", "once": True, "timeout_s": 2}])
    kept.write(Interception().with_rules(rules).with_mode("every"), MASKS)
    again, masks = kept.read()
    assert (again.mode, again.rules.rules, masks) == ("every", rules.rules, MASKS)
    kept.write(Interception(), ())
    assert kept.read()[1] == ()


def test_where_no_folder_is_there_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file in its place")
    assert KeptInterception(tmp_path / "data").read_all() == (Interception(), (), {})


def test_half_a_character_is_kept_too(tmp_path: Path) -> None:
    kept = KeptInterception(tmp_path)
    masks = read_masks(
        [{"kind": "set_text", "scope": "all", "anchor": {"kind": "user", "content": "c"}, "text": "\ud83d"}]
    )
    rules = Rules.of([{"filter": 'text:"\ud83d"'}])
    kept.write(Interception().with_rules(rules), masks)
    assert (kept.read()[0].rules.rules, kept.read()[1]) == (rules.rules, masks)


def test_the_file_is_its_owners_alone_and_nothing_lies_beside_it(tmp_path: Path) -> None:
    KeptInterception(tmp_path).write(Interception(), ())
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"\xff",
        b'{"interception":{"mode":"x","before":"off","rules":[]}}',
        b'{"interception":{"mode":"off","before":"off","rules":[{"filter":"("}]}}',
    ],
)
def test_a_file_that_cannot_be_read_is_not_taken_for_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(data)
    with pytest.raises(Fault, match=FILE_NAME) as caught:
        KeptInterception(tmp_path).read()
    assert (caught.value.code, "take it away" in caught.value.hint) == (Code.CONFIG, True)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file in its place")
    with pytest.raises(Fault, match="data") as caught:
        KeptInterception(tmp_path / "data").write(Interception(), ())
    assert caught.value.hint


def test_a_command_reads_rules_and_masks_and_writes_nothing(tmp_path: Path) -> None:
    kept = KeptInterception(tmp_path)
    kept.write(Interception().with_mode("every"), MASKS, {MASKS[0].id: MaskCount(1, 2, "x_1")})
    assert kept.read_all()[2] == {MASKS[0].id: MaskCount(1, 2, "x_1")}
    before = (tmp_path / FILE_NAME).read_bytes()
    alone = BorrowedInterception(tmp_path)
    interception, masks, counts = alone.read_all()
    assert (interception.mode, masks, counts) == ("every", MASKS, {})
    alone.write(Interception(), ())
    assert (tmp_path / FILE_NAME).read_bytes() == before
