"""Which cases the quick or the gate tests have, which run at night only, and which are one test together."""

import functools
import inspect
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import nullcontext
from heapq import heapify, heapreplace
from itertools import combinations, product
from typing import Any, TypeVar

import pytest

Case = TypeVar("Case", bound=tuple[Any, ...])


def each(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Runs a test for one case after the other, as one test: for tables of small cases. A failure names its case.

    Arguments are those of `pytest.mark.parametrize`, without its marks. The cases share the fixtures of the test, but
    what `monkeypatch` changes is undone after each.
    """
    wanted = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else names
    is_one = isinstance(names, str) and len(wanted) == 1
    table = [(case,) if is_one else case for case in cases]
    assert table, f"no case of {names}"
    assert not any(hasattr(part, "marks") for case in table for part in (case, *case)), (
        "marks belong to pytest.mark.parametrize"
    )

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            for case in table:
                values = dict(zip(wanted, case, strict=True))
                patch: pytest.MonkeyPatch | None = fixtures.get("monkeypatch")
                with nullcontext() if patch is None else patch.context() as own:
                    try:
                        test(**(fixtures | values | ({} if own is None else {"monkeypatch": own})))
                    except BaseException as error:
                        error.add_note(f"the case is {values!r}"[:1000])
                        raise

        signature = inspect.signature(test)
        others = [parameter for name, parameter in signature.parameters.items() if name not in wanted]
        run.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return run

    return decorate


def few_and_many(few: Any, many: Any) -> list[Any]:
    """Values of a parameter: few seeds, or deaths, or whatever there can be many of; the many at night only."""
    return [few, pytest.param(many, marks=pytest.mark.nightly)]


def with_nightly(always: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    """Values of one parameter, or of several as tuples; the others at night only."""
    rare = [one if isinstance(one, tuple) else (one,) for one in others]
    return [*always, *(pytest.param(*one, marks=pytest.mark.nightly) for one in rare)]


def covered(cases: Sequence[Case], named: Callable[[Any], Hashable] = repr) -> list[Any]:
    """The cases as parameters; those outside a covering array run at night. Values of one name count as one."""
    always = covering([tuple(map(named, case)) for case in cases])
    return [case if i in always else pytest.param(*case, marks=pytest.mark.nightly) for i, case in enumerate(cases)]


def some_of_each(cases: Iterable[Case], group: Callable[[Case], Hashable], n: int) -> list[Case]:
    """At most n cases of each group, spread evenly over it; the first of them moves on from group to group."""
    groups: dict[Hashable, list[Case]] = {}
    for case in cases:
        groups.setdefault(group(case), []).append(case)
    chosen = []
    for turn, of in enumerate(groups.values()):
        count = min(n, len(of))
        chosen += [of[(turn + i * len(of) // count) % len(of)] for i in range(count)]
    return chosen


def pairwise(*factors: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Cases in which any two values of two factors meet."""
    every = [*product(*factors)]
    return [every[number] for number in sorted(covering([tuple(map(repr, case)) for case in every]))]


def covering(cases: Sequence[tuple[Hashable, ...]]) -> set[int]:
    """Numbers of some cases, in which any two values that meet in one of all cases meet too.

    Greedy: the next is always a case with the most new meetings, the earliest of them. So the same cases give the same
    choice. What may not go together is left out of the cases, and is then not wanted either.
    """
    meetings = [set(_meetings(case)) for case in cases]
    wanted = set[Hashable]().union(*meetings)
    # What a case adds only falls, so that a case is counted again only when it comes first with an old count.
    promised = [(-len(met), number) for number, met in enumerate(meetings)]
    heapify(promised)
    chosen = set()
    while wanted:
        promise, number = promised[0]
        new = meetings[number] & wanted
        if len(new) == -promise:
            chosen.add(number)
            wanted -= new
            new = set()
        heapreplace(promised, (-len(new), number))
    return chosen


def _meetings(case: tuple[Hashable, ...]) -> Iterable[Hashable]:
    """Any two values, each with its place."""
    return combinations(enumerate(case), 2)
