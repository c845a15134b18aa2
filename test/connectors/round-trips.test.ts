/** Written tables are read the same, for each format, compression and type of ids. */
import { type DataType, Float64, Int32, Int64, Utf8 } from 'apache-arrow';
import fc from 'fast-check';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { hasZstd } from '../../connectors/compression/compressions.ts';
import { openSink } from '../../connectors/open-sink.ts';
import { openSource } from '../../connectors/open-source.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { batchStream } from '../../engine/stream/stream.ts';
import { isDeep } from '../support/deep.ts';
import { context } from './parquet/parquet-testing.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { readTable, table } from './text/text-testing.ts';

const folder = temporaryFolder();
const packed = ['', '.gz', '.lz4', ...(hasZstd() ? ['.zst'] : [])];
const files: readonly { readonly name: string; readonly codec?: 'lz4' | 'zstd' }[] = [
  ...['csv', 'tsv', 'ndjson'].flatMap((ending) =>
    packed.map((compression) => ({ name: `r.${ending}${compression}` })),
  ),
  ...['r.parquet', 'r.arrow', 'r.arrows'].map((name) => ({ name })),
  ...['lz4.arrow', 'lz4.arrows'].map((name) => ({ name, codec: 'lz4' as const })),
  ...(hasZstd() ? [{ name: 'zstd.feather', codec: 'zstd' as const }] : []),
];
const ids: readonly (readonly [type: DataType, values: fc.Arbitrary<unknown>])[] = [
  [new Int32(), fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })],
  [new Int64(), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })],
  [
    new Utf8(),
    fc.string({
      unit: fc.constantFrom('a', '7', 'é', '😀', ',', '"', ';', ' ', '\n', '\r', '\0', '\\', '{'),
      maxLength: 8,
    }),
  ],
];

test.each(files)('$name', async ({ name, codec }) => {
  const isText = /csv|tsv|ndjson/.test(name);
  const path = join(folder, name);
  for (const [type, values] of ids) {
    const rows = fc.array(
      fc.tuple(
        fc.option(values, { nil: null }),
        fc.option(fc.double({ noNaN: name.includes('ndjson'), noDefaultInfinity: name.includes('ndjson') }), {
          nil: null,
        }),
      ),
      { minLength: 1, maxLength: 20 },
    );
    await fc.assert(
      fc.asyncProperty(rows, async (pairs) => {
        const batch = table([
          ['user', type, pairs.map(([user]) => user)],
          ['rating', new Float64(), pairs.map(([, rating]) => rating)],
        ]);
        const batches = (async function* () {
          yield batch;
          yield batch;
        })();
        await (
          await openSink(path, { overwrite: true, codec })
        ).consume(batchStream(batch.schema, batches), context() as unknown as ExecutionContext);
        const types = {
          user: type instanceof Int32 ? 'int32' : type instanceof Int64 ? 'int64' : 'utf8',
          rating: 'float64',
        } as const;
        const { rows: read } = await readTable(await openSource(path, isText ? { types } : {}));
        expect(read).toEqual([...pairs, ...pairs].map((pair) => [...pair]));
      }),
      { numRuns: isDeep ? 15 : 4, seed: 77 },
    );
  }
});
