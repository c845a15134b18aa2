"""The example of the package's README runs."""

import re
from pathlib import Path

import factorflow


def test_readme(monkeypatch, capsys):
    text = (Path(__file__).parents[2] / "python/README.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    monkeypatch.setenv("NODE_OPTIONS", "")
    exec(compile(program, "README.md", "exec"), {})
    said = capsys.readouterr().out
    assert "Brazil" in said and "Alien" in said


def test_the_wheel_has_its_license_and_version():
    assert factorflow.__version__
    from factorflow._node import program

    assert Path(program()).is_file()
