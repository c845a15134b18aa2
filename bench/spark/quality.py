"""Test errors of Spark's own ALS and of the plugin with the same parameters, on real ratings, in one session of Spark.

    npm run test:spark -- settings                                        makes the jar and PySpark's environment
    build/spark/python-4.3.0/bin/python bench/spark/quality.py DATA [--seeds 6] [--sets filmtrust,gowalla-lightgcn] [--iterations 10] [--reg 0.1]

DATA: a folder with a folder of Parquet files a set, with the columns user, item and rating. A seed is that of the split, 80 % for training, and
that of both fits. Explicit ratings: test RMSE with coldStartStrategy drop. Implicit data: NDCG@10 by Spark's RankingMetrics over all items that
the user has not in the training data, of at most 2,000 users. Prints a row a set: mean, least and greatest value of both, the ratio of the means,
the greatest difference at one seed, whether the plugin's mean is within Spark's values, and the mean seconds of a fit. `--scan` prints the plugin's
value at seed 0 by λ instead.
"""

import argparse
import json
import time
from pathlib import Path

import numpy
from pyspark.ml.evaluation import RegressionEvaluator
from pyspark.mllib.evaluation import RankingMetrics
from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).resolve().parents[2]
RANK, ASKED, LENGTH = 16, 2000, 10
OWN, PLUGIN = "org.apache.spark.ml.recommendation.ALS", "io.github.factorflow.spark.FactorFlowALS"

# Set: files, SQL expression of the rating, λ (for explicit ratings the best of those that --scan prints), and α of
# implicit data.
SETS = {
    "ml-latest-small": ("ratings", "rating", 0.2, None),
    "movietweetings-100k": ("ratings", "rating", 0.5, None),
    "douban-monti": ("*", "rating", 0.2, None),
    "filmtrust": ("ratings", "rating", 0.2, None),
    "bookcrossing": ("ratings", "rating", 0.5, None),
    "epinions-770k": ("ratings", "rating", 0.3, None),
    "steam-200k": ("play-hours", "ln(1 + rating)", 0.3, None),
    "citeulike-a": ("ratings", "1", 0.1, 10.0),
    "retailrocket": ("views", "1", 0.1, 10.0),
}

options = argparse.ArgumentParser()
options.add_argument("data", type=Path)
options.add_argument("--seeds", type=int, default=6)
options.add_argument("--sets", default=",".join(SETS))
options.add_argument("--iterations", type=int, default=10)
options.add_argument("--reg", type=float, help="λ for all sets")
options.add_argument("--scan", action="store_true")
options.add_argument("--jar", default=str(next(ROOT.glob("spark/target/factorflow-spark-[0-9].[0-9].[0-9].jar"), "")))
given = options.parse_args()

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars", given.jar)
    .config("spark.driver.memory", "2g")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.shuffle.partitions", "4")
    .config("spark.factorflow.node", str(ROOT / "node_modules/node/bin/node"))
    .config("spark.factorflow.executable", str(ROOT / "dist/programs/cli/main.js"))
    .config("spark.factorflow.device", "cpu")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")


def split(name, seed):
    """Training and test ratings of a set, both in Spark's cache. Repeated pairs are kept as they are."""
    files, rating, *_ = SETS[name]
    ratings = spark.read.parquet(str(given.data / name / f"{files}.parquet"))
    ratings = ratings.selectExpr("int(user) user", "int(item) item", f"float({rating}) rating")
    parts = [part.cache() for part in ratings.coalesce(2).randomSplit([0.8, 0.2], seed)]
    for part in parts:
        part.count()
    return parts


def fit(kind, train, seed, reg, alpha):
    """A trained ALSModel of the JVM, and the seconds of its fit."""
    made = spark.sparkContext._jvm
    for part in kind.split("."):
        made = getattr(made, part)
    als = made()
    als.setRank(RANK).setMaxIter(given.iterations).setRegParam(reg).setSeed(seed).setColdStartStrategy("drop")
    if alpha is not None:
        als.setImplicitPrefs(True).setAlpha(alpha)
    start = time.monotonic()
    model = als.fit(train._jdf)
    model.userFactors().count()
    return model, time.monotonic() - start


def rmse(model, test):
    predictions = DataFrame(model.transform(test._jdf), spark)
    return RegressionEvaluator(metricName="rmse", labelCol="rating").evaluate(predictions)


def factors(jdf):
    table = DataFrame(jdf, spark).toPandas()
    return table["id"].to_numpy(), numpy.array(table["features"].tolist(), numpy.float32)


def ndcg(model, train, test):
    """NDCG@10 of the users that the model knows with at least one test pair that it could recommend."""
    user_ids, users = factors(model.userFactors())
    item_ids, items = factors(model.itemFactors())
    seen = train.toPandas().groupby("user")["item"].agg(set)
    wanted = test.toPandas().groupby("user")["item"].agg(set)
    asked = [(user, wanted[user] & set(item_ids.tolist())) for user in sorted(wanted.index) if user in seen.index]
    asked = [(user, positives) for user, positives in asked if positives]
    if len(asked) > ASKED:
        asked = [asked[at] for at in sorted(numpy.random.default_rng(0).choice(len(asked), ASKED, replace=False))]
    row_of = {user: row for row, user in enumerate(user_ids.tolist())}
    lists = []
    for user, positives in asked:
        scores = items @ users[row_of[user]]
        scores[numpy.isin(item_ids, list(seen[user]))] = -numpy.inf
        best = numpy.argpartition(-scores, LENGTH)[:LENGTH]
        best = best[numpy.argsort(-scores[best], kind="stable")]
        lists.append(([float(item) for item in item_ids[best]], [float(item) for item in positives]))
    return RankingMetrics(spark.sparkContext.parallelize(lists, 2)).ndcgAt(LENGTH)


def errors(name, seed, kinds, reg):
    """The error and the seconds of each kind of fit."""
    alpha = SETS[name][3]
    train, test = split(name, seed)
    found = []
    for kind in kinds:
        model, seconds = fit(kind, train, seed, reg, alpha)
        found.append((rmse(model, test) if alpha is None else ndcg(model, train, test), seconds))
    train.unpersist()
    test.unpersist()
    return found


def spread(values):
    return {"value": round(float(numpy.mean(values)), 4), "range": [round(min(values), 4), round(max(values), 4)]}


def compare(name):
    """Prints the row of a set, as bench/results/spark.json has it."""
    reg, alpha = SETS[name][2:]
    reg = given.reg or reg
    found = numpy.array([errors(name, seed, (OWN, PLUGIN), reg) for seed in range(given.seeds)])
    own, ours = found[:, 0, 0], found[:, 1, 0]
    row = [name, "RMSE" if alpha is None else f"NDCG@{LENGTH}", reg, spread(own), spread(ours)]
    row += [round(ours.mean() / own.mean(), 4), round(float(numpy.abs(ours / own - 1).max()), 4)]
    row += ["yes" if own.min() <= ours.mean() <= own.max() else "no"]
    row += [round(float(seconds), 1) for seconds in found[:, :, 1].mean(axis=0)]
    print(json.dumps(row), flush=True)


print(f"Spark {spark.version}, rank {RANK}, {given.iterations} iterations, {given.seeds} seeds")
for one in given.sets.split(","):
    if given.scan:
        regs = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
        print(one, {reg: round(errors(one, 0, (PLUGIN,), reg)[0][0], 4) for reg in regs}, flush=True)
    else:
        compare(one)
spark.stop()
