/** Joins of random tables give DuckDB's rows, in the promised order. FACTORFLOW_SEED draws others. */
import {
  Dictionary,
  Field,
  Float64,
  Int32,
  List,
  Null,
  type RecordBatch,
  Schema,
  Table,
  Utf8,
  type Vector,
  vectorFromArray,
} from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import type { Side } from '../../../../engine/stream/operator.ts';
import {
  joinKinds,
  type JoinParams,
  mayBroadcast,
} from '../../../../operators/dataflow/join/join-columns.ts';
import { JoinRows } from '../../../../operators/dataflow/join/join-rows.ts';
import { chainOperatorFrom } from '../../../../operators/pipeline/operator-chain.ts';
import { collect, context, streamOf } from '../../../connectors/parquet/parquet-testing.ts';
import { sampleSize } from '../../../support/deep.ts';
import { batchesOf, drawJoin, duckJoin, type RandomJoin, resultColumns, rowTexts } from './random-joins.ts';
import { drawnNumbers } from '../../../support/drawn-numbers.ts';

const random = drawnNumbers();
const sides: readonly Side[] = ['left', 'right'];

type Batches = readonly [RecordBatch, ...RecordBatch[]];

async function joined(left: Batches, right: Batches, params: JoinParams): Promise<RecordBatch[]> {
  const operator = (await chainOperatorFrom(
    JSON.parse(JSON.stringify(new JoinRows(params).portable())),
  )) as JoinRows;
  const stream = operator.execute(
    streamOf(left[0].schema, left),
    streamOf(right[0].schema, right),
    context() as never,
  );
  const expected = operator.outputSchema(left[0].schema, right[0].schema);
  expect(stream.schema.fields.map(String)).toEqual(expected.fields.map(String));
  const batches = await collect(stream);
  for (const { schema, numRows } of batches) {
    expect(schema.fields.map(String)).toEqual(expected.fields.map(String));
    expect(numRows).toBeGreaterThan(0);
    expect(numRows).toBeLessThanOrEqual(1 << 16);
  }
  return batches;
}

const on = (...names: string[]) => ({ left: names, right: names });

function tableOf(columns: Readonly<Record<string, Vector>>): Batches {
  const { schema, batches } = new Table(columns);
  // A table without rows has no batches.
  return batches.length > 0 ? (batches as never) : [streamBatch(schema)];
}

function streamBatch(schema: Schema): RecordBatch {
  return new Table(schema).batches[0];
}

const ints = (...values: (number | null)[]) => vectorFromArray(values, new Int32());
const texts = (...values: (string | null)[]) => vectorFromArray(values, new Utf8());

async function rowsOf(left: Batches, right: Batches, params: JoinParams): Promise<unknown[][]> {
  const batches = await joined(left, right, params);
  return batches.flatMap((batch) =>
    batch.toArray().map((row) => Object.values((row as { toJSON(): object }).toJSON())),
  );
}

describe('joins of random tables', () => {
  it.each(joinKinds)('%s: as DuckDB has them, for either held side and any batches', async (kind) => {
    let matched = 0;
    for (let n = 0; n < sampleSize(30); n++) {
      const join = drawJoin(random);
      const expected = (await duckJoin(join, kind)).sort();
      matched += expected.length;
      const columns = resultColumns(join, kind);
      for (const build of sides) {
        const params = { kind, build, keys: on(...join.keys) };
        const [left, right] = [
          batchesOf(join.left, random),
          batchesOf(join.right, random),
        ] as never as Batches[];
        const batches = await joined(left, right, params);
        const found = rowTexts(batches, columns);
        expect(found.toSorted(), `${n} ${join.keys.join()} ${build}`).toEqual(expected);
        const whole = await joined([join.left.whole], [join.right.whole], params);
        expect(rowTexts(whole, columns)).toEqual(found);
      }
    }
    expect(matched).toBeGreaterThan(sampleSize(150) / 2);
  });

  it.each(joinKinds)('%s: rows come in the promised order', async (kind) => {
    for (let n = 0; n < sampleSize(12); n++) {
      const join = drawJoin(random);
      for (const build of sides) {
        const batches = await joined([numbered(join, 'left')], [numbered(join, 'right')], {
          kind,
          build,
          keys: on(...join.keys),
        });
        const places = (name: string) =>
          batches.flatMap((batch) =>
            Array.from(batch.getChild(name) ?? [], (value) => value as number | null),
          );
        const isLeftOnly = kind === 'semi' || kind === 'anti';
        const pairs = isLeftOnly
          ? places('at_left').map((at) => [at, 0])
          : places('at_left').map((at, i) =>
              build === 'right' ? [at, places('at_right')[i]] : [places('at_right')[i], at],
            );
        const key = ([probe, held]: (number | null)[]) => (probe ?? 1e6) * 1e7 + (held ?? 0);
        const orders = pairs.map(key);
        expect(orders).toEqual(orders.toSorted((a, b) => a - b));
      }
    }
  });
});

/** A table with a column of the rows' numbers. */
function numbered(join: RandomJoin, side: Side): RecordBatch {
  const { whole } = join[side];
  const numbers = vectorFromArray(
    Array.from({ length: whole.numRows }, (_, i) => i),
    new Int32(),
  );
  const columns = Object.fromEntries(
    whole.schema.fields.map(({ name }) => [name, whole.getChild(name) as Vector]),
  );
  return tableOf({ ...columns, [`at_${side}`]: numbers })[0];
}

describe('a join', () => {
  const left = tableOf({ k: ints(1, 2, null, 2), x: ints(10, 20, 30, 40) });
  const right = tableOf({ k: ints(2, 2, 5, null), x: ints(7, 8, 9, 6) });

  it('gives keys once, under the name of the left, and a suffix to names that both sides have', async () => {
    const params = { kind: 'full', build: 'right', keys: on('k'), suffix: '_right' } as const;
    expect(new JoinRows(params).outputSchema(left[0].schema, right[0].schema).fields.map(String)).toEqual([
      'k: Int32',
      'x: Int32',
      'x_right: Int32',
    ]);
    expect(await rowsOf(left, right, params)).toEqual([
      [1, 10, null],
      [2, 20, 7],
      [2, 20, 8],
      [null, 30, null],
      [2, 40, 7],
      [2, 40, 8],
      [5, null, 9],
      [null, null, 6],
    ]);
    const renamed = tableOf({ id: ints(5, 2), y: texts('five', null) });
    const ids = { left: ['k'], right: ['id'] };
    expect(await rowsOf(left, renamed, { kind: 'right', build: 'left', keys: ids })).toEqual([
      [5, null, 'five'],
      [2, 20, null],
      [2, 40, null],
    ]);
    expect(await rowsOf(left, renamed, { kind: 'semi', build: 'left', keys: ids })).toEqual([
      [2, 20],
      [2, 40],
    ]);
  });

  it('keeps some columns, and needs both of a name with a suffix', async () => {
    const params = { kind: 'inner', build: 'right', keys: on('k'), suffix: '_r' } as const;
    const schemas = [left[0].schema, right[0].schema] as const;
    const required = (...wanted: string[]) => new JoinRows(params).requiredColumns(wanted, ...schemas);
    expect(required('x')).toEqual({ left: ['k', 'x'], right: ['k'] });
    expect(required('x_r')).toEqual({ left: ['k', 'x'], right: ['k', 'x'] });
    expect(required()).toEqual({ left: ['k'], right: ['k'] });
    expect(new JoinRows(params).requiredColumns(undefined, ...schemas)).toEqual({
      left: ['k', 'x'],
      right: ['k', 'x'],
    });
    expect(await rowsOf(left, right, { ...params, keeps: ['x_r'] })).toEqual([[7], [8], [7], [8]]);
    const [counted] = await joined(left, right, { ...params, keeps: [] });
    expect([counted.numRows, counted.numCols]).toEqual([4, 0]);
  });

  it('takes the value of a key that is -0 on one side from the same side, whichever is held', async () => {
    const zero = (value: number) => tableOf({ k: vectorFromArray([value], new Float64()) });
    for (const build of sides)
      for (const kind of ['inner', 'left', 'full', 'right'] as const) {
        const [[found]] = await rowsOf(zero(-0), zero(0), { kind, build, keys: on('k') });
        expect(Object.is(found, -0), `${kind} ${build}`).toBe(kind !== 'right');
      }
  });

  it('finds keys among dictionaries that differ, and none among nulls alone', async () => {
    const type = new Dictionary(new Utf8(), new Int32());
    const words = (...values: (string | null)[]) => tableOf({ k: vectorFromArray(values, type) });
    const many = [...words('a', 'b', null), ...words('c', 'b')] as never as Batches;
    const other = words('b', 'c', 'd', null);
    for (const build of sides) {
      const params = { kind: 'full', build, keys: on('k') } as const;
      expect((await rowsOf(many, other, params)).map(([k]) => k).toSorted()).toEqual(
        ['a', 'b', 'b', 'c', 'd', null, null].toSorted(),
      );
      const nulls = tableOf({ k: vectorFromArray([null, null], new Null()) });
      expect(await rowsOf(nulls, nulls, { ...params, kind: 'inner' })).toEqual([]);
      expect(await rowsOf(nulls, nulls, { ...params, kind: 'full' })).toHaveLength(4);
    }
  });

  it('carries lists', async () => {
    const list = new List(new Field('item', new Utf8(), true));
    const genres = tableOf({ k: ints(2, 1), genres: vectorFromArray([['x', 'y'], []], list) });
    const rows = await rowsOf(left, genres, { kind: 'left', build: 'right', keys: on('k') });
    expect(rows.map(([, , values]) => values && [...(values as Iterable<string>)])).toEqual([
      [],
      ['x', 'y'],
      null,
      ['x', 'y'],
    ]);
  });

  it('cuts what one batch becomes: by rows, and by the bytes of texts', async () => {
    const many = tableOf({
      k: ints(...Array.from({ length: 400 }, () => 1)),
      x: ints(...Array.from({ length: 400 }, (_, i) => i)),
    });
    for (const build of sides) {
      const params = { kind: 'inner', build, keys: on('k'), suffix: '_r' } as const;
      const batches = await joined(many, many, params);
      expect(batches.map(({ numRows }) => numRows)).toEqual([
        ...Array.from({ length: 2 }, () => 1 << 16),
        400 * 400 - 2 * (1 << 16),
      ]);
      const [probe, held] = build === 'right' ? ['x', 'x_r'] : ['x_r', 'x'];
      const at = (name: string) => batches.flatMap((batch) => [...(batch.getChild(name) as Vector<Int32>)]);
      const [probed, built] = [at(probe), at(held)];
      expect([probed.length, built.length]).toEqual([160_000, 160_000]);
      expect(probed.findIndex((value, i) => value !== Math.floor(i / 400))).toBe(-1);
      expect(built.findIndex((value, i) => value !== i % 400)).toBe(-1);
      const long = tableOf({ k: ints(1, 1), t: texts('y'.repeat(1 << 16), 'z') });
      const pieces = await joined(many, long, { ...params });
      expect(pieces.reduce((sum, { numRows }) => sum + numRows, 0)).toBe(800);
      for (const { data } of pieces) expect(data.byteLength).toBeLessThan(5 << 20);
    }
  });

  it('pulls no more of the streamed side than its consumer does', async () => {
    let pulled = 0;
    const probe = {
      schema: left[0].schema,
      async *[Symbol.asyncIterator]() {
        for (;;) {
          pulled++;
          yield left[0];
        }
      },
    };
    const params = { kind: 'inner', build: 'right', keys: on('k'), suffix: '_r' } as const;
    for await (const batch of new JoinRows(params).execute(
      probe,
      streamOf(right[0].schema, right),
      context() as never,
    )) {
      expect(batch.numRows).toBe(4);
      if (pulled === 3) break;
    }
    expect(pulled).toBe(3);
  });

  it('may hold the side that is sent to all threads only where rows without a match need no other thread', () => {
    const allowed = joinKinds.flatMap((kind) =>
      sides.filter((build) => mayBroadcast({ kind, build })).map((build) => `${kind} ${build}`),
    );
    expect(allowed).toEqual([
      'inner left',
      'inner right',
      'left right',
      'right left',
      'semi right',
      'anti right',
    ]);
  });
});
