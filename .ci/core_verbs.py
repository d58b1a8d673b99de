"""Run the verbs that need no optional package with the `tarviz` given, over the shards of a demo: each must end well.

    python .ci/core_verbs.py TARVIZ FOLDER

An environment of developers holds every package; this is for one that holds few.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

if __name__ == "__main__":
    tarviz, folder = Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute()
    shard = str(next(iter(sorted(folder.rglob("*.tar")))))
    with tempfile.TemporaryDirectory() as out:
        for line in (
            ["ls", shard],
            ["show", "-n", "2", shard],
            ["verify", shard],
            ["index", shard],
            ["cat", shard, "-o", f"{out}/cat.tar"],
            ["sort", shard, "-o", f"{out}/sort.tar"],
            ["split", "-n", "50", shard, "-o", f"{out}/split-{{shard}}.tar"],
            ["first", shard],
            ["tsv", "-f", "__key__", shard],
            ["proc", "-c", "true", shard, "-o", f"{out}/proc.tar"],
            ["browse", "--help"],
            ["compare", "--help"],
            ["bench", "--help"],
        ):
            done = subprocess.run([tarviz, *line], capture_output=True, cwd=out, check=False)
            if done.returncode:
                sys.exit(f"tarviz {' '.join(line)} ended with {done.returncode}:\n{done.stderr.decode('utf-8', 'replace')}")
            print(f"tarviz {line[0]}: fine")  # noqa: T201
