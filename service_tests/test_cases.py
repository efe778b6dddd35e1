"""Covering arrays: what meets in all cases meets in those that always run; and cases that are one test together."""

import os
from itertools import combinations, product

import pytest

from service_tests.cases import covered, covering, each, some_of_each

MANY = list(product(range(7), range(5), range(3), range(2), range(2)))


@each(
    ("cases", "at_most"),
    [
        (MANY, 35),
        ([case for case in MANY if case[0] != case[1] and (case[2] or not case[3])], 30),
        (list(product("ab", repeat=8)), 8),
        (list(product("ab", "cd")), 4),
        ([("a", 1)], 1),
        ([], 0),
    ],
)
def test_what_meets_in_all_cases_meets_in_those_chosen(cases: list[tuple[object, ...]], at_most: int) -> None:
    chosen = [cases[number] for number in covering(cases)]
    assert len(chosen) <= at_most
    for i, j in combinations(range(len(cases[0]) if cases else 0), 2):
        assert {(case[i], case[j]) for case in chosen} == {(case[i], case[j]) for case in cases}


def test_all_cases_are_there_and_what_is_not_chosen_runs_at_night() -> None:
    cases = [({"kind": kind}, size, form) for kind, size, form in product("abcd", range(3), "xy")]
    parameters = covered(cases)
    always = {number for number, one in enumerate(parameters) if not hasattr(one, "marks")}
    assert len(always) == 12
    assert always == covering([(fields["kind"], size, form) for fields, size, form in cases])
    for number, one in enumerate(parameters):
        if number not in always:
            assert one.values == cases[number]
            assert [mark.name for mark in one.marks] == ["nightly"]


def test_a_test_of_each_case_runs_all_and_names_the_one_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, str, str | None]] = []

    @each(("a", "b"), [(1, "x"), (2, "y"), (3, "z")])
    def check(a: int, b: str, monkeypatch: pytest.MonkeyPatch) -> None:
        seen.append((a, b, os.environ.get("BOCHNER_CASE")))
        monkeypatch.setenv("BOCHNER_CASE", b)
        assert a < 3

    with pytest.raises(AssertionError) as failed:
        check(monkeypatch=monkeypatch)
    assert seen == [(1, "x", None), (2, "y", None), (3, "z", None)]
    assert failed.value.__notes__ == ["the case is {'a': 3, 'b': 'z'}"]


def test_some_of_each_group_are_spread_over_it() -> None:
    cases = [(group, number) for group in "ab" for number in range(9)]
    assert some_of_each(cases, lambda case: case[0], 3) == [
        *(("a", 0), ("a", 3), ("a", 6)),
        *(("b", 1), ("b", 4), ("b", 7)),
    ]
    assert some_of_each(cases[:2], lambda case: case[0], 3) == cases[:2]
