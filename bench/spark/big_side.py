"""Trains a side that is larger than the workers' memory, on executors of this machine, and prints seconds and the peak memory of each process.

    npm run test:spark -- settings                                        makes the jar and PySpark's environment
    build/spark/python-4.3.0/bin/python bench/spark/big_side.py [--users 30000000] [--items 10000] [--rank 64] [--blocks 16] [--memory 4g] [--heap 1600m]

Each user has 2 to 5 ratings of items drawn by a hash function, generated inside Spark. Ratings and factors stay in Spark's storage on disk. The peak of a
process is VmHWM of Linux. Afterwards all factors are read and counted, and the RMSE of a part of the ratings is computed from the model.
"""

import argparse
import os
import threading
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, functions as f

ROOT = Path(__file__).resolve().parents[2]
options = argparse.ArgumentParser()
options.add_argument("--users", type=int, default=30_000_000)
options.add_argument("--items", type=int, default=10_000)
options.add_argument("--rank", type=int, default=64)
options.add_argument("--iterations", type=int, default=1)
options.add_argument("--blocks", type=int, default=16, help="blocks of each side, spark.factorflow.workers")
options.add_argument("--executors", type=int, default=2)
options.add_argument("--memory", default="4g", help="of each worker")
options.add_argument("--heap", default="1600m", help="of each executor")
options.add_argument("--one-block", action="store_true", help="take user ids of block 0 alone")
options.add_argument("--jar", default=str(next(ROOT.glob("spark/target/factorflow-spark-*.jar"), "")))
options.add_argument("--node", default=str(ROOT / "node_modules/node/bin/node"))
options.add_argument("--main", default=str(ROOT / "dist/programs/cli/main.js"))
options.add_argument("--conf", action="append", default=[])
given = options.parse_args()

heap = int(given.heap.removesuffix("m"))
builder = (
    SparkSession.builder.master(f"local-cluster[{given.executors},1,{heap}]")
    .config("spark.jars", given.jar)
    .config("spark.executor.memory", given.heap)
    .config("spark.driver.memory", "1g")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.network.timeout", "600s")
    .config("spark.sql.ansi.enabled", "false")
    .config("spark.factorflow.node", given.node)
    .config("spark.factorflow.executable", given.main)
    .config("spark.factorflow.device", "cpu")
    .config("spark.factorflow.workers", str(given.blocks))
    .config("spark.factorflow.memory", given.memory)
)
for setting in given.conf:
    builder = builder.config(*setting.split("=", 1))
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("WARN")
application = spark.sparkContext.applicationId.encode()
driver = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
peaks = {}


def watch():
    """Keeps the peak memory of the driver, its executors and their workers."""
    while True:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                command = (process / "cmdline").read_bytes()
                status = (process / "status").read_text()
                times = (process / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            mine = application in command and b"CoarseGrainedExecutorBackend" in command
            parent = int(status.split("PPid:\t")[1].split("\n")[0])
            name = "driver" if int(process.name) == driver else "executor" if mine else ""
            if given.main.encode() in command and ("executor", parent) in peaks:
                name = "worker"
            if name and "VmHWM" in status:
                mib = int(status.split("VmHWM:")[1].split()[0]) / 1024
                peaks[(name, int(process.name))] = (mib, (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK"))
        time.sleep(1)


def timed(name, work):
    start = time.monotonic()
    found = work()
    print(f"{name}: {time.monotonic() - start:.0f} s", flush=True)
    return found


def ratings():
    """2 to 5 ratings a user, from 1 to 5."""
    users = spark.range(given.users * (given.blocks if given.one_block else 1), numPartitions=64)
    if given.one_block:
        # RatingEncoder.blockOf
        mixed = f.expr("int(id) * int(-1640531535)")
        users = users.where(f.pmod(mixed.bitwiseXOR(f.shiftrightunsigned(mixed, 15)), f.lit(given.blocks)) == 0)
    users = users.withColumn("n", 2 + f.pmod(f.hash("id"), f.lit(4)))
    drawn = users.select("id", f.explode(f.sequence(f.lit(1), "n")).alias("k"))
    item = f.pmod(f.xxhash64("id", "k"), f.lit(given.items))
    rating = 3 + 2 * f.sin(f.col("user") * 0.001 + f.col("item") * 0.01)
    return drawn.select(f.col("id").cast("int").alias("user"), item.cast("int").alias("item")).select(
        "user", "item", rating.cast("float").alias("rating")
    )


threading.Thread(target=watch, daemon=True).start()
jvm = spark.sparkContext._jvm
als = jvm.io.github.factorflow.spark.FactorFlowALS()
als.setRank(given.rank).setMaxIter(given.iterations).setRegParam(0.05).setSeed(1)
als.setIntermediateStorageLevel("DISK_ONLY").setFinalStorageLevel("DISK_ONLY")
df = ratings()
asked = f"{given.users:,} users, rank {given.rank}, {given.iterations} iterations"
model = timed(f"fit of {asked}", lambda: als.fit(df._jdf))
print(jvm.io.github.factorflow.spark.FactorFlowALS.lastSummary().get().toString())
print(f"{timed('reading the users', lambda: model.userFactors().count()):,} users' factors")
some = df.where("user % 10007 = 0").cache()
predicted = model.transform(some._jdf)
error = DataFrame(predicted, spark).select(f.count("*"), f.sqrt(f.avg((f.col("prediction") - f.col("rating")) ** 2)))
count, rmse = error.first()
print(f"RMSE of {count:,} ratings: {rmse:.4f}")
for (name, _), (mib, seconds) in sorted(peaks.items()):
    print(f"{name}: {mib:.0f} MiB at most, {seconds:.0f} s of a processor")
print(f"load {os.getloadavg()[0]:.1f}")
spark.stop()
