"""Writes the files beside it: columns of types that few programs read, beside an int32 `user` (polars 2.1.0, pyarrow 26.0.1)."""
import os

import polars as pl
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

here = os.path.dirname(os.path.abspath(__file__))
long = "a text longer than twelve bytes"
user = pa.array([1, 2, 3], pa.int32())
deep = pa.map_(pa.string(), pa.map_(pa.string(), pa.list_(pa.int32())))
plain = {
    "user": user,
    "texts": pa.array(["a", None, long], pa.string_view()),
    "bytes": pa.array([b"a", None, b"more than twelve bytes"], pa.binary_view()),
    "list_of_texts": pa.array([["a", long], None, []], pa.list_(pa.string_view())),
    "large_list": pa.array([[1, 2], None, []], pa.large_list(pa.int32())),
    "nulls": pa.nulls(3),
    "list_of_nulls": pa.array([[None], None, []], pa.list_(pa.null())),
    "struct_of_nulls": pa.array([{"a": None, "b": 1}, None, {"a": None, "b": 2}], pa.struct([("a", pa.null()), ("b", pa.int32())])),
    "map": pa.array([[("k", [("x", [1, None])])], None, []], deep),
    "json": pa.array(['{"a":1}', None, "[]"], pa.json_()),
}
views = {
    "user": user,
    "list_view": pa.array([[1, 2], None, []], pa.list_view(pa.int32())),
    "large_list_view": pa.array([[1, 2], None, []], pa.large_list_view(pa.int32())),
}
for name, columns in {"plain": plain, "list-views": views}.items():
    table = pa.table(columns)
    pq.write_table(table, f"{here}/{name}.parquet", compression="none")
    with ipc.new_file(f"{here}/{name}.arrow", table.schema) as out:
        out.write_table(table)

frame = pl.DataFrame({"user": pl.Series([1, 2, 3], dtype=pl.Int32), "wide": pl.Series([1, 2, 3], dtype=pl.Int128), "text": ["a", None, long]})
frame.write_parquet(f"{here}/polars-int128.parquet", compression="uncompressed")
frame.write_ipc(f"{here}/polars-int128.arrow")
