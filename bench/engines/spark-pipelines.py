"""Pipelines of bench/cases/dataflow.ts that need all rows, in Spark.

spark-pipelines.py FOLDER; each line of stdin names the next pipeline.
"""
import sys
import time

from pyspark.sql import SparkSession, functions as F

folder = sys.argv[1]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.driver.memory", "6g")
    .config("spark.sql.shuffle.partitions", "8")
    .config("spark.ui.enabled", "false")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")


def scan():
    return spark.read.parquet(folder)


def grouped(*keys):
    return scan().groupBy(*keys).agg(F.count("*").alias("n"), F.avg("rating").alias("mean"))


pipelines = {
    "items": lambda: grouped("item"),
    "users": lambda: grouped("user"),
    "pairs": lambda: grouped("user", "item"),
    "join": lambda: scan().join(spark.read.parquet(f"{folder}-items.parquet"), "item").select("user", "weight", "rating"),
    "distinct": lambda: scan().select("user", "item").distinct(),
    "top": lambda: scan().groupBy("item").count().orderBy(F.desc("count"), "item").limit(100),
    "sort": lambda: scan().orderBy("user", "timestamp"),
}
for line in sys.stdin:
    start = time.perf_counter()
    pipelines[line.strip()]().write.format("noop").mode("overwrite").save()
    print(f'{{"seconds": {time.perf_counter() - start}, "processor": 0, "result": null}}', flush=True)
