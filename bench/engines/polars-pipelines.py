"""Pipelines of bench/cases/dataflow.ts with Polars' lazy scan.

polars-pipelines.py FOLDER OUTPUT; each line of stdin names the next pipeline.
"""
import sys
import time

import polars as pl

folder, output = sys.argv[1:3]


def scan():
    return pl.scan_parquet(f"{folder}/*.parquet")


def write():
    rows = scan().filter(pl.col("rating") >= 4).select("user", "item", score=pl.col("rating") * 2)
    rows.sink_parquet(output, compression="zstd", compression_level=1)
    return 0


def count():
    return scan().filter(pl.col("rating") >= 4).select(pl.len()).collect().item()


def add_up():
    rows = scan().with_columns(x=pl.col("rating") * pl.col("rating") + 1)
    return rows.select(pl.col("x").cast(pl.Float64).sum()).collect().item()


def grouped(*keys):
    return scan().group_by(*keys).agg(n=pl.len(), mean=pl.col("rating").mean()).collect().height


def join():
    items = pl.scan_parquet(f"{folder}-items.parquet")
    return scan().join(items, on="item").select("user", "weight", "rating").collect().height


def top():
    counts = scan().group_by("item").agg(n=pl.len())
    return counts.sort(["n", "item"], descending=[True, False]).limit(100).collect().height


pipelines = {
    "write": write,
    "count": count,
    "sum": add_up,
    "items": lambda: grouped("item"),
    "users": lambda: grouped("user"),
    "pairs": lambda: grouped("user", "item"),
    "join": join,
    "distinct": lambda: scan().select("user", "item").unique().collect().height,
    "top": top,
    "sort": lambda: scan().sort("user", "timestamp").collect().height,
}
for line in sys.stdin:
    start, used = time.perf_counter(), time.process_time()
    result = pipelines[line.strip()]()
    seconds, processor = time.perf_counter() - start, time.process_time() - used
    print(f'{{"seconds": {seconds}, "processor": {processor}, "result": {result}}}', flush=True)
