import {
  Field,
  Float32,
  Int32,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  type TypeMap,
  Int64,
  Table,
  Utf8,
  type Vector,
  vectorFromArray,
} from 'apache-arrow';

export interface Triple {
  readonly user: number;
  readonly item: number;
  readonly rating: number;
}

/** A batch {user: int32, item: int32, rating: float32} of the given rows. */
export function ratingBatch(rows: readonly Triple[]): RecordBatch {
  const schema = new Schema([
    new Field('user', new Int32(), false),
    new Field('item', new Int32(), false),
    new Field('rating', new Float32(), false),
  ]);
  const length = rows.length;
  const children = [
    makeData({ type: new Int32(), length, data: Int32Array.from(rows, (row) => row.user) }),
    makeData({ type: new Int32(), length, data: Int32Array.from(rows, (row) => row.item) }),
    makeData({ type: new Float32(), length, data: Float32Array.from(rows, (row) => row.rating) }),
  ];
  return new RecordBatch(
    schema,
    makeData({ type: new Struct<TypeMap>(schema.fields), length, nullCount: 0, children }),
  );
}

/** Rows cut into batches of a size. */
export function ratingBatches(rows: readonly Triple[], size = 1000): RecordBatch[] {
  const batches: RecordBatch[] = [];
  for (let from = 0; from < rows.length; from += size)
    batches.push(ratingBatch(rows.slice(from, from + size)));
  return batches;
}

/** Batches with columns of any Arrow type, from plain values (null allowed). */
export function batchOf(
  columns: Readonly<
    Record<string, { type: 'int32' | 'int64' | 'utf8' | 'float32' | 'float64'; values: readonly unknown[] }>
  >,
): RecordBatch {
  const vectors = Object.fromEntries(
    Object.entries(columns).map(([name, { type, values }]) => {
      if (type === 'int32') return [name, vectorFromArray(values as number[], new Int32())];
      if (type === 'int64') return [name, vectorFromArray(values as bigint[], new Int64())];
      if (type === 'utf8') return [name, vectorFromArray(values as string[], new Utf8())];
      return [
        name,
        type === 'float32'
          ? vectorFromArray(values as number[], new Float32())
          : vectorFromArray(Float64Array.from(values as number[])),
      ];
    }),
  );
  return new Table(vectors as Record<string, Vector>).batches[0];
}

/** A small deterministic generator for tests: uniform in [0, 1). */
export function testRandom(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/** Rows in an order that depends on the seed alone. */
export function shuffled<T>(rows: readonly T[], seed: number): T[] {
  const random = testRandom(seed);
  const result = [...rows];
  for (let i = result.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [result[i], result[j]] = [result[j], result[i]];
  }
  return result;
}

/** Random ratings without repeated pairs; ids are not dense. */
export function randomRatings(seed: number, users: number, items: number, count: number): Triple[] {
  const random = testRandom(seed);
  const seen = new Map<number, Triple>();
  for (let i = 0; i < count; i++) {
    const [u, v] = [Math.floor(random() ** 2 * users), Math.floor(random() ** 2 * items)];
    seen.set(u * items + v, {
      user: u * 7 - 20,
      item: v * 3 + 100,
      rating: Math.round(random() * 8 + 2) / 2,
    });
  }
  return [...seen.values()];
}
