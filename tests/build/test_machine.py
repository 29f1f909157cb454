import asyncio

from sightline.build.machine import Ids, SystemClock


def test_the_clock_is_the_machines() -> None:
    clock = SystemClock()
    assert clock.now() > 1_700_000_000
    asyncio.run(clock.sleep(0))


def test_ids_sort_as_they_were_made() -> None:
    times = iter([5_000, 5_000, 4_000, 9_000_000])
    make = Ids(lambda: next(times), lambda: "abc")
    made = [make() for _ in range(4)]
    assert made == sorted(set(made))
    assert all(each.startswith("x_") for each in made)
