"""Writes the files beside it: polars 2.1.0, pyarrow 26.0.1. All hold the same rows."""
import decimal
import os
import uuid

import polars as pl
import pyarrow as pa
import pyarrow.feather as feather

here = os.path.dirname(os.path.abspath(__file__))
n = 40
users = [i % 7 + 2**40 for i in range(n)]
items = [None if i % 11 == 0 else f"item {i % 5}, with a name of more than twelve bytes" for i in range(n)]
ratings = [None if i % 13 == 0 else (i % 10) / 2 for i in range(n)]
genres = [f"genre {i % 3}" for i in range(n)]
counts = [i * 3 for i in range(n)]
prices = [decimal.Decimal(i) / 4 for i in range(n)]
keys = [uuid.UUID(int=i * 2**100 + 7).bytes for i in range(n)]

frame = pl.DataFrame(
    {
        "user": users,
        "item": items,
        "rating": ratings,
        "genre": pl.Series(genres, dtype=pl.Categorical),
        "count": pl.Series(counts, dtype=pl.UInt64),
        "price": pl.Series(prices, dtype=pl.Decimal(10, 2)),
    }
)
for compression in ["uncompressed", "lz4", "zstd"]:
    frame.write_ipc(f"{here}/polars-{compression}.arrow", compression=compression)
frame.write_ipc_stream(f"{here}/polars-lz4.arrows", compression="lz4")
frame.write_ipc(f"{here}/polars-oldest.arrow", compression="lz4", compat_level=pl.CompatLevel.oldest())

table = pa.table(
    {
        "user": users,
        "item": pa.array(items, pa.string_view()),
        "rating": pa.array(ratings, pa.float64()),
        "genre": pa.array(genres, pa.large_string()).dictionary_encode(),
        "count": pa.array(counts, pa.uint64()),
        "price": pa.array(prices, pa.decimal128(10, 2)),
        "key": pa.array(keys, pa.binary(16)),
    }
)
for compression in ["uncompressed", "lz4", "zstd"]:
    feather.write_feather(table, f"{here}/feather-{compression}.feather", compression=compression, chunksize=16)
