"""Recommendations for all users, or all items, of one ALSModel: by Spark's own code and through the plugin's workers, on processors.

    npm run test:spark -- settings                                        makes the jar and PySpark's environment
    build/spark/python-4.3.0/bin/python bench/spark/recommend.py RATINGS [--rank 64] [--n 10] [--rounds 2] [--users 1.0] [--conf NAME=VALUE]

The model is trained on the ratings of a Parquet folder. In each round the lists are computed by both, in turn, and counted. With --users below 1 it
has factors of that share of the users alone, since Spark's own search of all of them can take long. At the end the lists are compared: an item that
is in one list alone is a tie if its prediction, as Spark computes it, differs from the list's last one by less than 1e-4 of it.
"""

import argparse
import time
from pathlib import Path

import factorflow_spark
from pyspark.ml.recommendation import ALS
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

ROOT = Path(__file__).resolve().parents[2]
options = argparse.ArgumentParser()
options.add_argument("ratings")
options.add_argument("--master", default="local[*]")
options.add_argument("--rank", type=int, default=64)
options.add_argument("--iterations", type=int, default=3)
options.add_argument("--n", type=int, default=10)
options.add_argument("--rounds", type=int, default=2)
options.add_argument("--users", type=float, default=1.0, help="share of the users")
options.add_argument("--node", default=str(ROOT / "node_modules/node/bin/node"))
options.add_argument("--main", default=str(ROOT / "dist/programs/cli/main.js"))
options.add_argument("--conf", action="append", default=[])
given = options.parse_args()

builder = (
    SparkSession.builder.master(given.master)
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.driver.memory", "6g")
    .config("spark.factorflow.device", "cpu")
    .config("spark.factorflow.node", given.node)
    .config("spark.factorflow.executable", given.main)
)
for setting in given.conf:
    builder = builder.config(*setting.split("=", 1))
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
conf = spark.sparkContext._jsc.sc().conf()

df = spark.read.parquet(given.ratings).select("user", "item", "rating")
if given.users < 1:
    df = df.where(f.pmod(f.hash("user"), f.lit(10_000)) < int(10_000 * given.users))
model = ALS(rank=given.rank, maxIter=given.iterations, regParam=0.05, seed=1).fit(df.cache())
users, items = (factors.cache().count() for factors in (model.userFactors, model.itemFactors))
print(f"Spark {spark.version}, {given.master}: {users:,} users, {items:,} items, rank {model.rank}", flush=True)


def lists(by, side):
    """The lists, computed once and cached, and the seconds that this took."""
    conf.set("spark.factorflow.recommend", str(by == "FactorFlow").lower())
    start = time.monotonic()
    found = getattr(model, f"recommendForAll{side}")(given.n).cache()
    found.count()
    return found, time.monotonic() - start


def compare(one, other, side):
    row, column = ("user", "item") if side == "Users" else ("item", "user")
    both = one.withColumnRenamed("recommendations", "ours").join(other, row).select(
        row,
        f.col("ours").getField(column).alias("ours"),
        f.col("recommendations").getField(column).alias("theirs"),
        f.element_at("recommendations", -1)["rating"].alias("last"),
    )
    apart = both.select(row, "last", f.explode(f.array_except("ours", "theirs")).alias(column)).cache()
    predicted = model.transform(apart)
    worse = predicted.where(f.col("prediction") < f.col("last") - 1e-4 * f.abs("last")).count()
    print(f"{side}: {both.count():,} lists; {apart.count():,} of their entries in one list alone, {worse} of them no ties")


for side in ("Users", "Items"):
    for turn in range(given.rounds):
        for by in ("FactorFlow", "Spark"):
            found, seconds = lists(by, side)
            print(f"{side}, round {turn + 1}, {by}: {seconds:.2f} s", flush=True)
            if turn + 1 < given.rounds:
                found.unpersist()
            elif by == "FactorFlow":
                ours = found
            else:
                compare(ours, found, side)
spark.stop()
