import fc from 'fast-check';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { NdjsonSource } from '../../connectors/ndjson/ndjson-source.ts';
import { openSource } from '../../connectors/open-source.ts';
import { TextSource } from '../../connectors/text/text-source.ts';
import type { ByteRange, SourceSplit } from '../../engine/stream/split.ts';
import { isDeep, sampleSize } from '../support/deep.ts';
import { readInSplits, readWhole, type SplitOptions } from '../support/read-splits.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const faults = { needs: { numbers: [], takesFaults: true } } as const;
let written = 0;

function write(content: string | Uint8Array, ending: string): string {
  const file = join(folder, `${written++}.${ending}`);
  writeFileSync(file, content);
  return file;
}

/** Ranges that end at the given bytes. */
function cutAt(positions: readonly number[]): SplitOptions['cuts'] {
  return ([first]) => {
    const starts = [0, ...[...new Set(positions)].filter((at) => at > 0).sort((a, b) => a - b)];
    return starts.map((from, i): SourceSplit => ({
      ...first,
      range: {
        from,
        to: starts[i + 1] ?? Number.MAX_SAFE_INTEGER,
        known: i === 0,
        rows: 0,
        lines: 0,
      } satisfies ByteRange,
    }));
  };
}

const text = fc.string({
  unit: fc.constantFrom('a', '7', ',', '"', '\n', '\r\n', ' ', 'é', '漢', '😀'),
  maxLength: 6,
});
const quoted = text.map((value) => `"${value.replaceAll('"', '""')}"`);
const bare = fc.constantFrom('', '1', '22', '-3.5', 'NA', 'x', 'ümlaut', '漢字', '0.5');
const lineEnd = fc.constantFrom('\n', '\r\n', '\n\n', '\n\r\n');
const cuts = fc.array(fc.integer({ min: 1, max: 160 }), { maxLength: 8 });

/**
 * Rows of three fields: quotes, multi-byte text, blank lines; with faults also rows of other lengths,
 * misplaced quotes and bytes that are no text.
 */
function csv(withFaults: boolean): fc.Arbitrary<Uint8Array> {
  const field = fc.oneof({ arbitrary: bare, weight: 3 }, { arbitrary: quoted, weight: 1 });
  const row = fc.tuple(field, field, field).map((fields) => fields.join(','));
  const broken = fc.constantFrom('1,2', '1,2,3,4', '1,"2"x,3', '1,"2,3', '1,2,"a\nb",4');
  const content = fc.array(
    fc.tuple(
      withFaults ? fc.oneof({ arbitrary: row, weight: 12 }, { arbitrary: broken, weight: 1 }) : row,
      lineEnd,
    ),
    { maxLength: 12 },
  );
  return fc
    .tuple(fc.constantFrom('', '\ufeff'), fc.constantFrom('', '\n'), content, fc.boolean(), fc.nat(400))
    .map(([mark, blank, rows, whole, at]) => {
      const lines = rows.map(([fields, end]) => fields + end).join('');
      const bytes = Buffer.from(
        `${mark}${blank}user,item,title\n${whole ? lines : lines.replace(/\r?\n$/, '')}`,
      );
      // The beginning is looked at for types, so a byte that is no text is an error at once.
      if (withFaults && at < bytes.length && at % 5 === 0) bytes[at] = 0xff;
      return bytes;
    });
}

describe('byte ranges of text read like the whole', () => {
  const options = { header: true, types: { user: 'utf8', item: 'utf8', title: 'utf8' } } as const;

  test.each([
    ['rows', false, {}],
    ['faults', true, {}],
    ['faults that are taken', true, faults],
  ] as const)('%s', async (_name, withFaults, reading) => {
    let [again, errors] = [0, 0];
    const property = fc.asyncProperty(csv(withFaults), cuts, async (content, positions) => {
      const source = new TextSource(write(content, 'csv'), { ...options, batchSize: 5 });
      const whole = await readWhole(source, reading);
      const { again: wrong, ...split } = await readInSplits(source, 1 << 20, {
        ...reading,
        cuts: cutAt(positions),
      });
      expect(split).toEqual(whole);
      again += wrong;
      if ('error' in whole) errors++;
    });
    await fc.assert(property, { numRuns: sampleSize(200), seed: 1 });
    expect(again).toBeGreaterThan(0);
    expect(errors > 0).toBe(withFaults);
  });

  test('types that are inferred, for some columns', async () => {
    const property = fc.asyncProperty(csv(true), cuts, async (content, positions) => {
      const source = new TextSource(write(content, 'csv'));
      const reading = { ...faults, columns: ['item'] };
      const { again: _again, ...split } = await readInSplits(source, 1 << 20, {
        ...reading,
        cuts: cutAt(positions),
      });
      expect(split).toEqual(await readWhole(source, reading));
    });
    await fc.assert(property, { numRuns: sampleSize(100), seed: 2 });
  });

  test('one column, where blank lines are rows; two colons; a file without a header', async () => {
    for (const content of ['a\n\n\r\nb\n', 'a::1::2\nb::c::d\r\n::::\n', '1,2,3\r\n4,5,6', '\n', 'a']) {
      for (let from = 1; from <= content.length; from++) {
        // Every first cut, and every third of the second ones.
        for (let next = from; next <= content.length; next += isDeep ? 1 : 3) {
          const source = new TextSource(write(content, 'dat'));
          const { again: _again, ...split } = await readInSplits(source, 1 << 20, {
            cuts: cutAt([from, next]),
          });
          expect([content, from, next, split]).toEqual([content, from, next, await readWhole(source)]);
        }
      }
    }
  });
});

describe('byte ranges of NDJSON read like the whole', () => {
  const value = fc.oneof(fc.integer({ min: -9, max: 99 }), text, fc.constantFrom(null, 1.5, true));
  const object = fc
    .record({ user: value, item: value }, { requiredKeys: ['user'] })
    .map((fields) => JSON.stringify(fields));
  const broken = fc.constantFrom('{"user":1', '[1]', 'x', '{"user":[1]}', '{"other":1}');
  const lines = (withFaults: boolean) =>
    fc
      .array(
        fc.tuple(
          withFaults ? fc.oneof({ arbitrary: object, weight: 12 }, { arbitrary: broken, weight: 1 }) : object,
          lineEnd,
        ),
        { maxLength: 12 },
      )
      .map((rows) => `{"user":"a","item":"b"}\n${rows.map(([json, end]) => json + end).join('')}`);

  test.each([
    ['rows', false, {}],
    ['faults', true, {}],
    ['faults that are taken', true, faults],
    ['some columns', true, { ...faults, columns: ['item'] }],
  ] as const)('%s', async (_name, withFaults, reading) => {
    const property = fc.asyncProperty(lines(withFaults), cuts, async (content, positions) => {
      const source = new NdjsonSource(write(content, 'ndjson'), { batchSize: 5 });
      const { again: _again, ...split } = await readInSplits(source, 1 << 20, {
        ...reading,
        cuts: cutAt(positions),
      });
      expect(split).toEqual(await readWhole(source, reading));
    });
    await fc.assert(property, { numRuns: sampleSize(150), seed: 3 });
  });
});

describe('splits of a source', () => {
  const lines = Array.from({ length: 3000 }, (_, i) => `${i},${i % 7},"title\n${i}"\n`).join('');

  test.each([1000, 1 << 20])('a file in ranges of about %d bytes', async (targetBytes) => {
    const source = new TextSource(write(`user,item,title\n${lines}`, 'csv'));
    const { splits } = (await source.splits(
      { signal: new AbortController().signal },
      undefined,
      undefined,
      targetBytes,
    )) ?? { splits: [] };
    expect(splits.length).toBe(Math.ceil((16 + lines.length) / targetBytes));
    expect(splits.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(16 + lines.length);
    const { again: _again, ...split } = await readInSplits(source, targetBytes);
    expect(split).toEqual(await readWhole(source));
  });

  test('a packed file is one split', async () => {
    for (const [pack, ending] of [
      [gzipSync, 'csv.gz'],
      [zstdCompressSync, 'csv.zst'],
      [gzipSync, 'csv'],
    ] as const) {
      const source = new TextSource(write(pack(Buffer.from(`user,item,title\n${lines}`)), ending));
      const { splits } = (await source.splits(
        { signal: new AbortController().signal },
        undefined,
        undefined,
        100,
      )) ?? { splits: [] };
      expect(splits).toHaveLength(1);
      const { again: _again, ...split } = await readInSplits(source, 100);
      expect(split).toEqual(await readWhole(source));
    }
  });

  test.each(['csv', 'ndjson', 'arrow', 'arrows'])(
    'folders with constants in their names, files of different columns: %s',
    async (ending) => {
      const root = join(folder, `hive-${ending}`);
      for (const year of [2019, 2020]) {
        mkdirSync(join(root, `year=${year}`), { recursive: true });
        const source = new TextSource(write(`user,item,title\n${lines}`, 'csv'));
        const { openSink } = await import('../../connectors/open-sink.ts');
        const stream = await source.execute({ signal: new AbortController().signal }, undefined);
        await (
          await openSink(join(root, `year=${year}`, `ratings.${ending}`))
        ).consume(stream, {
          signal: new AbortController().signal,
          events: () => {},
        } as never);
      }
      const source = await openSource(root);
      for (const columns of [undefined, ['year', 'item'], ['year']]) {
        const { again: _again, ...split } = await readInSplits(source, 5000, { columns });
        const whole = await readWhole(source, { columns });
        expect(split).toEqual(whole);
        expect('rows' in whole && whole.rows.length).toBe(6000);
      }
    },
  );

  test('stdin has one stream only', async () => {
    expect(
      await new TextSource('-').splits({ signal: new AbortController().signal }, undefined, undefined, 100),
    ).toBeUndefined();
  });
});
