"""The conversion of CMN's file: a table, and a pickled dictionary in an array of one object."""

import importlib.util
import pickle
import struct
import zipfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/reproduce/cmn.py"
spec = importlib.util.spec_from_file_location("cmn", SCRIPT)
cmn = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cmn)

# As NumPy pickles an array of one object, {0: (2, [7, 300]), 1: (numpy.int64(5), [8, 9])}.
PICKLE = (
    b"\x80\x02cnumpy.core.multiarray\n_reconstruct\nq\x00cnumpy\nndarray\nK\x00\x85c_codecs\nencode\nq\x03"
    b"X\x01\x00\x00\x00bX\x06\x00\x00\x00latin1q\x05\x86R\x87R(K\x01)cnumpy\ndtype\nq\x0a"
    b"X\x02\x00\x00\x00O8K\x00K\x01\x87R(K\x03X\x01\x00\x00\x00|NNN"
    b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK?tb\x89]}("
    b"K\x00K\x02](K\x07M\x2c\x01e\x86K\x01cnumpy.core.multiarray\nscalar\nh\x0a"
    b"X\x02\x00\x00\x00i8K\x00K\x01\x87R"
    b"h\x03X\x08\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00h\x05\x86R\x86R](K\x08K\x09e\x86uatb."
)


def write(folder, table, pickled=PICKLE, fortran=False, kind="<u4"):
    def npy(descr, shape, order, data):
        header = repr({"descr": descr, "fortran_order": order, "shape": shape}).encode() + b"\n"
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data

    with zipfile.ZipFile(folder / "citeulike-a.npz", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("train_data.npy", npy(kind, (3, 2), fortran, struct.pack("<6I", *table)))
        file.writestr("test_data.npy", npy("|O", (), False, pickled))


@pytest.mark.parametrize(("table", "fortran"), [((0, 3, 0, 4, 1, 3), False), ((0, 0, 1, 3, 4, 3), True)])
def test_a_table_and_a_dictionary_become_ratings_and_lists(tmp_path, table, fortran):
    write(tmp_path, table, fortran=fortran)
    cmn.convert(tmp_path)
    read = lambda end: (tmp_path / f"citeulike-a.{end}").read_text()  # noqa: E731
    assert read("train.rating") == "0\t3\n0\t4\n1\t3\n"
    assert read("test.rating") == "0\t2\n1\t5\n"
    assert read("test.negative") == "(0,2)\t7\t300\n(1,5)\t8\t9\n"


def test_nothing_of_a_pickle_is_run(tmp_path):
    write(tmp_path, (0,) * 6, pickled=b"cos\nsystem\n(X\x04\x00\x00\x00exittR.")
    with pytest.raises(pickle.UnpicklingError, match="the pickle names os.system"):
        cmn.convert(tmp_path)


def test_other_types_are_refused(tmp_path):
    write(tmp_path, (0,) * 6, kind="<f4")
    with pytest.raises(ValueError, match="a table of uint32 is expected"):
        cmn.convert(tmp_path)
