import { type Data, DataType } from 'apache-arrow';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openSink } from '../../connectors/open-sink.ts';
import { openSource } from '../../connectors/open-source.ts';
import { everyNth } from '../support/deep.ts';
import { context, duckRows } from './parquet/parquet-testing.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const golden = join(import.meta.dirname, '../golden/edges');
const files = readdirSync(golden).filter((name) => /\.(parquet|arrow)$/.test(name));
const expected = JSON.parse(readFileSync(join(golden, 'edges.json'), 'utf8')) as Record<
  string,
  (string | null)[]
>;
const folder = temporaryFolder();

const NANOSECONDS = [1_000_000_000n, 1_000_000n, 1000n, 1n];
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

function float(value: number): string {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(value);
  return bytes.toString('hex');
}

/**
 * A value as edges.json has it, by the column's own bytes: Arrow's vectors would drop a byte order mark and
 * round numbers.
 */
function textOf(column: Data, row: number): string | null {
  if (!column.getValid(row)) return null;
  const { type, valueOffsets, values } = column;
  const bytes = () =>
    (values as Uint8Array).subarray(Number(valueOffsets[row]), Number(valueOffsets[row + 1]));
  if (DataType.isUtf8(type)) return decoder.decode(bytes());
  if (DataType.isBinary(type)) return Buffer.from(bytes()).toString('hex');
  if (DataType.isBool(type))
    return String(
      ((values as Uint8Array)[(column.offset + row) >> 3] & (1 << ((column.offset + row) & 7))) !== 0,
    );
  if (DataType.isFloat(type) && type.precision === 0)
    return float(halfToNumber((values as Uint16Array)[row]));
  if (DataType.isFloat(type)) return float((values as Float64Array)[row]);
  if (DataType.isTimestamp(type))
    return String((values as unknown as BigInt64Array)[row] * NANOSECONDS[type.unit]);
  if (DataType.isDecimal(type)) {
    const words = (values as Uint32Array).subarray(4 * row, 4 * row + 4);
    return String(
      BigInt.asIntN(
        128,
        words.reduceRight((number, word) => (number << 32n) | BigInt(word), 0n),
      ),
    );
  }
  return String((values as Int32Array)[row]);
}

function halfToNumber(bits: number): number {
  const [sign, exponent, fraction] = [bits >> 15 === 0 ? 1 : -1, (bits >> 10) & 31, bits & 1023];
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
}

async function read(file: string, columns?: readonly string[]): Promise<Record<string, (string | null)[]>> {
  const source = await openSource(file);
  const found: Record<string, (string | null)[]> = {};
  for await (const batch of await source.execute(context() as never, columns)) {
    for (const [index, { name }] of batch.schema.fields.entries())
      for (let row = 0; row < batch.numRows; row++)
        (found[name] ??= []).push(textOf(batch.data.children[index], row));
  }
  return found;
}

describe.each(everyNth(files, 3))('%s, of pyarrow', (name) => {
  test('has every value at the edge of its type, all columns together and each by itself', async () => {
    const file = join(golden, name);
    expect(await read(file)).toEqual(expected);
    for (const column of Object.keys(expected))
      expect(await read(file, [column])).toEqual({ [column]: expected[column] });
  });

  test.each(['copy.parquet', 'copy.arrow'])('is the same in %s, written and read here', async (copy) => {
    const source = await openSource(join(golden, name));
    // Columns that a format of ours does not hold are refused by name, and left out.
    const kept: string[] = [];
    for (const column of Object.keys(expected)) {
      const sink = await openSink(join(folder, copy), { overwrite: true });
      const written = await sink
        .consume(await source.execute(context() as never, [column]), context() as never)
        .then(
          () => true,
          (error: unknown) => {
            expect(error).toMatchObject({ name: 'UsageError', details: { column } });
            return false;
          },
        );
      if (!written) continue;
      kept.push(column);
      expect(await read(join(folder, copy))).toEqual({ [column]: expected[column] });
    }
    expect(kept).toEqual(
      expect.arrayContaining([
        'int32',
        'int64',
        'past53',
        'uint64',
        'float32',
        'float64',
        'utf8',
        'large',
        'bool',
      ]),
    );
  });

  test('is the same for DuckDB in a Parquet file of ours', async () => {
    const columns = [
      'bool',
      'int8',
      'int16',
      'int32',
      'int64',
      'uint8',
      'uint16',
      'uint32',
      'uint64',
      'past53',
      'utf8',
      'large',
    ];
    const source = await openSource(join(golden, name));
    const target = join(folder, 'for-duckdb.parquet');
    await (
      await openSink(target, { overwrite: true })
    ).consume(await source.execute(context() as never, columns), context() as never);
    // DuckDB's JavaScript drops a byte order mark.
    const rows = await duckRows(
      `SELECT ${columns.map((column) => `hex("${column}"::VARCHAR)`).join(', ')} FROM '${target}'`,
    );
    const hex = (text: string | null) => text && Buffer.from(text).toString('hex').toUpperCase();
    for (const [index, column] of columns.entries())
      expect(rows.map((row) => row[index])).toEqual(expected[column].map(hex));
  });

  test.each([
    ['copy.csv', ['int32', 'int64', 'past53']],
    ['copy.ndjson', ['int32', 'int64', 'past53', 'utf8']],
  ] as const)('is the same in %s, written and read here', async (copy, columns) => {
    const source = await openSource(join(golden, name));
    await (
      await openSink(join(folder, copy), { overwrite: true })
    ).consume(await source.execute(context() as never, columns), context() as never);
    expect(await read(join(folder, copy))).toEqual(
      Object.fromEntries(columns.map((column) => [column, expected[column]])),
    );
  });
});
