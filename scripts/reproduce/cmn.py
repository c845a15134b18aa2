"""Converts CMN's citeulike-a.npz into files like NCF's, which `npm run reproduce` reads. Needs numpy.

    python3 cmn.py FOLDER     FOLDER has citeulike-a.npz, and gets the files

train_data is a table of user and item. test_data is a pickled dictionary:
{user: (item, [100 items to rank it among])}. Nothing else that the pickle names is run.
"""

import pickle
import sys
import zipfile
from pathlib import Path

import numpy as np
from numpy.lib import format as npy


class Reader(pickle.Unpickler):
    """Reads arrays and numbers of NumPy, and no other objects."""

    names = ("_reconstruct", "scalar", "ndarray", "dtype", "encode")

    def find_class(self, module, name):
        if module.split(".")[0] not in ("numpy", "_codecs") or name not in self.names:
            raise pickle.UnpicklingError(f"the pickle names {module}.{name}")
        return super().find_class(module, name)


def write(file, lines):
    file.write_text("".join(f"{line}\n" for line in lines))


def convert(folder):
    train = np.load(folder / "citeulike-a.npz")["train_data"]
    if train.dtype != np.uint32:
        raise ValueError(f"train_data is of {train.dtype}; a table of uint32 is expected")
    with zipfile.ZipFile(folder / "citeulike-a.npz") as arrays, arrays.open("test_data.npy") as file:
        npy.read_array_header_1_0(file) if npy.read_magic(file) == (1, 0) else npy.read_array_header_2_0(file)
        entries = Reader(file, encoding="latin1").load().item().items()
    write(folder / "citeulike-a.train.rating", (f"{user}\t{item}" for user, item in train[:, :2]))
    write(folder / "citeulike-a.test.rating", (f"{user}\t{item}" for user, (item, _) in entries))
    lists = (f"({user},{item})\t" + "\t".join(map(str, listed)) for user, (item, listed) in entries)
    write(folder / "citeulike-a.test.negative", lists)


if __name__ == "__main__":
    convert(Path(sys.argv[1]))
