import msgspec
import pytest

from sightline.evals.api.shapes import CaseSaveWanted, MakeWanted, RerunWanted, SaveWanted


def test_what_is_left_out_is_as_usual() -> None:
    assert msgspec.convert({}, RerunWanted) == RerunWanted(None, "")
    assert msgspec.convert({"file": "a.yaml", "yaml": ""}, SaveWanted).exchanges == ()
    path = ["input", 0, "content"]
    assert msgspec.convert({"case": "a", "path": path, "value": None}, CaseSaveWanted).path == ("input", 0, "content")


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ({"cases": []}, RerunWanted),
        ({"exchanges": []}, MakeWanted),
        ({"exchanges": ["x"], "from_turn": 0}, MakeWanted),
        ({"file": "a", "yaml": "", "overwrite": True}, SaveWanted),
    ],
)
def test_what_makes_no_sense_is_refused(told: object, kind: type) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(told, kind)
