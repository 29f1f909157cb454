import pytest

from sightline.workbench.access import Access, proof_of

TOKEN = "abcdefghijklmnopqrstuvwxyz"
ACCESS = Access(TOKEN, 7700)


@pytest.mark.parametrize(
    ("name", "value", "is_granted"),
    [
        (b"authorization", f"Bearer {TOKEN}", True),
        (b"authorization", f"bearer  {TOKEN} ", True),
        (b"authorization", TOKEN, False),
        (b"authorization", f"Basic {TOKEN}", False),
        (b"authorization", "Bearer ", False),
        (b"authorization", f"Bearer {TOKEN}x", False),
        (b"authorization", "Bearer tök", False),
        (b"cookie", f"sightline_7700={TOKEN}", True),
        (b"cookie", f"other=1; sightline_7700={TOKEN}; last=2", True),
        (b"cookie", f"sightline_7701={TOKEN}", False),
        (b"cookie", "sightline_7700=", False),
        (b"cookie", "sightline_7700", False),
        (b"x-token", TOKEN, False),
    ],
)
def test_the_token_is_shown_by_header_or_cookie(name: bytes, value: str, is_granted: bool) -> None:
    assert ACCESS.is_granted([(b"host", b"localhost"), (name, value.encode("latin-1"))]) is is_granted


def test_nobody_is_granted_anything_for_nothing() -> None:
    assert not ACCESS.is_granted([])


@pytest.mark.parametrize(
    ("query", "is_in"), [(f"token={TOKEN}", True), (f"a=b&token={TOKEN}", True), ("token=", False), ("", False)]
)
def test_the_link_holds_the_token(query: str, is_in: bool) -> None:
    assert ACCESS.is_in(query) is is_in


def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites() -> None:
    name, *attributes = ACCESS.cookie.decode().split("; ")
    assert name == f"sightline_7700={TOKEN}"
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(attributes)


def test_the_server_proves_that_it_knows_the_token_without_telling_it() -> None:
    proof = ACCESS.proof("challenge=c1")
    assert proof == proof_of(TOKEN, "c1")
    assert TOKEN not in proof
    assert len({proof, proof_of(TOKEN, "c2"), proof_of("another", "c1")}) == 3
    assert ACCESS.proof("") == ACCESS.proof("challenge=") == ""
