"""Pipelines of bench/dataflow.ts with Polars' lazy scan: polars-engine.py FOLDER OUTPUT; a line of stdin names the next pipeline."""
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


pipelines = {"write": write, "count": count, "sum": add_up}
for line in sys.stdin:
    start, used = time.perf_counter(), time.process_time()
    result = pipelines[line.strip()]()
    seconds, processor = time.perf_counter() - start, time.process_time() - used
    print(f'{{"seconds": {seconds}, "processor": {processor}, "result": {result}}}', flush=True)
