"""`Memory`: what callers may say about memory, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tape_toys import Chain
from warpsim.core.errors import InputError
from warpsim.tape import CheckpointedTape, FullTape, Memory, Revolve


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(segment=2.5), "segment=2.5; give a whole number"),
        (dict(segment=0), "segment=0; give a whole number, at least 1"),
        (dict(schedule="full"), r"schedule='full'; give FullTape\(\)"),
        (dict(budget=[1]), r"memory=\[1\]; write bytes"),
        (dict(storage="cloud"), "storage='cloud'; use one of device, host, disk"),
    ],
)
def test_misuse_says_what_and_what_to_do(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Memory(**arguments)


@pytest.mark.parametrize("given", [True, [1], FullTape()])
def test_what_is_no_memory_is_refused(given: Any) -> None:
    with pytest.raises(InputError, match="write a budget such as '512MB'"):
        CheckpointedTape(Chain(1, 2), steps=5, memory=given)


def test_a_budget_alone_means_a_memory_of_that_budget() -> None:
    plans = [CheckpointedTape(Chain(1, 2), steps=7001, memory=m).plan for m in (900_000, "900kB", Memory("900kB"))]
    assert plans[0] == plans[1] == plans[2] and plans[0].bytes <= 900_000
    assert plans[0] != CheckpointedTape(Chain(1, 2), steps=7001, memory=Memory(schedule=Revolve(3))).plan
