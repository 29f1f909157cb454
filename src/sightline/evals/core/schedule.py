"""What can be run next on each target: cases in their order, and none before those that it depends on."""

from collections import deque
from collections.abc import Iterable

from sightline.evals.core.facts import Key
from sightline.evals.core.run_state import EvalState, has_run


class Schedule:
    """What is left of a run. A trial depends on the same trial of the case before it, or on its last where it has
    fewer."""

    def __init__(self, standing: EvalState) -> None:
        self._standing = standing
        self._ready: dict[str, deque[Key]] = {target.name: deque() for target in standing.began.targets}
        self._left = dict.fromkeys(self._ready, 0)
        self._trials: dict[tuple[str, str], int] = {}
        for case, target, _ in standing.keys:
            self._trials[case, target] = self._trials.get((case, target), 0) + 1
        self._blocked: dict[Key, int] = {}
        self._freed_by: dict[Key, list[Key]] = {}
        left = standing.left
        open_keys = set(left)
        for key in left:
            self._left[key[1]] += 1
            before = [each for each in self._before(key) if each in open_keys]
            for each in before:
                self._freed_by.setdefault(each, []).append(key)
            if before:
                self._blocked[key] = len(before)
            else:
                self._ready[key[1]].append(key)

    def next(self, target: str) -> Key | None:
        """The next one, None where there is none at the moment."""
        ready = self._ready[target]
        return ready.popleft() if ready else None

    def is_over(self, target: str) -> bool:
        """Whether everything has been done."""
        return not self._left[target]

    def finish(self, key: Key) -> None:
        """It has a result: what waited for it may go."""
        self._left[key[1]] -= 1
        for waiting in self._freed_by.pop(key, ()):
            self._blocked[waiting] -= 1
            if not self._blocked[waiting]:
                del self._blocked[waiting]
                self._ready[waiting[1]].append(waiting)

    def failures(self, key: Key) -> tuple[str, ...]:
        """The cases that this one depends on and that were not carried out. One that was answered and failed, or could
        not be graded, was: what depends on it is run, as in AgentV."""
        results = (self._standing.result(each) for each in self._before(key))
        return tuple(result.case for result in results if result is not None and not has_run(result))

    def _before(self, key: Key) -> Iterable[Key]:
        case, target, trial = key
        for name in self._standing.cases[case].depends_on:
            trials = self._trials.get((name, target), 0)
            if trials:
                yield name, target, min(trial, trials - 1)
