"""Writes the files next to it, with page indexes, by pyarrow: pip install pyarrow numpy; python write.py"""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 100_000
row = np.arange(ROWS)
floats = (row // 1000 / 2 - 5).astype("float32")
floats[30_000:31_500] = np.nan  # a page of NaN alone, and half of one
floats[10_000:10_500] = -0.0
table = pa.table(
    {
        "i": (row // 10).astype("int32"),
        # Pages of nulls alone, and pages with some.
        "n": pa.array(row // 100, mask=(row < 25_000) | ((row > 40_000) & (row < 48_300))),
        "f": floats,
        "x": pa.array((ROWS - row) // 7 / 4, mask=row % 5000 == 17),
        # From below 2^31 to above it.
        "u": (row // 1000 * 50_000 + 2**31 - 3_000_000).astype("uint32"),
        "d": pa.array([Decimal(int(r // 500)) / 100 - 1 for r in row], pa.decimal128(9, 2)),
        "t": pa.array(["text " * 30 + str(r // 2000) for r in row]),
        "day": pa.array(((row - 50_000) // 31).astype("int32"), pa.date32()),
        "ms": pa.array((row - 50_000) // 500 * 100, pa.timestamp("ms")),
        "ns": pa.array((row - 50_000) // 500 * 100_007, pa.timestamp("ns")),
        "ts": pa.array((row // 1000) * 86_400_000_000, pa.timestamp("us")),
    }
)
for version in ("1.0", "2.0"):
    pq.write_table(
        table,
        Path(__file__).parent / f"pyarrow-V{version[0]}.parquet",
        row_group_size=60_000,
        compression="zstd",
        data_page_version=version,
        write_page_index=True,
        write_batch_size=500,
        max_rows_per_page=1000,
    )
