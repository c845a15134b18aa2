/**
 * Parts by range: sorted one by one and concatenated, they equal the sorted whole. FACTORFLOW_SEED draws
 * other rows.
 */
import {
  type Data,
  Dictionary,
  Int32,
  type RecordBatch,
  RecordBatchReader,
  Table,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import { expect, it } from 'vitest';
import { CounterRandom } from '../../../engine/random.ts';
import { boundsOf, rangeParts, sampleKeys } from '../../../engine/sorting/range-parts.ts';
import { type SortKey, SortKeys } from '../../../engine/sorting/sort-keys.ts';
import { sortRows } from '../../../engine/sorting/sort-rows.ts';
import { joinData } from '../../../engine/stream/join-data.ts';
import { batchOf } from '../expressions/evaluated.ts';
import { batchOfCells, drawCells, randomColumns } from '../expressions/random-rows.ts';
import { sampleSize } from '../../support/deep.ts';

const seed = new CounterRandom(Number(process.env.FACTORFLOW_SEED ?? 1));
let draws = 0;
const random = () => seed.uniform(draws++);
const pick = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)];

/** The batches of each task. */
type Tasks = readonly (readonly RecordBatch[])[];

/** Rows cut at random into the batches of tasks, some of them empty. */
function cut(whole: RecordBatch, tasks: number): Tasks {
  const ends = Array.from({ length: 3 * tasks - 1 }, () => Math.floor(random() * whole.numRows));
  const all = [0, ...ends.sort((a, b) => a - b), whole.numRows];
  const batches = all.slice(1).map((end, i) => whole.slice(all[i], end));
  return Array.from({ length: tasks }, (_, task) => batches.slice(3 * task, 3 * task + 3));
}

/** As it comes back from a thread. */
function sent(batch: RecordBatch): RecordBatch {
  return RecordBatchReader.from(tableToIPC(new Table([batch]))).readAll()[0];
}

function eachBatch(tasks: Tasks, call: (batch: RecordBatch, at: { task: number; firstRow: number }) => void) {
  for (const [task, batches] of tasks.entries()) {
    let firstRow = 0;
    for (const batch of batches) {
      call(batch, { task, firstRow });
      firstRow += batch.numRows;
    }
  }
}

function partsOf(tasks: Tasks, keys: readonly SortKey[], parts: number, every: number): number[] {
  const samples: RecordBatch[] = [];
  eachBatch(tasks, (batch, at) => samples.push(sent(sampleKeys(batch, keys, { ...at, every }))));
  const bounds = sent(boundsOf(samples, keys, parts));
  expect(bounds.numRows).toBeLessThan(parts);
  const found: number[] = [];
  eachBatch(tasks, (batch, at) => found.push(...rangeParts(batch, keys, bounds, at)));
  return found;
}

/** The concatenated parts, each sorted stably. */
function sortedByParts(whole: RecordBatch, keys: readonly SortKey[], parts: readonly number[]): number[] {
  const order = [...sortRows(new SortKeys(whole.schema, keys).of(whole))];
  const sorted: number[] = [];
  for (let part = 0; part <= Math.max(...parts); part++)
    sorted.push(...order.filter((row) => parts[row] === part));
  return sorted;
}

function check(whole: RecordBatch, keys: readonly SortKey[], parts: number, every: number): number[] {
  const found = partsOf(cut(whole, 4), keys, parts, every);
  const name = `${JSON.stringify(keys)} in ${parts} parts`;
  expect(found, name).toHaveLength(whole.numRows);
  const order = [...sortRows(new SortKeys(whole.schema, keys).of(whole))];
  expect(sortedByParts(whole, keys, found), name).toEqual(order);
  return found;
}

const longs = ['', 'a', 'the same prefix', 'the same prefix 1', 'the same prefix 2', 'the same', 'z\u00e9'];
const drawn = randomColumns(random);
const columns = { ...drawn, long: { ...drawn.t, draw: () => pick(longs) } };

it('gives parts of random rows that are the sorted whole, for keys of all types', () => {
  const names = Object.keys(columns);
  for (let table = 0; table < sampleSize(120); table++) {
    const cells = drawCells(columns, Math.floor(random() * 400), () => random() < 0.15);
    const keys = Array.from({ length: 1 + Math.floor(random() * 3) }, (): SortKey => ({
      column: random() < 0.2 ? 'long' : pick(names),
      descending: random() < 0.5,
      nulls: pick([undefined, 'first', 'last']),
    }));
    const whole = batchOfCells(columns, cells);
    if (whole.numRows > 0) check(whole, keys, 1 + Math.floor(random() * 20), pick([1, 3, 20, 1000]));
  }
});

const numbers = (values: readonly (number | null)[]): Data => vectorFromArray(values, new Int32()).data[0];

function largestShare(parts: readonly number[]): number {
  const counts = new Map<number, number>();
  for (const part of parts) counts.set(part, (counts.get(part) ?? 0) + 1);
  return Math.max(...counts.values()) / parts.length;
}

it('keeps parts even where half of the rows have one key, or all of them', () => {
  for (const share of [0.5, 1]) {
    const users = numbers(Array.from({ length: 20_000 }, () => (random() < share ? 7 : random() * 1000)));
    const parts = check(batchOf({ user: users }), [{ column: 'user' }], 16, 50);
    expect(largestShare(parts)).toBeLessThan(1.8 / 16);
  }
});

it('keeps parts even of rows whose pattern repeats as often as samples are taken', () => {
  const rows = numbers(Array.from({ length: 20_000 }, (_, row) => row % 100));
  expect(largestShare(check(batchOf({ x: rows }), [{ column: 'x' }], 8, 100))).toBeLessThan(2 / 8);
});

it('takes keys behind dictionaries, which may differ from batch to batch', () => {
  const words = Array.from({ length: 500 }, () => pick([...longs, null]));
  const type = new Dictionary(new Utf8(), new Int32());
  const halves = [words.slice(0, 250), words.slice(250)].map((part) => vectorFromArray(part, type).data[0]);
  const tasks = halves.map((data) => [batchOf({ word: data })]);
  const whole = batchOf({ word: joinData(type, halves) });
  const keys = [{ column: 'word', descending: true }];
  const parts = partsOf(tasks, keys, 6, 5);
  expect(sortedByParts(whole, keys, parts)).toEqual([
    ...sortRows(new SortKeys(whole.schema, keys).of(whole)),
  ]);
});

it('takes texts that begin with the same bytes, and others before, among and after them', () => {
  const begins = ['user_00000', 'user_00000', 'user_00000', 'user_', 'user_1', 'user', '', 'v'];
  for (const share of [0, 0.01, 0.3])
    for (const descending of [false, true]) {
      const words = Array.from({ length: 3000 }, () =>
        random() < share ? pick([...begins, null]) : `user_00000${Math.floor(random() * 500)}`,
      );
      const whole = batchOf({ word: vectorFromArray(words, new Utf8()).data[0] });
      check(whole, [{ column: 'word', descending }], 16, 40);
    }
});

it('gives one part without samples', () => {
  const empty = batchOf({ x: numbers([]) });
  const keys = [{ column: 'x' }];
  const bounds = boundsOf([sampleKeys(empty, keys, { task: 0, firstRow: 0, every: 10 })], keys, 8);
  const parts = rangeParts(batchOf({ x: numbers([3, null, 1]) }), keys, bounds, { task: 1, firstRow: 5 });
  expect([...parts]).toEqual([0, 0, 0]);
});

it('decides by as many bits of the last word as there is room for, also where that is none', () => {
  for (const widest of [500_000, 600_000, 680_000, 1_000_000, 2_000_000]) {
    const rows = 300;
    const column = (value: () => number) =>
      vectorFromArray(Array.from({ length: rows }, value), new Int32()).data[0];
    const whole = batchOf({
      a: column(() => pick([-(2 ** 31), 0, 2 ** 31 - 1])),
      b: column(() => pick([0, 1, widest])),
      c: column(() => Math.floor(random() * 2 ** 32) - 2 ** 31),
    });
    for (const parts of [2, 5, 40])
      check(whole, [{ column: 'a' }, { column: 'b' }, { column: 'c' }], parts, 2);
  }
});
