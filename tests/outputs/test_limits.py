"""How much one output holds."""

import numpy as np

from tarviz.outputs.limits import Limits


def test_as_many_records_as_fit():
    for limits, ends, first, records, size, last in [
        (Limits(), [512, 1024], 0, 7, 9000, 2),
        (Limits(count=3), [512, 1024, 1536], 0, 1, 0, 2),
        (Limits(count=3), [512, 1024, 1536], 1, 3, 0, 1),
        (Limits(size=2560), [512, 1024, 2048], 0, 0, 0, 2),
        (Limits(size=2560), [512, 1024, 1536], 0, 0, 0, 3),
        (Limits(size=2559), [512, 1024, 1536], 0, 0, 0, 2),
        (Limits(size=2560), [512, 1024, 1536], 1, 1, 512, 3),
        (Limits(size=2560), [512, 1024, 1536], 1, 1, 1024, 2),
        (Limits(size=100), [9000, 9512], 0, 0, 0, 1),
        (Limits(size=100), [9000, 9512], 0, 1, 512, 0),
        (Limits(count=1, size=9999), [512, 1024], 0, 0, 0, 1),
    ]:
        assert last == limits.fit(np.array(ends), first, records, size)


def test_what_an_output_may_have():
    for limits, records, size, allowed in [
        (Limits(), 9, 9000, True),
        (Limits(count=3), 3, 9000, True),
        (Limits(count=3), 4, 0, False),
        (Limits(size=2560), 1, 1536, True),
        (Limits(size=2560), 1, 1537, False),
        (Limits(size=2560, ending=0), 1, 2560, True),
    ]:
        assert allowed == limits.allow(records, size)
