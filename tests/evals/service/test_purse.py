from sightline.evals.service.target import Spending


def test_what_is_not_known_is_counted_apart() -> None:
    purse = Spending([1.0, None])
    for cost in (0.5, None, 0.0):
        purse.spend(cost)
    assert (purse.spent, purse.unknown) == (1.5, 2)
