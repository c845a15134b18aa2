"""Reads the jars that a Spark application has without this package.

PySpark starts a JVM with ``spark-submit --conf NAME=VALUE ... $PYSPARK_SUBMIT_ARGS``. A
``--conf spark.jars=...`` replaces the value in spark-defaults.conf, and options in PYSPARK_SUBMIT_ARGS
replace both.
"""

import os
import re
import shlex
from pathlib import Path

_SHORT = {"-c": "--conf"}
_FLAGS = {"--load-spark-defaults", "--verbose", "-v", "--supervise"}


def merged_jars(conf, jar):
    """The value of ``spark.jars`` that adds `jar` to the application's own jars.

    None if it cannot be added or is already present.
    """
    options = list(_options(os.environ.get("PYSPARK_SUBMIT_ARGS", "")))
    if any(
        name == "--jars" or (name == "--conf" and value.split("=")[0].strip() == "spark.jars")
        for name, value in options
    ):
        return None
    given = conf.get("spark.jars", "") or _defaults(dict(options)).get("spark.jars", "")
    jars = [one for one in given.split(",") if one.strip()]
    return None if jar in jars else ",".join([*jars, jar])


def _options(text):
    """The options of a command line as pairs (name, value); flags have an empty value."""
    words = iter(shlex.split(text))
    for word in words:
        name, equals, value = word.partition("=")
        if name in _FLAGS:
            yield name, ""
        elif name.startswith("-"):
            yield _SHORT.get(name, name), value if equals else next(words, "")


def _defaults(options):
    """The settings of spark-defaults.conf, or of the properties file that replaces it."""
    if "--properties-file" in options:
        own = _properties(Path(options["--properties-file"]))
        # Spark 4 can read both; values of the named file come first.
        return {**_properties(_defaults_file()), **own} if "--load-spark-defaults" in options else own
    return _properties(_defaults_file())


def _defaults_file():
    from pyspark.find_spark_home import _find_spark_home

    folder = os.environ.get("SPARK_CONF_DIR") or os.path.join(_find_spark_home(), "conf")
    return Path(folder, "spark-defaults.conf")


def _properties(file):
    """
    A file in Java's format: lines of ``name value``, ``name=value`` or ``name: value``; a backslash continues
    a line.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except OSError:
        return {}
    found = {}
    for line in re.sub(r"\\\r?\n[ \t]*", "", text).splitlines():
        line = line.strip()
        if line and line[0] not in "#!":
            name, value = (re.split(r"\s*[=:]\s*|\s+", line, maxsplit=1) + [""])[:2]
            found[name] = value.strip()
    return found
