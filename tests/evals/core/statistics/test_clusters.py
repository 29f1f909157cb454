from sightline.evals.core.statistics.intervals import clusters_of, sums_of


def test_values_of_a_group_stand_together_and_the_others_alone() -> None:
    assert clusters_of(["a", "", "b", "a", ""], 5) == [[0, 3], [1], [2], [4]]


def test_without_groups_every_value_stands_alone() -> None:
    assert clusters_of((), 3) == [[0], [1], [2]]


def test_clusters_have_sums_and_sizes() -> None:
    assert sums_of([1.0, 2.0, 4.0], ["x", "y", "x"]) == ([5.0, 2.0], [2, 1])
