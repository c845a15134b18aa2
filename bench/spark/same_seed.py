"""The difference of the factors of Spark's own ALS and of the plugin on one host, with the same seed.

    npm run test:spark -- settings                                        makes the jar and PySpark's environment
    build/spark/python-4.3.0/bin/python bench/spark/same_seed.py RATINGS

RATINGS: a Parquet file with user, item and rating, such as ml-latest-small. For each fit it prints the root mean square of the differences divided by that
of Spark's factors, in percent, for users and for items, and the same for predictions of the ratings.
"""

import sys
from pathlib import Path

import factorflow_spark  # noqa: F401 (replaces ALS)
from pyspark.ml.recommendation import ALS
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "spark/test"))
from support import plain  # noqa: E402

FITS = (
    {"rank": 10, "maxIter": 1},
    {"rank": 10, "maxIter": 10},
    {"rank": 10, "maxIter": 10, "implicitPrefs": True},
    {"rank": 10, "maxIter": 10, "nonnegative": True},
    {"rank": 64, "maxIter": 10},
)

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.factorflow.device", "cpu")
    .config("spark.factorflow.node", str(ROOT / "node_modules/node/bin/node"))
    .config("spark.factorflow.executable", str(ROOT / "dist/programs/cli/main.js"))
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
df = spark.read.parquet(sys.argv[1]).selectExpr("int(user) user", "int(item) item", "float(rating) rating").cache()
print(f"{df.count():,} ratings; Spark {spark.version}", flush=True)


def percent(pairs):
    """Of a DataFrame with the columns own and found."""
    gap = f.sum((f.col("own") - f.col("found")) ** 2) / f.sum(f.col("own") ** 2)
    return f"{100 * pairs.agg(f.sqrt(gap)).first()[0]:.3f} %"


def sides(own, found):
    for side in ("userFactors", "itemFactors"):
        both = getattr(own, side).withColumnRenamed("features", "theirs").join(getattr(found, side), "id")
        pairs = both.select(f.explode(f.arrays_zip("theirs", "features")).alias("one"))
        yield percent(pairs.select(f.col("one.theirs").alias("own"), f.col("one.features").alias("found")))


for params in FITS:
    als = ALS(**params)
    own, found = plain(als).fit(df), als.fit(df)
    predicted = found.setPredictionCol("found").transform(own.setPredictionCol("own").transform(df))
    users, items = sides(own, found)
    print(f"{params}: users {users}, items {items}, predictions {percent(predicted)}", flush=True)
spark.stop()
