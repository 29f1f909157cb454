"""Chance that is the same in every run."""

import random

from sightline.evals.core.statistics.intervals import Draw


def drawing(seed: int = 7) -> Draw:
    source = random.Random(seed)
    return lambda below, count: source.choices(range(below), k=count)
