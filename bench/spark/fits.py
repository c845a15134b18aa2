"""ALS on the ratings of a Parquet folder, in one session of Spark on this machine: Spark's own, through the plugin, and FactorFlow alone.

    npm run test:spark -- settings                                        makes the jar and PySpark's environment
    build/spark/python-4.3.0/bin/python bench/spark/fits.py RATINGS [--fits alone:3,plugin:3,own:3] [--rank 64] [--hosts 2] [--conf NAME=VALUE]

Each fit is a kind and its iterations. `own` is Spark's ALS, which takes minutes on some millions of ratings; `plugin` is FactorFlowALS on the same
DataFrame; `broadcast`, `shuffle`, `equations` and `auto` are the same with that exchange on --hosts hosts, for example the executors of --master
local-cluster[2,1,2048] on this machine. `alone` is the command `train` on an Arrow file of that DataFrame, with Spark's model and start. Prints wall
seconds and CPU seconds, of the driver's JVM and of FactorFlow's process, and the rate at which ratings are sent to the worker. With
`--fits shuffle:12,shuffle:2,shuffle:12` the first fit is for JVMs to compile.
"""

import argparse
import json
import os
import resource
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
options = argparse.ArgumentParser()
options.add_argument("ratings")
options.add_argument("--fits", default="alone:3,plugin:3")
options.add_argument("--jar", default=str(next(ROOT.glob("spark/target/factorflow-spark-*.jar"), "")))
options.add_argument("--node", default=str(ROOT / "node_modules/node/bin/node"))
options.add_argument("--main", default=str(ROOT / "dist/programs/cli/main.js"))
options.add_argument("--master", default="local[2]")
options.add_argument("--rank", type=int, default=64)
options.add_argument("--hosts", default="2")
options.add_argument("--conf", action="append", default=[])
given = options.parse_args()
fits = [(kind, int(iterations)) for kind, iterations in (one.split(":") for one in given.fits.split(","))]
TICKS = os.sysconf("SC_CLK_TCK")
REG, SEED = 0.05, 1

builder = (
    SparkSession.builder.master(given.master)
    .config("spark.jars", given.jar)
    .config("spark.driver.memory", "6g")
    .config("spark.driver.maxResultSize", "3g")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.factorflow.node", given.node)
    .config("spark.factorflow.executable", given.main)
    .config("spark.factorflow.device", "cpu")
)
for setting in given.conf:
    builder = builder.config(*setting.split("=", 1))
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
jvm = spark.sparkContext._jvm
pid = jvm.java.lang.ProcessHandle.current().pid()
df = spark.read.parquet(given.ratings).select("user", "item", "rating").cache()
rows = df.count()
print(f"{rows:,} ratings in the cache; Spark {spark.version}, {given.master}, rank {given.rank}", flush=True)


def jvm_seconds():
    """CPU seconds of the JVM, and of the processes that it has started and that have ended."""
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    user, system, its_user, its_system = (int(field) / TICKS for field in fields[11:15])
    return user + system, its_user + its_system


def stages_done():
    address = f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{spark.sparkContext.applicationId}"
    base = f"{address}/stages?status=complete"
    return json.load(urllib.request.urlopen(base))


def shuffled():
    """Bytes that were read from shuffles so far, of the stages that the UI keeps."""
    return sum(stage["shuffleReadBytes"] for stage in stages_done())


def counters():
    stages = stages_done()
    found = [one for stage in stages for one in stage["accumulatorUpdates"] if one["name"].startswith("FactorFlow")]
    newest = max((one["id"] for one in found), default=0)
    return {one["name"][12:]: int(one["value"]) for one in found if one["id"] > newest - 5}


def by_spark(name, iterations, hosts="1", exchange="auto"):
    conf = spark.sparkContext._jsc.sc().conf()
    conf.set("spark.factorflow.workers", hosts)
    conf.set("spark.factorflow.exchange", exchange)
    made = jvm
    for part in name.split("."):
        made = getattr(made, part)
    als = made()
    als.setRank(given.rank).setMaxIter(iterations).setRegParam(REG).setSeed(SEED)
    read = shuffled()
    before, start = jvm_seconds(), time.monotonic()
    als.fit(df._jdf)
    wall, after = time.monotonic() - start, jvm_seconds()
    known = counters() if "factorflow" in name else {}
    rate = ""
    if known.get("ms of handing over") and "ratings" in known:
        rate = f"; handed over at {known['ratings'] / known['ms of handing over'] / 1000:.2f} M ratings/s {known}"
    cpu = f"CPU s: JVM {after[0] - before[0]:.1f}, FactorFlow {after[1] - before[1]:.1f}"
    return wall, f"{cpu}; shuffled {(shuffled() - read) / 1e6:.1f} MB{rate}"


def alone(iterations, folder):
    import pyarrow

    stream = folder / "ratings.arrows"
    if not stream.exists():
        table = df.toArrow()
        with pyarrow.ipc.new_stream(stream, table.schema) as out:
            out.write_table(table, 1 << 16)
        del table
    command = [given.node, given.main, "train", stream, "--model-dir", folder / "model", "--force"]
    command += ["--no-biases", "--start", "spark", "--device", "cpu", "--quiet"]
    command += ["--rank", str(given.rank), "--max-iter", str(iterations), "--reg-param", str(REG), "--seed", str(SEED)]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, f"CPU s: FactorFlow {after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.1f}"


with tempfile.TemporaryDirectory() as scratch:
    for kind, iterations in fits:
        if kind == "alone":
            wall, more = alone(iterations, Path(scratch))
        elif kind == "own":
            wall, more = by_spark("org.apache.spark.ml.recommendation.ALS", iterations)
        elif kind == "plugin":
            wall, more = by_spark("io.github.factorflow.spark.FactorFlowALS", iterations)
        else:
            wall, more = by_spark("io.github.factorflow.spark.FactorFlowALS", iterations, given.hosts, kind)
        print(f"{kind}, {iterations} iterations: {wall:.1f} s. {more}", flush=True)
spark.stop()
