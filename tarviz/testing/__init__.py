"""Contracts that ops, stores, viewers and columns keep, as classes to derive tests from, and servers that fail on purpose.

`ops.OpTests`, `stores.StoreTests`, `viewers.ViewerTests`, `columns.ColumnTests`: each asks a library of the world too, where one knows
(`oracle`, `expected`; GNU tar, DuckDB). `strategies` for Hypothesis; `faults.FaultServer`, `aistore.Cluster`.
"""

import sys

if "pytest" in sys.modules:  # a failure in another package's tests shows values, as in a file of tests
    sys.modules["pytest"].register_assert_rewrite(*(f"{__name__}.{name}" for name in ("ops", "stores", "viewers", "columns")))
