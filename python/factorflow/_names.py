"""Names of parameters in Python and in FactorFlow."""

import difflib
import json
import pathlib
import re

_CAPITAL = re.compile("[A-Z]")

# Names of implicit and scikit-learn for FactorFlow's, which come first in messages.
_OTHER_NAMES = {
    "factors": "rank",
    "regularization": "regParam",
    "iterations": "maxIter",
    "random_state": "seed",
    "implicit": "implicitPrefs",
}


def _table(algorithm):
    """Python's names of an algorithm's parameters, with FactorFlow's name of each."""
    file = pathlib.Path(__file__).with_name("parameters.json")
    theirs = json.loads(file.read_text(encoding="utf-8"))[algorithm]
    others = {ours: name for ours, name in _OTHER_NAMES.items() if name in theirs}
    return {**others, **{_CAPITAL.sub(lambda letter: f"_{letter[0].lower()}", name): name for name in theirs}}


ALS = _table("als")
SGD = _table("sgd")
MACHINE = {
    "device": "--device",
    "device_memory": "--device-memory",
    "num_threads": "--workers",
    "memory_budget": "--memory-budget",
    "spill_dir": "--spill-dir",
}

# The other way, for messages; of two names the one that comes first. Words such as rank are names in both.
_SHOWN = {
    theirs: ours
    for table in (SGD, ALS)
    for ours, theirs in reversed(table.items())
    if theirs.lower() != theirs
}
_SHOWN.update({"userCol": "user", "itemCol": "item", "ratingCol": "rating", "timestampCol": "timestamp"})
_WORDS = re.compile(rf"\b({'|'.join(_SHOWN)})\b")


# Advice about the JavaScript package webgpu, which pip installs as a part of most wheels.
_NPM_ADVICE = re.compile(
    r"(?:Add it|Install it again) with npm install webgpu@[\d.]*\d(?:, or install without --omit=optional)?"
)
_PIP_ADVICE = (
    "Wheels for Linux (glibc 2.34 or newer), macOS and Windows have it, the wheel for any system does not. "
    "A new pip takes the right one: pip install --upgrade pip, then pip install --force-reinstall --no-deps "
    "factorflow, with the index or --find-links of before"
)


def to_python(text):
    """A message of the worker with the parameters under Python's names, and advice for pip instead of npm."""
    text = _NPM_ADVICE.sub(_PIP_ADVICE, text)
    return _WORDS.sub(lambda found: _SHOWN[found.group(1)], text)


def javascript_params(given, table, algorithm):
    """FactorFlow's parameters of those that are given (not None)."""
    params = {}
    for name, value in given.items():
        if value is None:
            continue
        theirs = table[name]
        if theirs in params and params[theirs] != value:
            twice = [one for one in given if table[one] == theirs and given[one] is not None]
            raise TypeError(f"{' and '.join(twice)} of {algorithm} mean the same, and have different values")
        params[theirs] = value
    return params


def unknown(name, known, algorithm):
    """The error of a parameter that does not exist."""
    near = difflib.get_close_matches(name, known, 1)
    advice = f". Did you mean {near[0]}?" if near else f". There are: {', '.join(known)}"
    return TypeError(f"{algorithm} has no parameter {name}{advice}")
