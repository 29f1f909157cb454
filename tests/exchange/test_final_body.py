import hashlib
import json
from pathlib import Path

import pytest

from sightline.errors import Fault
from sightline.exchange.interception.final_body import FinalBody, refuse_other
from tests.exchange.test_holds import holds_in

BODY = json.dumps({"model": "m", "messages": [{"role": "system", "content": "Be kind."}]}).encode()
PATCH = {"scope": "all", "kind": "patch", "anchor": {"kind": "system"}, "hunks": [{"old": "kind", "new": "terse"}]}


def test_without_masks_it_is_the_very_body_and_nothing_is_read(tmp_path: Path) -> None:
    holds = holds_in(tmp_path)
    final = holds.final_body(BODY, "openai-chat", "m", session="s")
    assert (final.data is BODY, final.draft, final.outcomes) == (True, None, ())
    assert final.sha256 == hashlib.sha256(BODY).hexdigest()


def test_it_is_the_body_after_masks_and_asking_for_it_counts_nothing(tmp_path: Path) -> None:
    holds = holds_in(tmp_path)
    holds.set_masks([PATCH])
    final = holds.final_body(BODY, "openai-chat", "m", session="s")
    assert final.data == BODY.replace(b"kind", b"terse")
    assert final.sha256 == hashlib.sha256(final.data).hexdigest()
    assert [outcome.outcome for outcome in final.outcomes] == ["applied"]
    assert holds.count_of(holds.masks[0]).applied == 0
    assert holds.final_body(BODY, "openai-chat", "m", session="s", masks=False) == FinalBody(BODY)


def test_another_body_than_the_one_that_was_looked_at_is_refused() -> None:
    refuse_other("", "a")
    refuse_other("a", "a")
    with pytest.raises(Fault) as caught:
        refuse_other("a", "b")
    assert (caught.value.status, caught.value.details) == (409, {"code": "preview_outdated"})
