"""
Many hosts, some of which fail: killed executors, stopped workers, executors that cannot run a worker. The
runner starts local-cluster[3,1,2048].
"""

import os
import signal
import threading

import pytest
from pyspark.ml.recommendation import ALS

from support import (
    BLOCKS,
    HOST_PARAMS,
    assert_close,
    executors,
    factors,
    on_hosts,
    other_version,
    program,
    wait_for,
    workers,
)


def jobs(tracker):
    return tracker.getActiveJobsIds()


def describe(spark, job):
    store = spark.sparkContext._jsc.sc().statusStore()
    try:
        found = store.job(job).description()
        return found.get() if found.isDefined() else None
    except Exception:
        return None


@pytest.mark.parametrize(
    ("exchange", "precision"), [("broadcast", "float32"), ("shuffle", "float16"), ("equations", "float32")]
)
def test_an_executor_killed_between_iterations_changes_nothing(spark, ratings, exchange, precision):
    iterations = 30 if exchange == "equations" else 60
    als = ALS(rank=5, maxIter=iterations, regParam=0.05, seed=3, **BLOCKS)
    # with 16 bits two hosts give the factors of three
    hosts = 1 if precision == "float32" else 2
    expected = factors(on_hosts(spark, hosts, lambda: als.fit(ratings), "shuffle", precision))
    done = {}

    def fit():
        done["factors"] = factors(on_hosts(spark, 3, lambda: als.fit(ratings), exchange, precision))

    training = threading.Thread(target=fit)
    training.start()
    tracker = spark.sparkContext.statusTracker()
    # Some stages of the iterations have run.
    wait_for(
        lambda: (
            [job for job in jobs(tracker) if "iteration" in (describe(spark, job) or "")]
            and len(workers()) >= 1
        ),
        60,
        "an iteration",
    )
    os.kill(executors()[0], signal.SIGKILL)
    training.join(240)
    if exchange == "equations":
        assert_close(expected, done["factors"])
    else:
        assert done["factors"] == expected
    wait_for(lambda: not workers(), 10, "the end of the workers")


def test_a_stopped_worker_is_replaced(spark, ratings):
    als = ALS(rank=5, maxIter=60, regParam=0.05, seed=3, **BLOCKS)
    expected = factors(on_hosts(spark, 1, lambda: als.fit(ratings)))
    done = {}

    def fit():
        done["factors"] = factors(
            on_hosts(spark, 3, lambda: als.fit(ratings), spark__factorflow__timeout="5s")
        )

    training = threading.Thread(target=fit, daemon=True)
    training.start()
    tracker = spark.sparkContext.statusTracker()
    wait_for(
        lambda: [job for job in jobs(tracker) if "iteration" in (describe(spark, job) or "")] and workers(),
        60,
        "an iteration",
    )
    stopped = workers()[0]
    os.kill(stopped, signal.SIGSTOP)
    wait_for(lambda: stopped not in workers(), 30, "the end of the stopped worker")
    training.join(120)
    assert done.get("factors") == expected
    wait_for(lambda: not workers(), 10, "the end of the workers")


def fit_by(spark, hosts, ratings, executable, exchange="auto"):
    """A fit whose workers are started by another executable."""
    return on_hosts(
        spark,
        hosts,
        lambda: ALS(**HOST_PARAMS).fit(ratings),
        exchange,
        spark__factorflow__executable=executable,
    )


def on_first_executor(folder, worker):
    """
    An executable that runs another program on the executor that starts it first, and FactorFlow on all
    others.
    """
    node, main = os.environ["FACTORFLOW_NODE"], os.environ["FACTORFLOW_MAIN"]
    # Each executor has its own working folder.
    mark = f'mkdir {folder}/unfit 2>/dev/null && echo "$PWD" > {folder}/unfit/folder'
    return program(
        folder / "mixed",
        f'#!/bin/sh\n{mark}\nif [ "$(cat {folder}/unfit/folder)" = "$PWD" ]; then {worker}; fi\n'
        f'exec {node} {main} "$@"\n',
    )


BAD_HOSTS = {
    "an old Node": (
        "echo 'factorflow needs Node 22.12 or newer, and this is 20.1.0' >&2; exit 2",
        "22.12 or newer",
    ),
    "no disk": (
        f"exec {os.environ['FACTORFLOW_NODE']} {os.environ['FACTORFLOW_MAIN']} worker "
        "--device cpu --workers 1 --spill-dir /dev/null",
        "is not a folder",
    ),
}


def test_another_version_on_one_executor_is_named_or_goes_unused(spark, ratings, one_host, folder):
    """
    Spark runs a task again: the job succeeds if another executor runs it, else its error names the version.
    """
    old = program(folder / "old.js", other_version())
    executable = on_first_executor(folder, f"exec {os.environ['FACTORFLOW_NODE']} {old}")
    try:
        found = factors(fit_by(spark, 3, ratings, executable))
    except Exception as error:
        assert "FactorFlow 0.0.9" in str(error)
        assert "Put the same version on all hosts" in str(error)
    else:
        assert found == one_host
    assert (folder / "unfit/folder").exists()
    wait_for(lambda: not workers(), 10, "the end of the workers")


@pytest.mark.parametrize(("worker", "reason"), BAD_HOSTS.values(), ids=BAD_HOSTS)
@pytest.mark.parametrize("hosts", [1, 3])
def test_an_executor_that_cannot_run_a_worker_is_left_out(
    spark, ratings, one_host, folder, capfd, hosts, worker, reason
):
    """Its blocks are solved on other executors, and the log names its host and the reason."""
    executable = on_first_executor(folder, worker)
    assert factors(fit_by(spark, hosts, ratings, executable)) == one_host
    number = (folder / "unfit/folder").read_text().strip().rsplit("/", 1)[1]
    lines = [line for line in capfd.readouterr().err.splitlines() if f"Executor {number} on" in line]
    # Spark itself may have run the task again elsewhere, without a second attempt of FactorFlow.
    assert all(reason in line for line in lines if "trains on the other executors" in line)
    wait_for(lambda: not workers(), 10, "the end of the workers")


def test_without_a_fit_executor_the_error_names_host_and_reason(spark, ratings, folder):
    executable = program(
        folder / "old",
        "#!/bin/sh\necho 'factorflow needs Node 22.12 or newer, and this is 20.1.0' >&2\nexit 2\n",
    )
    with pytest.raises(Exception, match=r"Executor \d+ on \S+ cannot run FactorFlow: .*22.12 or newer"):
        fit_by(spark, 3, ratings, executable)


def test_an_unfit_executor_sends_whole_blocks(spark, ratings, one_host, folder):
    """With a shuffle, tasks that send rows may run on an executor without a worker."""
    worker, _ = BAD_HOSTS["an old Node"]
    executable = on_first_executor(folder, worker)
    assert factors(fit_by(spark, 3, ratings, executable, "shuffle")) == one_host


@pytest.mark.parametrize("exchange", ["broadcast", "shuffle"])
def test_executors_killed_in_the_last_iteration_and_after_the_fit_change_nothing(
    spark, ratings, one_host, exchange
):
    """Workers that solve blocks again after the fit end too, some seconds after their last task."""
    done = {}

    def fit():
        done["model"] = on_hosts(spark, 3, lambda: ALS(**HOST_PARAMS).fit(ratings), exchange)

    training = threading.Thread(target=fit)
    training.start()
    tracker = spark.sparkContext.statusTracker()
    last = f"iteration {HOST_PARAMS['maxIter']} of {HOST_PARAMS['maxIter']}, users"
    # If the job ends before it is seen, the first executor is killed after the fit, too.
    wait_for(
        lambda: not training.is_alive() or any(last in (describe(spark, job) or "") for job in jobs(tracker)),
        120,
        "the last iteration",
    )
    os.kill(executors()[0], signal.SIGKILL)
    training.join(240)
    wait_for(executors, 60, "another executor")
    os.kill(executors()[0], signal.SIGKILL)
    assert factors(done["model"]) == one_host
    wait_for(lambda: not workers(), 10, "the end of the workers")


def test_more_blocks_than_executors_have_several_each(spark, ratings, one_host):
    assert factors(on_hosts(spark, 7, lambda: ALS(**HOST_PARAMS).fit(ratings), "shuffle")) == one_host
    wait_for(lambda: not workers(), 10, "the end of the workers")
