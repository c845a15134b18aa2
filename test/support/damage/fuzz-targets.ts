import {
  DataType,
  Dictionary,
  Field,
  Float32,
  Int32,
  Int64,
  List,
  makeData,
  RecordBatch,
  RecordBatchFileWriter,
  RecordBatchStreamWriter,
  Schema,
  Struct,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import type { Data } from 'apache-arrow';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { ArrowSource } from '../../../connectors/arrow/arrow-source.ts';
import { hasZstd } from '../../../connectors/compression/compressions.ts';
import { packLz4Bytes } from '../../../connectors/compression/lz4-frame.ts';
import { NdjsonSource } from '../../../connectors/ndjson/ndjson-source.ts';
import { loadModel, saveModel } from '../../../connectors/model/model-store.ts';
import { ParquetSink } from '../../../connectors/parquet/parquet-sink.ts';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { TextSource } from '../../../connectors/text/text-source.ts';
import { FactorFlowError } from '../../../engine/errors.ts';
import { noEvents } from '../../../engine/events.ts';
import { RunMetrics } from '../../../engine/metrics.ts';
import type { Source } from '../../../engine/stream/operator.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { plainValues, readableStyle } from '../../../engine/values/plain-values.ts';
import { nullableTexts } from '../../../engine/values/value-texts.ts';
import { batchStream } from '../../../engine/stream/stream.ts';
import { mutate, randomOf } from './mutations.ts';

/** Files of one kind, and their reader. */
export interface FuzzTarget {
  readonly seeds: readonly (readonly [name: string, bytes: Uint8Array])[];
  readonly isText: boolean;
  /** Reads all of the damaged file; throws as the library does. */
  read(folder: string, name: string, bytes: Uint8Array): Promise<void>;
}

export const fuzzKinds = ['parquet', 'csv', 'ndjson', 'arrow', 'model'] as const;
export type FuzzKind = (typeof fuzzKinds)[number];

export type FuzzOutcome = { readonly result: 'read' | 'refused' } | { readonly found: string };

/** The outcome of case `number`: a file that was damaged at random. */
export async function fuzzCase(target: FuzzTarget, folder: string, number: number): Promise<FuzzOutcome> {
  const random = randomOf(number);
  const [name, bytes] = target.seeds[random(target.seeds.length)];
  const [, other] = target.seeds[random(target.seeds.length)];
  return outcomeOf(target, folder, name, mutate(bytes, other, number, target.isText));
}

/** Largest file of which every bit is flipped. */
const SMALL_BYTES = 6000;

/** The outcome of flipping one bit of the small files: consecutive numbers are spread, and reach every bit. */
export async function flipCase(target: FuzzTarget, folder: string, number: number): Promise<FuzzOutcome> {
  const small = target.seeds.filter(([, { length }]) => length <= SMALL_BYTES);
  let bit = (number * 4099) % (8 * small.reduce((sum, [, { length }]) => sum + length, 0));
  const at = small.findIndex(([, { length }]) => (bit -= 8 * length) < 0);
  const [name, whole] = small[at];
  const bytes = Uint8Array.from(whole);
  bit += 8 * bytes.length;
  bytes[bit >> 3] ^= 1 << (bit & 7);
  return outcomeOf(target, folder, name, bytes);
}

/** `found`: the file is neither read nor refused with an error of this library. */
async function outcomeOf(
  target: FuzzTarget,
  folder: string,
  name: string,
  bytes: Uint8Array,
): Promise<FuzzOutcome> {
  try {
    await target.read(folder, name, bytes);
    return { result: 'read' };
  } catch (error) {
    if (error instanceof FactorFlowError && [3, 4].includes(error.exitCode) && error.message.includes(folder))
      return { result: 'refused' };
    return { found: `${name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}` };
  }
}

export async function fuzzTarget(kind: FuzzKind, folder: string): Promise<FuzzTarget> {
  mkdirSync(folder, { recursive: true });
  if (kind === 'parquet')
    return {
      seeds: [...parquetSeeds(), await writtenSeed(folder)],
      isText: false,
      read: readFile((file) => new ParquetSource(file)),
    };
  if (kind === 'csv')
    return { seeds: textSeeds(), isText: true, read: readFile((file) => new TextSource(file)) };
  if (kind === 'ndjson')
    return { seeds: ndjsonSeeds(), isText: true, read: readFile((file) => new NdjsonSource(file)) };
  if (kind === 'arrow')
    return {
      seeds: [...arrowSeeds(), ...foreignSeeds()],
      isText: false,
      read: readFile((file) => new ArrowSource(file)),
    };
  return modelTarget(folder);
}

function readFile(open: (file: string) => Source) {
  return async (folder: string, name: string, bytes: Uint8Array) => {
    const file = join(folder, name);
    writeFileSync(file, bytes);
    const ctx = { signal: new AbortController().signal } as ExecutionContext;
    for await (const batch of await open(file).execute(ctx)) {
      for (const column of batch.data.children) touch(column, batch.numRows);
    }
  };
}

/** Converts all values as the program does. Checks that none is missing, an error that would stay silent. */
function touch(data: Data, rows: number): void {
  if (data.length !== rows) throw new Error(`a column of ${data.length} values in a batch of ${rows}`);
  const [value, text] = [plainValues(data), nullableTexts(data, readableStyle)];
  for (let row = 0; row < rows; row++)
    if (value(row) === undefined || text(row) === undefined)
      throw new Error(`value ${row} of ${rows} is undefined`);
}

function parquetSeeds(): [string, Uint8Array][] {
  const golden = join(import.meta.dirname, '../../golden/parquet');
  return readdirSync(golden)
    .filter((name) => name.endsWith('.parquet'))
    .sort()
    .map((name) => [name, readFileSync(join(golden, name))]);
}

/** A file of this library, whose footer contains an Arrow schema. */
async function writtenSeed(folder: string): Promise<[string, Uint8Array]> {
  const file = join(folder, 'written.parquet');
  const batch = plainBatch();
  const batches = (async function* () {
    yield batch;
  })();
  const { signal } = new AbortController();
  const ctx = { signal, events: noEvents, metrics: new RunMetrics() } as ExecutionContext;
  await new ParquetSink(file, { overwrite: true }).consume(batchStream(batch.schema, batches), ctx);
  return ['written.parquet', readFileSync(file)];
}

function textSeeds(): [string, Uint8Array][] {
  const lines = (line: (i: number) => string) => Array.from({ length: 60 }, (_, i) => line(i)).join('');
  const ratings = `userId,movieId,rating,timestamp\n${lines((i) => `${i},${i * 7},${i / 2},${1112486027 + i}\n`)}`;
  return [
    ['ratings.csv', Buffer.from(ratings)],
    [
      'quoted.csv',
      Buffer.from(`id,name,note\r\n${lines((i) => `${i},"name ""${i}"", é","line\n${i}"\r\n`)}`),
    ],
    ['ratings.dat', Buffer.from(lines((i) => `${i}::${i * 3}::${i % 5}::${978300760 + i}\n`))],
    ['tabs.tsv', Buffer.from(`user\titem\n${lines((i) => `${i * 10_000_000_000}\tb${i}\n`)}`)],
    ['ratings.csv.gz', gzipSync(ratings)],
    ['ratings.csv.lz4', packLz4Bytes(Buffer.from(ratings))],
    ...(hasZstd() ? [['ratings.csv.zst', zstdCompressSync(ratings)] satisfies [string, Uint8Array]] : []),
  ];
}

function ndjsonSeeds(): [string, Uint8Array][] {
  const lines = (row: (i: number) => unknown) =>
    Array.from({ length: 60 }, (_, i) => `${JSON.stringify(row(i))}\n`).join('');
  const ratings = lines((i) => ({ user: i, item: `item ${i % 7}`, rating: i / 2 }));
  return [
    ['ratings.ndjson', Buffer.from(ratings)],
    [
      'rich.ndjson',
      Buffer.from(
        lines((i) => ({ user: i * 10_000_000_000, flag: i % 2 === 0, text: `"é"\n${i}`, none: null })),
      ),
    ],
    ['ratings.jsonl.lz4', packLz4Bytes(Buffer.from(ratings))],
  ];
}

/** Files of Polars and pyarrow. */
function foreignSeeds(): [string, Uint8Array][] {
  const golden = join(import.meta.dirname, '../../golden/arrow');
  return readdirSync(golden)
    .filter((name) => /\.(arrow|arrows|feather)$/.test(name) && (hasZstd() || !name.includes('zstd')))
    .sort()
    .map((name) => [name, readFileSync(join(golden, name))]);
}

const ROWS = 40;
const columnOf = (value: (i: number) => unknown) => Array.from({ length: ROWS }, (_, i) => value(i));

function batchOf(columns: readonly (readonly [string, DataType, readonly unknown[]])[]): RecordBatch {
  const children = columns.map(([, type, values]) => vectorFromArray(values, type).data[0]);
  const schema = new Schema(columns.map(([name], index) => new Field(name, children[index].type, true)));
  return new RecordBatch(
    schema,
    makeData({ type: new Struct(schema.fields), length: ROWS, nullCount: 0, children }),
  );
}

function plainBatch(): RecordBatch {
  return batchOf([
    ['user', new Int32(), columnOf((i) => i)],
    ['item', new Int64(), columnOf((i) => BigInt(i) << 40n)],
    ['rating', new Float32(), columnOf((i) => (i % 7 === 0 ? null : i / 2))],
    ['note', new Utf8(), columnOf((i) => (i % 5 === 0 ? null : `note ${i}`))],
  ]);
}

function arrowSeeds(): [string, Uint8Array][] {
  const plain = plainBatch();
  const rich = batchOf([
    ['tag', new Dictionary(new Utf8(), new Int32()), columnOf((i) => `tag ${i % 5}`)],
    [
      'list',
      new List(new Field('element', new Float32(), true)),
      columnOf((i) => Array.from({ length: i % 4 }, () => i)),
    ],
  ]);
  const encode = (each: RecordBatch, writer: RecordBatchStreamWriter | RecordBatchFileWriter) => {
    for (let i = 0; i < 3; i++) writer.write(each);
    return writer.finish().toUint8Array(true);
  };
  return [
    ['plain-stream.arrow', encode(plain, new RecordBatchStreamWriter())],
    ['plain-file.arrow', encode(plain, new RecordBatchFileWriter())],
    ['rich-stream.arrow', encode(rich, new RecordBatchStreamWriter())],
    ['rich-file.arrow', encode(rich, new RecordBatchFileWriter())],
  ];
}

/** A small model; one of its files is replaced by the damaged one. */
async function modelTarget(folder: string): Promise<FuzzTarget> {
  const whole = join(folder, 'whole');
  rmSync(whole, { recursive: true, force: true });
  const side = (rows: number) => ({
    ids: vectorFromArray(
      Array.from({ length: rows }, (_, i) => i * 3),
      new Int32(),
    ),
    factors: Float32Array.from({ length: rows * 4 }, (_, i) => i / 7),
  });
  const [users, items] = [side(50), side(20)];
  const columns = { user: 'user', item: 'item', rating: 'rating', prediction: 'prediction' };
  await saveModel(whole, {
    rank: 4,
    columns,
    coldStartStrategy: 'nan',
    factorflow: {},
    userIds: users.ids,
    userFactors: users.factors,
    itemIds: items.ids,
    itemFactors: items.factors,
  });
  const files = readdirSync(whole, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  return {
    seeds: files.map((file) => [file.slice(whole.length + 1), readFileSync(file)]),
    isText: false,
    read: async (base, name, bytes) => {
      const model = join(base, 'model');
      rmSync(model, { recursive: true, force: true });
      cpSync(whole, model, { recursive: true });
      writeFileSync(join(model, name), bytes);
      const { rank, userFactors, itemFactors } = await loadModel(model);
      if (userFactors.length % rank !== 0 || itemFactors.length % rank !== 0)
        throw new Error(`${userFactors.length} and ${itemFactors.length} factors of rank ${rank}`);
    },
  };
}
