"""Whose machine this is: metadata servers are not looked for where there are none."""

from __future__ import annotations

import os

_FIRMWARE = "/sys/class/dmi/id"


def machine_says(name: str, word: str) -> bool:
    """Whether the firmware of this machine names its owner.

    >>> machine_says("product_name", "of nobody")
    False
    """
    try:
        with open(os.path.join(_FIRMWARE, name), encoding="ascii", errors="replace") as file:
            return word in file.read(200)
    except OSError:
        return False
