"""What the tests let worker processes do; it imports little, so that a worker starts quickly."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import IO, Any

from tarviz.engines import Tick
from tarviz.model.errors import DataError


def job(task: Any, file: IO[bytes] | None, tick: Tick) -> Any:
    """A task is a pair: what to do, and with which value. The answer is the value, where nothing else is said."""
    what, value = task
    match what:
        case "sleep":
            time.sleep(value)
        case "touch":
            value.touch()
        case "wait for":
            while not value.exists():
                time.sleep(0.005)
        case "write":
            assert file is not None
            file.write(value)
            return len(value)
        case "tick":
            for _ in range(1000):
                tick(value)
        case "fail":
            value.touch()
            raise DataError(f"broken {value.name}", code="E_CORRUPT")
        case "odd":
            raise ZeroDivisionError(value)
        case "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "kill once":
            if not Path(value).exists():
                Path(value).touch()
                os.kill(os.getpid(), signal.SIGKILL)
        case "talk":
            for _ in range(10 * value):
                time.sleep(0.1)
                tick(1)
        case "print":
            print(value)
        case "session":
            return os.getsid(0) == os.getpid()
    return value
