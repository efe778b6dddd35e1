"""Advice on the number of frequencies, which a sampler gives for the set it draws."""

from typing import Self


class SizeAdvice(str):
    """A refusal or warning about a number of frequencies, in words for the only set of a map.

    It also knows its parts: where the set is one of several, what to say is the number for all of them.
    """

    reason: str
    better: tuple[int, ...]

    def __new__(cls, reason: str, came: int, *better: int) -> Self:
        """Say the reason, what came, and the numbers to take instead."""
        advice = super().__new__(cls, f"{reason}; s = {came}, take {_either(better)}")
        advice.reason, advice.better = reason, better
        return advice

    def for_each_of(self, sets: int) -> str:
        """The advice, with the numbers that give each of the sets a better one."""
        return f"{self.reason}; take s = {_either(tuple(sets * size for size in self.better))}"


def _either(numbers: tuple[int, ...]) -> str:
    return " or ".join(map(str, numbers))
