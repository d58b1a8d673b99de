"""What chains give, their ops done together and one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from tarviz.model.errors import TarvizError
from tarviz.ops.chains import Chain


def one_by_one(chain: Chain, record: dict[str, Any]) -> Any:
    """What the steps of the chain give, or the code and words of the first error."""
    steps = list(chain.trace(record))
    if steps[-1].error is not None:
        return steps[-1].error.code, str(steps[-1].error)
    return steps[-1].record


def together(chain: Chain, record: dict[str, Any]) -> Any:
    try:
        return chain.run(record)
    except TarvizError as error:
        return error.code, str(error)


def same(chain: Chain, record: dict[str, Any]) -> Any:
    """The result of the chain, which is the same both ways."""
    expected, found = one_by_one(chain, record), together(chain, record)
    if isinstance(expected, tuple):
        assert expected == found
        return expected
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        if isinstance(value, np.ndarray):
            assert (value.dtype, value.shape) == (found[name].dtype, found[name].shape)
            np.testing.assert_array_equal(found[name], value)
            assert found[name].flags.writeable
        else:
            assert value == found[name]
    return found
