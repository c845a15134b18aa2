"""Exported factors, read by the libraries of their formats."""

import subprocess

import numpy as np
import pyarrow.parquet as parquet
import pytest
import safetensors.numpy as safetensors

from factorflow._node import command


def _of_safetensors(folder):
    tensors = safetensors.load_file(folder / "factors.safetensors")
    return [(tensors[f"{side}_ids"], tensors[f"{side}_factors"]) for side in ("user", "item")]


def _of_arrays(folder):
    names = [(f"{side}_ids.npy", f"{side}_factors.npy") for side in ("user", "item")]
    return [tuple(np.load(folder / name) for name in pair) for pair in names]


def _of_parquet(folder):
    tables = [parquet.read_table(folder / f"{side}.parquet") for side in ("users", "items")]
    return [(one["id"].to_numpy(), np.array(one["features"].to_pylist(), np.float32)) for one in tables]


READERS = {"safetensors": _of_safetensors, "npy": _of_arrays, "parquet": _of_parquet}


@pytest.mark.parametrize("form", READERS)
def test_exported_factors_are_read_by_their_libraries(form, model, matrix, tmp_path):
    """What `factorflow export` writes: ids of rows with ratings, and features whose products are scores."""
    model.save(tmp_path / "model")
    options = ["--output", str(tmp_path / "out"), "--to", form, "--quiet"]
    subprocess.run([*command(), "export", str(tmp_path / "model"), *options], check=True)
    users, items = READERS[form](tmp_path / "out")
    for (ids, features), rated in zip((users, items), matrix.nonzero()):
        np.testing.assert_array_equal(ids, np.unique(rated))
        assert features.dtype == np.float32
    products = users[1] @ items[1].T
    expected = [model.predict([user] * len(items[0]), items[0]) for user in users[0]]
    np.testing.assert_allclose(products, expected, atol=1e-5)
