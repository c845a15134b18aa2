"""Converts CMN's citeulike-a.npz into files like NCF's, which `npm run reproduce` reads.

    python3 cmn.py FOLDER     FOLDER has citeulike-a.npz, and gets the files

train_data is a table of user and item in uint32. test_data is a pickled dictionary:
{user: (item, [100 items to rank it among])}.
Nothing of the pickle is run: the few names that NumPy's arrays need are replaced by the functions below.
"""

import ast
import io
import pickle
import struct
import sys
import zipfile
from pathlib import Path


class Array:
    """A pickled array or type of NumPy: what it was made of, and its state."""

    def __init__(self, *made):
        self.made = made

    def __setstate__(self, state):
        self.state = state


class Reader(pickle.Unpickler):
    names = {
        ("multiarray", "_reconstruct"): Array,
        ("multiarray", "scalar"): lambda _, data: number(data),
        ("numpy", "ndarray"): Array,
        ("numpy", "dtype"): Array,
        ("_codecs", "encode"): lambda text, encoding: text.encode(encoding),
    }

    def find_class(self, module, name):
        found = self.names.get((module.rpartition(".")[2], name))
        if found is None:
            raise pickle.UnpicklingError(f"the pickle names {module}.{name}")
        return found


def number(data):
    """A pickled whole number of NumPy; Python 2 pickled its bytes as text."""
    return int.from_bytes(data.encode("latin1") if isinstance(data, str) else data, "little", signed=True)


def stored(content):
    """Header and data of an .npy file."""
    start = 10 if content[6] == 1 else 12
    (length,) = struct.unpack("<H" if start == 10 else "<I", content[8:start])
    return ast.literal_eval(content[start : start + length].decode("latin1")), content[start + length :]


def convert(folder):
    with zipfile.ZipFile(folder / "citeulike-a.npz") as arrays:
        train, test = (stored(arrays.read(f"{name}.npy")) for name in ("train_data", "test_data"))
    header, data = train
    rows, columns = header["shape"]
    if header["descr"] != "<u4" or columns < 2:
        raise ValueError(f"train_data is {header}; a table of <u4 is expected")
    cells = struct.unpack(f"<{rows * columns}I", data[: 4 * rows * columns])
    step, side = (1, rows) if header["fortran_order"] else (columns, 1)
    pairs = [(cells[row * step], cells[row * step + side]) for row in range(rows)]
    entries = Reader(io.BytesIO(test[1]), encoding="latin1").load().state[-1][0].items()
    write(folder / "citeulike-a.train.rating", (f"{user}\t{item}" for user, item in pairs))
    write(folder / "citeulike-a.test.rating", (f"{user}\t{item}" for user, (item, _) in entries))
    lists = (f"({user},{item})\t" + "\t".join(map(str, listed)) for user, (item, listed) in entries)
    write(folder / "citeulike-a.test.negative", lists)


def write(file, lines):
    file.write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    convert(Path(sys.argv[1]))
