import { DataType } from 'apache-arrow';
import { copyFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ArrowSource } from '../../../connectors/arrow/arrow-source.ts';
import { hasZstd } from '../../../connectors/compression/compressions.ts';
import { context } from '../parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { readTable } from '../text/text-testing.ts';

const folder = temporaryFolder();
/** Written by golden/arrow/write.py with polars 2.1.0 and pyarrow 26.0.1. */
const golden = join(import.meta.dirname, '../../golden/arrow');
const files = readdirSync(golden).filter(
  (name) => !name.endsWith('.py') && (hasZstd() || !name.includes('zstd')),
);

const expected = Array.from({ length: 40 }, (_, i) => [
  BigInt((i % 7) + 2 ** 40),
  i % 11 === 0 ? null : `item ${i % 5}, with a name of more than twelve bytes`,
  i % 13 === 0 ? null : (i % 10) / 2,
  `genre ${i % 3}`,
  BigInt(i * 3),
]);

describe('files of Polars and pyarrow', () => {
  test.each(files)('%s', async (name) => {
    const source = new ArrowSource(join(golden, name));
    const { columns, rows } = await readTable(source, ['user', 'item', 'rating', 'genre', 'count']);
    expect(columns).toEqual(['user:Int64', 'item:Utf8', 'rating:Float64', 'genre:Utf8', 'count:Uint64']);
    expect(rows).toEqual(expected);
    const others = (await source.schema()).fields.slice(5).map(({ type }) => type);
    expect(
      others.map((type) =>
        DataType.isDecimal(type)
          ? type.scale
          : DataType.isFixedSizeBinary(type)
            ? type.byteWidth
            : String(type),
      ),
    ).toEqual(name.startsWith('polars') ? [2] : [2, 16]);
  });

  test('there are files of both', () => {
    expect(files.filter((name) => name.startsWith('polars')).length).toBeGreaterThan(2);
    expect(files.filter((name) => name.startsWith('feather')).length).toBeGreaterThan(1);
  });
});

test('several batches and dictionaries are read one by one', async () => {
  copyFileSync(join(golden, 'feather-lz4.feather'), join(folder, 'copy.feather'));
  const sizes: number[] = [];
  for await (const batch of await new ArrowSource(join(folder, 'copy.feather')).execute(context()))
    sizes.push(batch.numRows);
  expect(sizes).toEqual([16, 16, 8]);
});
