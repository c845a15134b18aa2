"""Fits that end early: kills and cancels. The runner starts local-cluster[2,1,1024]."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from pyspark import inheritable_thread_target
from pyspark.ml.recommendation import ALS

from support import BLOCKS, executors, factors, processes, wait_for, workers

ENDLESS = {"rank": 8, "maxIter": 500_000, "seed": 1, **BLOCKS}


class Fit(threading.Thread):
    """A fit in its own thread, and its model or its error."""

    def __init__(self, spark, als, df, prepare=lambda: None):
        # With Connect each thread has its own session; in classic mode each thread has its own job group.
        connect = os.environ["FACTORFLOW_MODE"] == "connect"
        super().__init__(
            target=inheritable_thread_target(spark)(self.fit) if connect else self.fit, daemon=True
        )
        self.als, self.df, self.prepare = als, df, prepare
        self.model = self.error = None
        self.start()

    def fit(self):
        self.prepare()
        try:
            self.model = self.als.fit(self.df)
        except Exception as error:
            self.error = error


def training(spark, als, df, prepare=lambda: None):
    fit = Fit(spark, als, df, prepare)
    wait_for(lambda: workers() or fit.error, 90, "a worker")
    time.sleep(1)
    assert fit.error is None, repr(fit.error)
    return fit


def gone_within(seconds):
    start = time.monotonic()
    wait_for(lambda: not workers(), 20, "the end of the workers")
    took = time.monotonic() - start
    print(f"the workers were gone after {took:.2f} s")
    assert took < seconds


def test_interrupted_jobs_end_their_workers(spark, mode, ratings):
    if mode == "connect":
        fit = training(spark, ALS(**ENDLESS), ratings)
        spark.interruptAll()
    else:
        fit = training(
            spark,
            ALS(**ENDLESS),
            ratings,
            lambda: spark.sparkContext.setJobGroup("mine", "a fit", interruptOnCancel=False),
        )
        spark.sparkContext.cancelJobGroup("mine")
    gone_within(2)
    fit.join(60)
    assert fit.error is not None
    assert "cancel" in str(fit.error).lower()


def test_a_killed_worker_fails_the_fit_or_is_replaced(spark, ratings):
    als = ALS(rank=4, maxIter=3000, seed=1, **BLOCKS)
    expected = factors(als.fit(ratings))
    fit = training(spark, als, ratings)
    for pid in workers():
        os.kill(pid, signal.SIGKILL)
    fit.join(200)
    assert not fit.is_alive()
    if fit.error is None:
        assert factors(fit.model) == expected
    else:
        assert "FactorFlow" in str(fit.error), repr(fit.error)
    gone_within(3)


def test_a_killed_executor_is_replaced_by_one_that_continues(spark, mode, ratings, folder):
    if mode == "connect" or "cluster" not in os.environ["FACTORFLOW_MASTER"]:
        pytest.skip("it needs executors of its own")
    import factorflow_spark

    als = ALS(rank=4, maxIter=3000, checkpointInterval=100, seed=1, **BLOCKS)
    expected = factors(als.fit(ratings))
    spark.sparkContext.setCheckpointDir(str(folder))
    fit = training(spark, als, ratings)
    wait_for(lambda: list(folder.glob("*/factorflow-*/checkpoint-*")), 60, "a checkpoint")
    worker = workers()[0]
    executor = int(open(f"/proc/{worker}/stat").read().rsplit(")", 1)[1].split()[1])
    assert executor in executors()
    os.kill(executor, signal.SIGKILL)
    wait_for(lambda: worker not in workers(), 10, "the end of the executor's worker")
    fit.join(200)
    assert not fit.is_alive()
    assert fit.error is None, repr(fit.error)
    assert factors(fit.model) == expected
    found = factorflow_spark.summary()
    assert found["resumedFrom"] >= 100
    assert len(found["iterations"]) == 3000
    assert list(folder.glob("*/factorflow-*")) == []
    gone_within(3)


def test_a_killed_driver_leaves_nothing(mode, folder):
    if mode == "connect":
        pytest.skip("the same JVM stands behind it")
    script = """
import pathlib, sys
from support import base_conf, planted, start_session
spark = start_session("classic", "local[1]", base_conf(pathlib.Path(sys.argv[1])))
from pyspark.ml.recommendation import ALS
ALS(rank=8, maxIter=500_000).fit(spark.createDataFrame(planted(), "user int, item int, rating float"))
"""
    before = set(workers())
    driver = subprocess.Popen(
        [sys.executable, "-c", script, str(folder)],
        cwd=os.path.dirname(__file__),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    own = wait_for(lambda: set(workers()) - before, 90, "a worker")
    (jvm,) = processes("SparkSubmit", str(folder))
    os.kill(jvm, signal.SIGKILL)
    start = time.monotonic()
    wait_for(lambda: not own & set(workers()), 20, "the end of the worker")
    took = time.monotonic() - start
    driver.kill()
    driver.wait()
    print(f"the worker was gone after {took:.2f} s")
    assert took < 3
