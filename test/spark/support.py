"""Helpers of the tests: sessions, ratings, and a list of processes."""

import contextlib
import json
import math
import os
import random
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = "io.github.factorflow.spark.FactorFlowALS"
# Few partitions of factors, because each is one task in every test.
BLOCKS = {"numUserBlocks": 2, "numItemBlocks": 2}
# Of the fits on several hosts.
HOST_PARAMS = {"rank": 5, "maxIter": 6, "regParam": 0.05, "seed": 3, **BLOCKS}
# Identifies this run: on its executors' command lines, and in the environment of all its processes.
RUN = os.environ.setdefault("FACTORFLOW_TEST_RUN", f"factorflow.test.run={os.getpid()}")
MOVIES = ROOT / "examples/data/movietweetings-100k/ratings.parquet"


def base_conf(folder):
    """
    Settings for tests. The executable appends a line to the file `started` for each worker, and then runs
    FactorFlow's.
    """
    executable = program(
        folder / "factorflow",
        f'#!/bin/sh\necho "$@" >> {folder}/started\n'
        f'exec {os.environ["FACTORFLOW_NODE"]} {os.environ["FACTORFLOW_MAIN"]} "$@"\n',
    )
    return {
        "spark.app.name": "factorflow-test",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder),
        "spark.executor.extraJavaOptions": f"-D{RUN}",
        "spark.factorflow.executable": executable,
        "spark.factorflow.device": "cpu",
        "spark.factorflow.cores": "1",
        # On executors also the small requests of tests.
        "spark.factorflow.recommend": "workers" if "cluster" in os.environ.get("FACTORFLOW_MASTER", "") else "true",
    }


def program(path, text):
    """An executable file."""
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def on_the_processor(folder, before="", after=""):
    """An executable that trains on the CPU for any given device, between two shell commands."""
    worker = (
        f"{os.environ['FACTORFLOW_NODE']} {os.environ['FACTORFLOW_MAIN']} worker --device cpu --workers 1"
    )
    return program(folder / "other", f"#!/bin/sh\n{before}\n{worker} <&0\n{after}\n")


@contextlib.contextmanager
def settings(spark, **changed):
    """Sets an application's settings; they are read at each fit. `a__b` means a.b, None means not set."""
    conf = spark.sparkContext._jsc.sc().conf()
    names = [name.replace("__", ".") for name in changed]
    before = [conf.get(name, None) for name in names]
    change(conf, names, changed.values())
    try:
        yield
    finally:
        change(conf, names, before)


def change(conf, names, values):
    for name, value in zip(names, values):
        conf.remove(name) if value is None else conf.set(name, value)


def start_session(mode, master, conf):
    from pyspark.sql import SparkSession

    if mode == "classic":
        import factorflow_spark  # noqa: F401: it brings the jar and maps ALS

        builder = SparkSession.builder.master(master)
    else:
        jar = os.environ["FACTORFLOW_JAR"]
        builder = SparkSession.builder.remote(master).config("spark.jars", jar)
        builder = builder.config(
            "spark.connect.ml.backend.classes", "io.github.factorflow.spark.FactorFlowPlugin"
        )
    for name, value in conf.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def other_version():
    """A JavaScript program that sends the greeting of another FactorFlow version, and then waits."""
    hello = json.dumps({"type": "hello", "protocol": 1, "version": "0.0.9", "node": "24.0.0", "pid": 1})
    return f"""const header = Buffer.from({json.dumps(hello)});
const head = Buffer.alloc(8);
head.writeUInt32LE(header.length, 0);
process.stdout.write(Buffer.concat([head, header]));
process.stdin.resume();
"""


def planted(users=60, items=40, each=15, seed=7):
    draw = random.Random(seed)
    return [
        (u * 3, v * 2 + 1, float(3 + math.sin(u) * math.cos(v) + draw.uniform(-0.2, 0.2)))
        for u in range(users)
        for v in sorted(draw.sample(range(items), each))
    ]


def rmse(model, df):
    from pyspark.sql import functions as f

    error = f.col("prediction") - f.col("rating")
    return math.sqrt(model.transform(df).where("not isnan(prediction)").agg(f.avg(error * error)).first()[0])


def processes(*marks):
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            line = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if all(mark.encode() in line for mark in marks) and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found


def workers():
    return [
        pid
        for pid in processes(os.environ["FACTORFLOW_MAIN"] + "\0worker")
        if RUN.encode() in environment(pid)
    ]


def environment(pid):
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def executors():
    return processes(RUN, "CoarseGrainedExecutorBackend", "java")


def wait_for(look, seconds, what):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what} did not come within {seconds} s")


def factors(model):
    return [
        {row.id: list(row.features) for row in side.collect()}
        for side in (model.userFactors, model.itemFactors)
    ]


def on_hosts(spark, hosts, fit, exchange="auto", precision="float32", **more):
    """A fit with the settings of several hosts, from the start that they have: one host could have Spark's."""
    with settings(
        spark,
        spark__factorflow__param__start="spark",
        spark__factorflow__workers=str(hosts),
        spark__factorflow__exchange=exchange,
        spark__factorflow__exchangePrecision=precision,
        **more,
    ):
        return fit()


def assert_close(one, other, most=1e-4):
    """Compares the factors of both sides, which `factors` returns."""
    for side, found in zip(one, other):
        assert side.keys() == found.keys()
        assert max(abs(a - b) for key in side for a, b in zip(side[key], found[key])) < most


class plain:
    """Spark's own ALS with the parameters of another estimator."""

    def __init__(self, als):
        self.als = als

    def fit(self, df):
        from pyspark import SparkContext
        from pyspark.ml.recommendation import ALSModel

        als = self.als.copy()
        als._java_obj = SparkContext._active_spark_context._jvm.org.apache.spark.ml.recommendation.ALS(
            als.uid
        )
        als._transfer_params_to_java()
        assert als._java_obj.getClass().getName() != OURS
        return als._copyValues(ALSModel(als._java_obj.fit(df._jdf)))
