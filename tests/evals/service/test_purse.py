from sightline.evals.service.purse import Purse


def test_what_is_not_known_is_counted_apart() -> None:
    purse = Purse([1.0, None])
    for cost in (0.5, None, 0.0):
        purse.spend(cost)
    assert (purse.spent, purse.unknown) == (1.5, 2)
