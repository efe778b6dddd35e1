"""Covering arrays: what meets in all cases meets in those that always run."""

from itertools import combinations, product

from service_tests.cases import covered, covering, each

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
