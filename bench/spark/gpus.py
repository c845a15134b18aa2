"""Fits and recommendations of classic PySpark on GPU executors, compared with the processor of the same machine.

    python3 bench/spark/gpus.py DATA [--master spark://host:7077] [--devices auto,cpu] [--hosts 1] [--rank 64] [--iterations 10] [--conf NAME=VALUE]

DATA: a folder of `factorflow generate`, with train/ and test/. Each fit uses one of --devices, a value of spark.factorflow.device, which is read at
each fit. With a `spark://` master, executors have one GPU each, and their workers need spark.worker.resource.gpu.*. After each fit it prints the
devices and kernels of its summary, seconds, the test RMSE of Spark's own `transform`, and the seconds of `recommendForAllUsers(10)`, whose lists
are compared with those of the fit before. The first fit has one iteration: it is for JVMs to compile.
"""

import argparse
import json
import time

import factorflow_spark
from pyspark.ml.recommendation import ALS
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

options = argparse.ArgumentParser()
options.add_argument("data")
options.add_argument("--master", default="local[*]")
options.add_argument("--devices", default="auto,cpu")
options.add_argument("--hosts", default="1")
options.add_argument("--rank", type=int, default=64)
options.add_argument("--iterations", type=int, default=10)
options.add_argument("--conf", action="append", default=[])
given = options.parse_args()

builder = SparkSession.builder.master(given.master).config("spark.ui.enabled", "false")
builder = builder.config("spark.ui.showConsoleProgress", "false")
if given.master.startswith("spark:"):
    builder = builder.config("spark.executor.resource.gpu.amount", "1").config("spark.task.resource.gpu.amount", "1")
for setting in given.conf:
    builder = builder.config(*setting.split("=", 1))
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("WARN")
conf = spark.sparkContext._jsc.sc().conf()
conf.set("spark.factorflow.workers", given.hosts)


def ratings(part):
    df = spark.read.parquet(f"{given.data}/{part}").select("user", "item", "rating").cache()
    print(f"{df.count():,} ratings of {part} in the cache", flush=True)
    return df


print(f"Spark {spark.version}, {given.master}, {given.hosts} hosts, rank {given.rank}", flush=True)
train, test = ratings("train"), ratings("test")


def fit(device, iterations):
    conf.set("spark.factorflow.device", device)
    als = ALS(rank=given.rank, maxIter=iterations, regParam=0.05, seed=1, coldStartStrategy="drop")
    start = time.monotonic()
    model = als.fit(train)
    return model, time.monotonic() - start


def report(device, model, wall):
    error = f.col("prediction") - f.col("rating")
    rmse = model.transform(test).agg(f.sqrt(f.avg(error * error))).first()[0]
    known = factorflow_spark.summary()
    seconds = [one["seconds"] for one in known["iterations"]]
    print(
        f"{device}: {', '.join(known['devices'])}; {'; '.join(known['kernels'])}\n"
        f"{device}: fit {wall:.2f} s, iterations {sum(seconds):.3f} s, last {seconds[-1]:.3f} s, test RMSE {rmse:.5f}",
        flush=True,
    )
    print(json.dumps(known), flush=True)


def recommend(device, model):
    start = time.monotonic()
    lists = model.recommendForAllUsers(10)
    lists = lists.selectExpr("user", "transform(recommendations, one -> one.item) items").cache()
    users = lists.count()
    print(f"{device}: 10 items for each of {users:,} users: {time.monotonic() - start:.2f} s", flush=True)
    return lists


for number, device in enumerate(given.devices.split(",")):
    if number == 0:
        fit(device, 1)
    model, wall = fit(device, given.iterations)
    report(device, model, wall)
    lists = recommend(device, model)
    if number > 0:
        both = lists.join(before.withColumnRenamed("items", "others"), "user")
        shared = both.agg(f.avg(f.size(f.array_intersect("items", "others")))).first()[0]
        print(f"{device}: {shared:.2f} of 10 items are those of the fit before", flush=True)
    before = lists
spark.stop()
