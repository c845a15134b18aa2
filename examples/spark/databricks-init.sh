#!/bin/sh
# Init script of a Databricks cluster (runtimes 14.3 to 16.4, which have Spark 3.5): installs FactorFlow on the
# driver and on each worker, from the files of a release in a volume.
#
# In the cluster's settings name this script, and set
#
#   the environment variable  FACTORFLOW_FILES=/Volumes/main/default/factorflow
#   Spark's property          spark.factorflow.executable /opt/factorflow/bin/factorflow
#
# and in a notebook: %pip install /Volumes/main/default/factorflow/factorflow_spark-0.1.0-py3-none-any.whl
set -eu
files=${FACTORFLOW_FILES:?set it to the folder of the files of a release}
home=${FACTORFLOW_HOME:-/opt/factorflow}
jars=${FACTORFLOW_JARS:-/databricks/jars}

one() {
  # The only file of a pattern.
  [ "$#" -eq 1 ] && [ -f "$1" ] || { echo "databricks-init: need one file $1, found $#" >&2; exit 2; }
  echo "$1"
}

archive=$(one "$files"/factorflow-*-linux-x64.tar.gz)
jar=$(one "$files"/factorflow-spark-3.5_2.12-*.jar)
mkdir -p "$home" "$jars"
tar -xzf "$archive" -C "$home"
cp "$jar" "$jars/"
"$home/bin/factorflow" --version
