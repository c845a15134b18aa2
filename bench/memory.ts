/**
 * Peak resident memory of whole `train` runs under budgets, compared with the budget: ids of several types,
 * in Parquet, CSV and Arrow files. Each run is a separate process of the built program; a run that ends with
 * status 4 shows the reason.
 *
 *     node bench/memory.ts [ratings, default 3000000] [budgets, default 450MiB,700MiB]
 */
import {
  Dictionary,
  Field,
  Float32,
  Int32,
  Int64,
  makeData,
  makeVector,
  RecordBatch,
  Schema,
  Struct,
  type TypeMap,
  Utf8,
  vectorFromArray,
  type Vector,
} from 'apache-arrow';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Session } from '../api/session.ts';
import { parseSize } from '../api/sizes.ts';
import { describeMachine } from './machine.ts';

const batchRows = 1 << 16;
const [users, items] = [100_000, 20_000];

/** Makes ids from the numbers 0 .. count. */
interface Ids {
  readonly name: string;
  make(count: number, prefix: string, number: number): (numbers: Int32Array) => Vector;
}

const texts = (count: number, text: (id: number) => string) =>
  Array.from({ length: count }, (_, id) => text(id));
const uuid = (prefix: string) => (id: number) =>
  `${prefix}${String(id).padStart(7, '0')}-9b1d-4c6e-8f2a-0123456789ab`;

function gathered(all: readonly string[]): (numbers: Int32Array) => Vector {
  const encoded = all.map((text) => Buffer.from(text));
  return (numbers) => {
    const valueOffsets = new Int32Array(numbers.length + 1);
    for (let i = 0; i < numbers.length; i++)
      valueOffsets[i + 1] = valueOffsets[i] + encoded[numbers[i]].length;
    const data = new Uint8Array(valueOffsets[numbers.length]);
    for (let i = 0; i < numbers.length; i++) data.set(encoded[numbers[i]], valueOffsets[i]);
    return makeVector(
      makeData({ type: new Utf8(), length: numbers.length, nullCount: 0, valueOffsets, data }),
    );
  };
}

const kinds: readonly Ids[] = [
  {
    name: 'int32',
    make: () => (numbers) =>
      makeVector(makeData({ type: new Int32(), length: numbers.length, nullCount: 0, data: numbers })),
  },
  {
    name: 'int64',
    make: () => (numbers) =>
      makeVector(
        makeData({
          type: new Int64(),
          length: numbers.length,
          nullCount: 0,
          data: BigInt64Array.from(numbers, (id) => 1_000_000_007n * BigInt(id)),
        }),
      ),
  },
  { name: 'short text', make: (count, prefix) => gathered(texts(count, (id) => `${prefix}${id}`)) },
  { name: 'long text', make: (count, prefix) => gathered(texts(count, uuid(prefix))) },
  {
    name: 'dictionary',
    make: (count, prefix, number) => {
      const dictionary = vectorFromArray(texts(count, uuid(prefix)), new Utf8());
      const type = new Dictionary(new Utf8(), new Int32(), number);
      return (numbers) =>
        makeVector(makeData({ type, length: numbers.length, nullCount: 0, data: numbers, dictionary }));
    },
  },
];

function* ratings(rows: number, ids: Ids): Generator<RecordBatch> {
  const [user, item] = [ids.make(users, 'u', 0), ids.make(items, 'i', 1)];
  for (let from = 0; from < rows; from += batchRows) {
    const length = Math.min(batchRows, rows - from);
    const scrambled = Uint32Array.from(
      { length },
      (_, i) => Math.imul(from + i, 2654435761) ^ ((from + i) >>> 7),
    );
    const rating = makeData({
      type: new Float32(),
      length,
      nullCount: 0,
      data: Float32Array.from(scrambled, (value) => ((value >>> 9) % 10) / 2 + 0.5),
    });
    const columns = [
      user(Int32Array.from(scrambled, (value) => value % users)).data[0],
      item(Int32Array.from(scrambled, (value) => (Math.imul(value, 40503) >>> 0) % items)).data[0],
      rating,
    ];
    const schema = new Schema(
      ['user', 'item', 'rating'].map((name, i) => new Field(name, columns[i].type, false)),
    );
    yield new RecordBatch(
      schema,
      makeData({ type: new Struct<TypeMap>(schema.fields), length, nullCount: 0, children: columns }),
    );
  }
}

async function write(session: Session, file: string, rows: number, ids: Ids): Promise<void> {
  const data = session.from(ratings(rows, ids));
  if (file.endsWith('.parquet')) await data.write.parquet(file);
  else if (file.endsWith('.csv')) await data.write.csv(file);
  else await data.write.arrow(file);
}

const main = join(import.meta.dirname, '../dist/programs/cli/main.js');
const rows = Number(process.argv[2] ?? 3_000_000);
const budgets = (process.argv[3] ?? '450MiB,700MiB').split(',');
const folder = process.env.FACTORFLOW_BENCH_FOLDER ?? mkdtempSync(join(tmpdir(), 'factorflow-bench-'));
try {
  console.log(
    `${describeMachine()}\n${rows.toLocaleString('en')} ratings; peak resident memory in MiB, and its share of the budget`,
  );
  const session = Session.withoutDevices();
  for (const ids of kinds) {
    for (const format of ['parquet', 'csv', 'arrow']) {
      const file = join(folder, `${ids.name.replace(' ', '-')}-${rows}.${format}`);
      if (!existsSync(file)) await write(session, file, rows, ids);
      const cells = budgets.map((budget) => {
        const args = [
          main,
          'train',
          file,
          '--model-dir',
          join(folder, 'model'),
          '--force',
          '--rank',
          '8',
          '--max-iter',
          '1',
          '--workers',
          '2',
          '--json',
          '--quiet',
          '--memory-budget',
          budget,
        ];
        const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
        if (status !== 0) return `status ${status}: ${stderr.trim().split('\n')[0]}`;
        const peak = (JSON.parse(stdout) as { readonly peakRssBytes: number }).peakRssBytes;
        return `${(peak / 2 ** 20).toFixed(0)} (${((100 * peak) / parseSize(budget, 'budget')).toFixed(0)} %)`;
      });
      console.log(
        `${ids.name.padEnd(12)} ${format.padEnd(8)} ${budgets.map((budget, i) => `${budget}: ${cells[i]}`).join('   ')}`,
      );
    }
  }
} finally {
  if (process.env.FACTORFLOW_BENCH_FOLDER === undefined) rmSync(folder, { recursive: true });
}
