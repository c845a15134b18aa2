"""ALS through the plugin for Apache Spark beside Spark's own, on the ratings of a Parquet folder, in one local session.

    python bench/spark.py RATINGS JAR [--node NODE --main dist/programs/cli/main.js] [--rank 64] [--iterations 3] [--workers 1 --exchange auto] [--own]

Prints, for each fit: seconds of wall time; CPU seconds of the JVM, which does not hold the worker's; and the plugin's counters. `--own` adds Spark's
own ALS, which takes minutes. Needs PySpark 4; the jar comes from `mvn -f spark/pom.xml package`.
"""

import argparse
import json
import os
import time
import urllib.request

from pyspark.sql import SparkSession

options = argparse.ArgumentParser()
options.add_argument("ratings")
options.add_argument("jar")
options.add_argument("--node", default="node")
options.add_argument("--main", default="dist/programs/cli/main.js")
options.add_argument("--master", default="local[2]")
options.add_argument("--rank", type=int, default=64)
options.add_argument("--iterations", type=int, default=3)
options.add_argument("--workers", default="1")
options.add_argument("--exchange", default="auto")
options.add_argument("--own", action="store_true")
given = options.parse_args()

spark = (
    SparkSession.builder.master(given.master)
    .config("spark.jars", given.jar)
    .config("spark.driver.memory", "6g")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.factorflow.node", given.node)
    .config("spark.factorflow.executable", given.main)
    .config("spark.factorflow.workers", given.workers)
    .config("spark.factorflow.exchange", given.exchange)
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
jvm = spark.sparkContext._jvm
pid = jvm.java.lang.ProcessHandle.current().pid()
df = spark.read.parquet(given.ratings).select("user", "item", "rating").cache()
rows = df.count()
print(f"{rows:,} ratings in the cache")


def cpu_seconds():
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def counters():
    base = f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{spark.sparkContext.applicationId}/stages?status=complete"
    stages = json.load(urllib.request.urlopen(base))
    found = [one for stage in stages for one in stage["accumulatorUpdates"] if one["name"].startswith("FactorFlow")]
    newest = max((one["id"] for one in found), default=0)
    return {one["name"][12:]: int(one["value"]) for one in found if one["id"] > newest - 5}


def fit(name):
    made = jvm
    for part in name.split("."):
        made = getattr(made, part)
    als = made()
    als.setRank(given.rank).setMaxIter(given.iterations).setRegParam(0.05).setSeed(1)
    cpu, start = cpu_seconds(), time.monotonic()
    model = als.fit(df._jdf)
    wall, used = time.monotonic() - start, cpu_seconds() - cpu
    known = counters() if "factorflow" in name else {}
    rate = f", handed over at {known['ratings'] / known['ms of handing over'] / 1000:.2f} M ratings/s" if known.get("ms of handing over") else ""
    print(f"{name.split('.')[-1]} rank {given.rank}, {given.iterations} iterations: {wall:.1f} s, JVM {used:.1f} CPU s{rate} {known}", flush=True)
    return model


for _ in range(2):
    fit("io.github.factorflow.spark.FactorFlowALS")
if given.own:
    fit("org.apache.spark.ml.recommendation.ALS")
spark.stop()
