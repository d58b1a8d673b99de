"""Steps and parts of them."""

from __future__ import annotations

from tarviz.formats.records import Grouper
from tarviz.formats.tar import Scanner
from tarviz.read.rules import Decided
from tests.conftest import each_case
from tests.read.tars import END, member


@each_case(
    ("low", "high", "pending", "expected"),
    [(0, 5, 4, 4), (1, 5, 4, 3), (1, 4, 4, -1), (2, 3, 2, 0), (3, 5, 2, -1), (0, 2, -1, -1)],
)
def test_a_part_keeps_number_and_mark_of_its_records(low: int, high: int, pending: int, expected: int):
    data = b"".join(member(f"{name}.txt", b"1") for name in "abcde") + END
    records = Grouper("a.tar").group(Scanner("a.tar").scan(memoryview(data), 0, final=True))
    part = Decided(records, pending, 100, memoryview(data), 0).part(low, high)

    assert [name.encode() for name in "abcde"[low:high]] == part.records.keys.tolist()
    assert (100 + low, expected) == (part.first, part.pending)
    assert part.records.members.start.tolist() == [1024 * at for at in range(low, high)]
