import { type RecordBatch, RecordBatchReader, vectorFromArray } from 'apache-arrow';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PartitionedSink } from '../../../connectors/folders/partitioned-sink.ts';
import { arrowFiles } from '../../../connectors/arrow/arrow-sink.ts';
import { ndjsonFiles } from '../../../connectors/ndjson/ndjson-sink.ts';
import { parquetFiles } from '../../../connectors/parquet/parquet-sink.ts';
import { textFiles } from '../../../connectors/text/text-sink.ts';
import { joinData } from '../../../engine/stream/join-data.ts';
import { type BatchStream, batchStream } from '../../../engine/stream/stream.ts';
import { batchOf } from '../../engine/expressions/evaluated.ts';
import { context, duckRows, outcome, random, streamOf } from '../parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const below = random(11);
const FOLDERS = 200;
const ROWS = 20_000;

/** Rows of many folders in random order: `n` counts them. */
function mixedBatches(): RecordBatch[] {
  const batches: RecordBatch[] = [];
  for (let n = 0; n < ROWS; n += 1000) {
    const rows = Array.from({ length: 1000 }, (_, i) => n + i);
    const text = (row: number) => (row % 5 === 0 ? null : `text ${row}`);
    batches.push(
      batchOf({
        n: vectorFromArray(Int32Array.from(rows)).data[0],
        // Few rows are in folders of high numbers.
        k: vectorFromArray(Int32Array.from(rows, () => Math.floor((below(1000) / 1000) ** 2 * FOLDERS)))
          .data[0],
        t: vectorFromArray(rows.map(text)).data[0],
      }),
    );
  }
  return batches.map((batch) => plainTexts(batch));
}

/** Texts without a dictionary, which vectorFromArray makes. */
function plainTexts(batch: RecordBatch): RecordBatch {
  const texts = batch.getChild('t');
  return batchOf({
    n: batch.data.children[0],
    k: batch.data.children[1],
    t: vectorFromArray(texts?.toJSON() ?? [], texts?.type.dictionary).data[0],
  });
}

const filesBelow = (root: string) =>
  readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(root, name)).isFile())
    .sort();

const sink = (to: string, options: { bufferBytes?: number; overwrite?: boolean } = {}) =>
  new PartitionedSink(path(to), parquetFiles(path(to), {}), { columns: ['k'], ...options });

describe('rows of many folders in random order', () => {
  const batches = mixedBatches();
  const schema = batches[0].schema;

  it('are a few files a folder with a buffer of a fourth of them, in the order of the input', async () => {
    const summary = await sink('mixed', { bufferBytes: 150_000 }).consume(
      streamOf(schema, batches),
      context() as never,
    );
    const files = filesBelow(path('mixed'));
    expect(summary).toMatchObject({ rows: ROWS, files: files.length, path: path('mixed') });
    expect(summary.bytes).toBe(
      files.reduce((sum, file) => sum + statSync(join(path('mixed'), file)).size, 0),
    );
    expect(files.length).toBeGreaterThan(FOLDERS);
    expect(files.length).toBeLessThan(3 * FOLDERS);
    expect(files[0]).toBe('k=0/part-00000.parquet');
    const from = `read_parquet('${path('mixed')}/*/*.parquet', hive_partitioning = true, filename = true, file_row_number = true)`;
    const written = await duckRows(`SELECT n, k::INTEGER, t FROM ${from} ORDER BY filename, file_row_number`);
    const expected = batches
      .flatMap((batch) => batch.toArray().map((row) => Object.values(row.toJSON() as object)))
      .sort((a, b) => (`k=${a[1]}/` < `k=${b[1]}/` ? -1 : a[1] === b[1] ? Number(a[0]) - Number(b[0]) : 1));
    expect(written).toEqual(expected);
  });

  it('give the same files however they are cut into batches', async () => {
    const columns = schema.fields.map(({ type }, i) =>
      joinData(
        type,
        batches.map(({ data }) => data.children[i]),
      ),
    );
    const whole = batchOf({ n: columns[0], k: columns[1], t: columns[2] });
    const cuts = [0, 1, 8191, 8192, 10_000, 19_999, ROWS];
    const recut = cuts.slice(1).map((end, i) => whole.slice(cuts[i], end));
    const write = async (to: string, rows: BatchStream) => {
      await sink(to, { bufferBytes: 150_000 }).consume(rows, context() as never);
      return filesBelow(path(to)).map((file) => [
        file,
        readFileSync(join(path(to), file)).toString('base64'),
      ]);
    };
    expect(await write('cut-1', streamOf(schema, recut))).toEqual(
      await write('cut-2', streamOf(schema, batches)),
    );
  });

  it('are a file a folder where all of them fit the buffer', async () => {
    const { files } = await sink('fits').consume(streamOf(schema, batches), context() as never);
    expect(files).toBe(readdirSync(path('fits')).length);
  });

  it('a cancel leaves nothing, and a failure of the input', async () => {
    const controller = new AbortController();
    async function* cancelled() {
      for (const [i, batch] of batches.entries()) {
        if (i === 9) controller.abort();
        yield batch;
      }
    }
    async function* failing() {
      yield* batches.slice(0, 9);
      throw new Error('the source failed');
    }
    const before = readdirSync(folder);
    const small = { bufferBytes: 30_000 };
    await expect(
      sink('none', small).consume(batchStream(schema, cancelled()), context(controller.signal) as never),
    ).rejects.toThrow('cancelled');
    await expect(
      sink('none', small).consume(batchStream(schema, failing()), context() as never),
    ).rejects.toThrow('the source failed');
    expect(readdirSync(folder)).toEqual(before);
  });
});

const few = batchOf({
  k: vectorFromArray(Int32Array.of(1, 2, 1)).data[0],
  v: vectorFromArray(Float64Array.of(1, 2, 3)).data[0],
});
const write = (made: PartitionedSink) => made.consume(streamOf(few.schema, [few]), context() as never);

describe('an existing output', () => {
  it('is replaced with overwrite alone, and only where all in it is of this kind', async () => {
    await write(sink('there'));
    await expect(sink('there').check()).rejects.toThrow('the output exists already');
    mkdirSync(path('there/k=3'));
    writeFileSync(path('there/k=3/.part-0.parquet.crc'), '');
    writeFileSync(path('there/_SUCCESS'), '');
    await write(sink('there', { overwrite: true }));
    expect(filesBelow(path('there'))).toEqual(['k=1/part-00000.parquet', 'k=2/part-00000.parquet']);
    writeFileSync(path('there/k=1/notes.txt'), '');
    await expect(write(sink('there', { overwrite: true }))).rejects.toThrow(
      'it holds "k=1/notes.txt", which does not belong to this kind of output',
    );
  });

  it('of another format is not replaced', async () => {
    const csv = (overwrite: boolean) =>
      new PartitionedSink(path('text'), textFiles({}), { columns: ['k'], overwrite });
    await write(csv(false));
    await write(csv(true));
    await expect(write(sink('text', { overwrite: true }))).rejects.toThrow('it holds "k=1/part-00000.csv"');
  });
});

it('a stream without rows is a folder without files', async () => {
  const none = await sink('empty').consume(streamOf(few.schema, []), context() as never);
  expect(none).toMatchObject({ rows: 0, files: 0, bytes: 0 });
  expect(readdirSync(path('empty'))).toEqual([]);
});

it('rowsPerPart cuts the rows of a folder into files', async () => {
  const files = parquetFiles(path('parts'), { rowsPerPart: 1 });
  const { files: count } = await write(new PartitionedSink(path('parts'), files, { columns: ['k'] }));
  expect(count).toBe(3);
  expect(filesBelow(path('parts'))).toEqual([
    'k=1/part-00000.parquet',
    'k=1/part-00001.parquet',
    'k=2/part-00000.parquet',
  ]);
});

it('the backend parquetjs-lite writes folders too', async () => {
  const files = parquetFiles(path('lite'), { backend: 'parquetjs-lite', codec: 'gzip' });
  await write(new PartitionedSink(path('lite'), files, { columns: ['k'] }));
  expect(await duckRows(`SELECT v FROM '${path('lite')}/*/*.parquet' ORDER BY v`)).toEqual([[1], [2], [3]]);
});

it('text, NDJSON and Arrow have a file a folder, packed where that is asked for', async () => {
  const columns = ['k'];
  await write(new PartitionedSink(path('csv'), textFiles({ delimiter: ';' }), { columns }));
  expect(readFileSync(path('csv/k=1/part-00000.csv'), 'utf8')).toBe('v\n1.0\n3.0\n');
  await write(new PartitionedSink(path('gz'), textFiles({ compression: 'gzip' }), { columns }));
  expect(filesBelow(path('gz'))).toEqual(['k=1/part-00000.csv.gz', 'k=2/part-00000.csv.gz']);
  await write(new PartitionedSink(path('ndjson'), ndjsonFiles({}), { columns }));
  expect(readFileSync(path('ndjson/k=1/part-00000.ndjson'), 'utf8')).toBe('{"v":1.0}\n{"v":3.0}\n');
  await write(new PartitionedSink(path('arrow'), arrowFiles({}), { columns }));
  const read = RecordBatchReader.from(readFileSync(path('arrow/k=1/part-00000.arrow')));
  expect([...read].flatMap((batch) => batch.toArray().map(String))).toEqual(['{"v": 1}', '{"v": 3}']);
});

it.each<[string, () => PartitionedSink, string]>([
  [
    'stdout',
    () => new PartitionedSink('-', textFiles({}), { columns: ['k'] }),
    'cannot be written to stdout',
  ],
  [
    'a column twice',
    () => new PartitionedSink(path('x'), textFiles({}), { columns: ['k', 'k'] }),
    '"k" twice',
  ],
  ['no column', () => new PartitionedSink(path('x'), textFiles({}), { columns: [] }), 'one column or more'],
  [
    'a delimiter',
    () => new PartitionedSink(path('x'), textFiles({ delimiter: '' }), { columns: ['k'] }),
    'delimiter',
  ],
  [
    'a codec',
    () => new PartitionedSink(path('x'), parquetFiles('x', { rowsPerPart: 0 }), { columns: ['k'] }),
    'rowsPerPart',
  ],
])('%s is refused', (_, make, message) => {
  expect(make).toThrow(message);
});

it('columns that cannot name folders are refused, and nothing is left', async () => {
  const named = (columns: string[]) =>
    new PartitionedSink(path('bad'), parquetFiles(path('bad'), {}), { columns });
  await expect(write(named(['kk']))).rejects.toThrow(
    'there is no column "kk" to partition by. Did you mean k? The columns are: k, v',
  );
  await expect(write(named(['k', 'v']))).rejects.toThrow('all columns are partition columns');
  const long = batchOf({
    k: vectorFromArray(Int32Array.of(1)).data[0],
    t: vectorFromArray(['é'.repeat(200)]).data[0],
  });
  const result = await outcome(() => named(['t']).consume(streamOf(long.schema, [long]), context() as never));
  expect(String(result)).toContain('which has at most 255 bytes');
  expect(existsSync(path('bad'))).toBe(false);
  expect(readdirSync(folder).filter((name) => name.startsWith('.'))).toEqual([]);
  rmSync(path('mixed'), { recursive: true });
});
