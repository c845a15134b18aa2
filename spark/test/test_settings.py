"""Settings of an application, which each need one of their own: a fake GPU, workers that cannot be started, memory that does not suffice."""

import json
import os
import stat
import subprocess
import sys

import pytest

from support import base_conf, workers

SCRIPT = """
import json, os, sys
from support import planted, start_session
master, conf = json.loads(sys.argv[1])
spark = start_session("classic", master, conf)
from pyspark.ml.recommendation import ALS
try:
    model = ALS(rank=3, maxIter=2, seed=1).fit(spark.createDataFrame(planted(), "user int, item int, rating float"))
    told = {"users": model.userFactors.count(), "error": None}
except Exception as error:
    told = {"users": None, "error": str(error)}
spark.stop()
print("TOLD" + json.dumps(told))
"""


def fit(folder, master="local[1]", **settings):
    conf = {**base_conf(folder), **{name.replace("__", "."): value for name, value in settings.items()}}
    conf = {name: value for name, value in conf.items() if value is not None}
    run = subprocess.run([sys.executable, "-c", SCRIPT, json.dumps([master, conf])], cwd=os.path.dirname(__file__), capture_output=True, text=True, timeout=200)
    told = [line for line in run.stdout.splitlines() if line.startswith("TOLD")]
    assert told, run.stderr[-3000:]
    assert workers() == []
    return json.loads(told[0][4:])


def program(path, text):
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.parametrize("device", ["auto", "gpu"])
def test_the_index_of_a_gpu_becomes_the_workers_device(folder, device):
    discovery = program(folder / "gpus.sh", '#!/bin/sh\necho \'{"name": "gpu", "addresses": ["3"]}\'\n')
    seen = folder / "seen"
    node, main = os.environ["FACTORFLOW_NODE"], os.environ["FACTORFLOW_MAIN"]
    # Notes its flags, and trains on the processor.
    wrapper = program(folder / "other", f'#!/bin/sh\necho "$@" >> {seen}\nexec {node} {main} worker --device cpu --workers 1\n')
    told = fit(
        folder,
        "local-cluster[1,2,1024]",
        spark__factorflow__executable=wrapper,
        spark__factorflow__device=device,
        spark__worker__resource__gpu__amount="1",
        spark__worker__resource__gpu__discoveryScript=discovery,
        spark__executor__resource__gpu__amount="1",
        spark__executor__resource__gpu__discoveryScript=discovery,
        spark__task__resource__gpu__amount="1",
    )
    assert told == {"users": 60, "error": None}
    assert "--device gpu:3" in seen.read_text()


def test_without_the_package(folder):
    error = fit(folder, spark__factorflow__executable="/no/such/factorflow")["error"]
    assert "FactorFlow cannot be started" in error
    assert "spark.factorflow.executable" in error


def test_with_a_node_that_is_too_old(folder):
    old = program(folder / "node", "#!/bin/sh\necho 'factorflow needs Node 22.12 or newer, and this is 18.0.0' >&2\nexit 2\n")
    error = fit(folder, spark__factorflow__node=old, spark__factorflow__executable=os.environ["FACTORFLOW_MAIN"])["error"]
    assert "22.12 or newer" in error


def test_with_another_version_on_an_executor(folder):
    hello = json.dumps({"type": "hello", "protocol": 1, "version": "0.0.9", "node": "24.0.0", "pid": 1})
    text = f"""#!{os.environ['FACTORFLOW_NODE']}
const header = Buffer.from({json.dumps(hello)});
const head = Buffer.alloc(8);
head.writeUInt32LE(header.length, 0);
process.stdout.write(Buffer.concat([head, header]));
process.stdin.resume();
"""
    error = fit(folder, spark__factorflow__executable=program(folder / "other", text))["error"]
    assert "FactorFlow 0.0.9" in error
    assert "does not fit the plugin" in error


def test_with_too_little_memory(folder):
    error = fit(folder, spark__factorflow__memory="100m")["error"]
    assert "spark.factorflow.memory" in error


def test_memory_overhead_that_holds_no_worker(folder):
    error = fit(folder, "local-cluster[1,1,1024]", spark__executor__memoryOverhead="400m")["error"]
    assert "spark.executor.memoryOverhead" in error


def test_an_unknown_setting_is_refused(folder):
    error = fit(folder, spark__factorflow__devise="cpu")["error"]
    assert "is no setting of FactorFlow" in error

