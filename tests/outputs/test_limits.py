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
        (Limits(size=2560, ending=0), [2560, 2561], 0, 0, 0, 1),
    ]:
        assert last == limits.fit(np.array(ends), first, records, size)
