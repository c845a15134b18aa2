"""Writes the same table at the edges of each type, plain and behind dictionaries, by pyarrow: python write.py (pyarrow 26.0.1).

edges.json has the values as text: numbers exactly, decimals without their point, floats as the float64 of the same value, bytes in
hexadecimal, moments in nanoseconds.
"""
import decimal, json, struct

decimal.getcontext().prec = 60

import pyarrow as pa, pyarrow.parquet as pq, pyarrow.ipc as ipc

D = decimal.Decimal
words = ["", "a", "\ufeffa", "\ufeff", "\u0000", "a\u0000", "é", "e\u0301", "😀", "\uffff", " a", "a ", "A", "1", "01", "1.0", "a,b\n\"c\"", "x" * 300]
tables = {
    "bool": (pa.bool_(), [True, False]),
    **{f"int{b}": (getattr(pa, f"int{b}")(), [-(2 ** (b - 1)), -(2 ** (b - 1)) + 1, -1, 0, 1, 2 ** (b - 1) - 2, 2 ** (b - 1) - 1]) for b in (8, 16, 32, 64)},
    **{f"uint{b}": (getattr(pa, f"uint{b}")(), [0, 1, 2 ** (b - 1) - 1, 2 ** (b - 1), 2 ** b - 2, 2 ** b - 1]) for b in (8, 16, 32, 64)},
    "past53": (pa.int64(), [2 ** 53 - 1, 2 ** 53, 2 ** 53 + 1, -(2 ** 53) - 1]),
    "float16": (pa.float16(), [0.0, 1.0, -1.5, 65504.0, 2.0 ** -24]),
    "float32": (pa.float32(), [0.0, -0.0, 1.0, 3.4028234663852886e38, 1.401298464324817e-45, -1.5, float("inf")]),
    "float64": (pa.float64(), [0.0, -0.0, 0.1, 1.7976931348623157e308, 5e-324, 1e22, float("-inf")]),
    "decimal": (pa.decimal128(38, 9), [D("0"), D("1.000000001"), D("-1.000000001"), D("99999999999999999999999999999.999999999"), D("-99999999999999999999999999999.999999999")]),
    "decimal9": (pa.decimal128(9, 2), [D("9999999.99"), D("-9999999.99"), D("0.01")]),
    "utf8": (pa.string(), words),
    "large": (pa.large_string(), words),
    "binary": (pa.binary(), [b"", b"\x00", b"\xff\xfe", b"\xef\xbb\xbfa"]),
    "date": (pa.date32(), [0, -1, 2 ** 31 - 1, -(2 ** 31)]),
    **{f"time_{u}": (pa.timestamp(u), [0, -1, 1, 1112486027938123456, -(2 ** 62)] if u in ("ns", "us") else [0, -1, 1112486027, -(2 ** 40)]) for u in ("s", "ms", "us", "ns")},
}

def text(type, value):
    if value is None: return None
    if pa.types.is_boolean(type): return "true" if value else "false"
    if pa.types.is_floating(type): return struct.pack(">d", float(value)).hex()
    if pa.types.is_binary(type): return value.hex()
    if pa.types.is_decimal(type): return str(int(value.scaleb(type.scale)))
    if pa.types.is_timestamp(type): return str(value * 10 ** {"s": 9, "ms": 6, "us": 3, "ns": 0}[type.unit])
    return str(value)

def parquet(name, table):
    for version in ("1.0", "2.0"):
        pq.write_table(table, f"{name}-V{version[0]}.parquet", data_page_version=version, compression="zstd", use_dictionary=name == "dictionary", row_group_size=11)

def arrow(name, table):
    with ipc.new_file(f"{name}.arrow", table.schema, options=ipc.IpcWriteOptions(compression="zstd")) as out:
        out.write_table(table)

plain, nulls_in_codes, nulls_behind, expected = {}, {}, {}, {}
rows = max(len(values) for _, values in tables.values()) + 1
for name, (type, values) in tables.items():
    # Shorter columns begin again; the last of the values is null.
    column = list(values) + [None]
    of = lambda some: pa.array(some, pa.int64()).cast(type) if name.startswith("time_") else pa.array(some, pa.int32()).cast(type) if name == "date" else pa.array(some, type)
    rounds = [i % len(column) for i in range(rows)]
    plain[name] = of([column[i] for i in rounds])
    expected[name] = [text(type, column[i]) for i in rounds]
    nulls_in_codes[name] = pa.DictionaryArray.from_arrays(pa.array([None if column[i] is None else i for i in rounds], pa.int32()), of(list(values)))
    nulls_behind[name] = pa.DictionaryArray.from_arrays(pa.array(rounds, pa.int16()), of(column))
parquet("plain", pa.table(plain))
parquet("dictionary", pa.table(nulls_in_codes))
arrow("plain", pa.table(plain))
arrow("dictionary", pa.table(nulls_in_codes))
arrow("nulls-behind", pa.table(nulls_behind))
json.dump(expected, open("edges.json", "w"), indent=0)
