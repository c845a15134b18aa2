"""Writes random columns of every Arrow type as an Arrow file, converts it to Parquet by the command line, and
reads that with pyarrow: equal values, and a logical type that other programs read without Arrow's own types in
the footer. Prints {"counts": {...}, "finds": [...]}. Run by itself, with pyarrow installed:

    python3 scripts/torture/oracle/arrow_types.py SEED FOLDER node dist/programs/cli/main.js
"""

import decimal
import json
import pathlib
import random
import subprocess
import sys

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

DAY = 86_400
# Types, the bound of their stored integers, and the type that they have in Parquet where it is another one.
INTEGERS = [(pa.int8(), 2**7), (pa.int16(), 2**15), (pa.int32(), 2**31), (pa.int64(), 2**63)]
TIMES = [
    (pa.timestamp("s"), 2**50, pa.timestamp("ms")),
    (pa.timestamp("s", "Europe/Berlin"), 2**50, pa.timestamp("ms", "Europe/Berlin")),
    (pa.timestamp("ms", "UTC"), 2**62, None),
    (pa.timestamp("us"), 2**62, None),
    (pa.timestamp("ns"), 2**62, None),
    (pa.date32(), 10**6, None),
    (pa.date64(), 10**6, pa.date32()),
    (pa.time32("s"), DAY, pa.time32("ms")),
    (pa.time32("ms"), DAY * 1000, None),
    (pa.time64("us"), DAY * 10**6, None),
    (pa.time64("ns"), DAY * 10**9, None),
]
DECIMALS = [(pa.decimal32(9, 2), 8), (pa.decimal64(18, 3), 17), (pa.decimal128(38, 5), 37), (pa.decimal256(60, 7), 59)]


def columns(draw, rows):
    """Names, columns, and the type that each has in Parquet where it is another one."""

    def of(make):
        return [None if draw.random() < 0.2 else make() for _ in range(rows)]

    for kind, bound in INTEGERS:
        yield str(kind), pa.array(of(lambda: draw.randrange(-bound, bound)), kind), None
    for bits in (8, 16, 32, 64):
        yield f"uint{bits}", pa.array(of(lambda: draw.randrange(2**bits)), getattr(pa, f"uint{bits}")()), None
    for kind, bound, stored in TIMES:
        low = 0 if pa.types.is_time(kind) else -bound
        numbers = of(lambda: draw.randrange(low, bound) * (DAY * 1000 if kind == pa.date64() else 1))
        width = pa.int64() if kind.bit_width == 64 else pa.int32()
        yield str(kind), pa.array(numbers, width).cast(kind), stored
    for kind, digits in DECIMALS:
        numbers = of(lambda: draw.randrange(-(10**digits), 10**digits))
        exact = decimal.Context(prec=80)
        values = [n if n is None else exact.create_decimal(f"{n}e-{kind.scale}") for n in numbers]
        yield str(kind), pa.array(values, kind), None
    yield "bool", pa.array(of(lambda: draw.random() < 0.5), pa.bool_()), None
    for kind in (pa.float16(), pa.float32(), pa.float64()):
        yield str(kind), pa.array(of(draw.random), pa.float64()).cast(kind), None
    texts = of(lambda: draw.choice(["", "é", "\ufeffx", "𝄞", "a" * 40]))
    yield "text", pa.array(texts, pa.string()), None
    yield "bytes", pa.array(of(lambda: draw.randbytes(draw.randrange(5))), pa.binary()), None
    yield "three", pa.array(of(lambda: draw.randbytes(3)), pa.binary(3)), None
    yield "uuid", pa.array(of(lambda: draw.randbytes(16)), pa.uuid()), None
    seconds = of(lambda: [draw.randrange(2**40) for _ in range(draw.randrange(3))])
    yield "list", pa.array(seconds, pa.list_(pa.timestamp("s"))), pa.list_(pa.timestamp("ms"))


def compare(seed, folder, program):
    draw, finds = random.Random(seed), []
    made = list(columns(draw, draw.choice([1, 9, 5000])))
    table = pa.table({name: column for name, column, _ in made})
    arrow, parquet = pathlib.Path(folder) / "types.arrow", pathlib.Path(folder) / "types.parquet"
    pyarrow.feather.write_feather(table, arrow, compression="uncompressed")
    words = ["convert", arrow, parquet, "--quiet"]
    subprocess.run([*program, *words], check=True, stdout=subprocess.DEVNULL)
    read, schema = pq.read_table(parquet), pq.ParquetFile(parquet).schema
    bare = {"bool", "bytes", "three", "int32", "int64", "float", "double"}
    for i, (name, column, stored) in enumerate(made):
        expected = column.cast(stored) if stored else column
        found = read[name].combine_chunks()
        if found.type != expected.type:
            finds.append(f"seed {seed}: {name} is {found.type} in Parquet, not {expected.type}")
        elif not found.equals(expected):
            finds.append(f"seed {seed}: {name} has other values in Parquet")
        if name not in bare and schema.column(i).logical_type.type == "NONE":
            finds.append(f"seed {seed}: {name} has no logical type in Parquet")
    return {"counts": {"columns of Parquet": len(made)}, "finds": finds}


if __name__ == "__main__":
    print(json.dumps(compare(int(sys.argv[1]), sys.argv[2], sys.argv[3:])))
