import { type RecordBatch, Schema } from 'apache-arrow';
import { throwIfAborted, UsageError } from '../../../engine/errors.ts';
import type { JsonObject } from '../../../engine/json.ts';
import { UNKNOWN_ROW } from '../../../engine/keys/row-numbers.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { BinaryOperator, Side } from '../../../engine/stream/binary-operator.ts';
import { type BatchStream, batchStream } from '../../../engine/stream/stream.ts';
import { columnsAs, takeRows } from '../row-operator.ts';
import { BuildSide, columnOf, HashJoin, KeyNumbers } from './hash-join.ts';
import {
  type JoinColumn,
  joinColumns,
  joinKinds,
  type JoinParams,
  keepsLeftOnly,
  keepsUnmatched,
  otherSide,
  requiredOf,
} from './join-columns.ts';
import { JoinedBatches } from './joined-batches.ts';

type Streams = Readonly<Record<Side, BatchStream>>;

/**
 * Caches what was built from the build side's rows, for the thread's next task with the same rows. Garbage
 * collection may drop it.
 */
class HeldOnce<Held extends object> {
  readonly #made = new Map<string, WeakRef<Held>>();

  /** The result of `make` for the rows, cached. `use`: the keys and columns that it reads. */
  async of(rows: BatchStream, use: readonly (readonly string[])[], make: () => Promise<Held>): Promise<Held> {
    if (rows.identity === undefined) return make();
    const key = JSON.stringify([rows.identity, ...use]);
    const known = this.#made.get(key)?.deref();
    if (known !== undefined) return known;
    const held = await make();
    for (const [other, made] of this.#made) if (made.deref() === undefined) this.#made.delete(other);
    this.#made.set(key, new WeakRef(held));
    return held;
  }
}

const buildSides = new HeldOnce<BuildSide>();
const keySets = new HeldOnce<KeyNumbers>();

/**
 * Joins the rows of two inputs with equal keys. The side `build` is held in memory, the other is streamed.
 * Rows come in the order of the streamed side, the matches of a row in the order of the build side, and rows
 * of the build side without a match last. Semi and anti joins always keep the order of the left. Nulls match
 * nothing; NaN equals NaN, and -0 equals 0.
 */
export class JoinRows implements BinaryOperator {
  readonly name = 'join';
  readonly params: JoinParams;

  constructor(params: JoinParams) {
    const { kind, keys } = params;
    if (!joinKinds.includes(kind))
      throw new UsageError(`a join must be ${joinKinds.join(', ')}, got ${kind}`);
    if (keys.left.length === 0 || keys.left.length !== keys.right.length)
      throw new UsageError('a join needs the same number of keys on both sides, and one at least');
    for (const side of ['left', 'right'] as const) {
      const twice = keys[side].find((name, i) => keys[side].indexOf(name) < i);
      if (twice !== undefined) throw new UsageError(`join: the key "${twice}" is named twice`);
    }
    this.params = params;
  }

  static from({ params }: ReturnType<JoinRows['portable']>): JoinRows {
    return new JoinRows(params as unknown as JoinParams);
  }

  get build(): Side {
    return this.params.build;
  }

  describe(): JsonObject {
    return { ...describeJoin(this.params), holds: `the ${this.params.build}` };
  }

  portable() {
    return { operator: 'join', params: this.params as unknown as JsonObject } as const;
  }

  outputSchema(left: Schema, right: Schema): Schema {
    return new Schema(joinColumns(this.params, { left, right }).map(({ field }) => field));
  }

  requiredColumns(wanted: readonly string[] | undefined, left: Schema, right: Schema) {
    return requiredOf(this.params, { left, right }, wanted);
  }

  execute(left: BatchStream, right: BatchStream, ctx: ExecutionContext): BatchStream {
    const columns = joinColumns(this.params, { left: left.schema, right: right.schema });
    const schema = new Schema(columns.map(({ field }) => field));
    const { kind, build } = this.params;
    const isFilter = keepsLeftOnly(kind) && build === 'right';
    const batches = isFilter
      ? this.#filter({ left, right }, schema)
      : this.#join({ left, right }, columns, schema);
    return batchStream(schema, checked(batches, ctx));
  }

  /** Rows of the left with a match in the right (semi), or without one (anti). */
  async *#filter({ left, right }: Streams, schema: Schema): AsyncGenerator<RecordBatch> {
    const { kind, keys } = this.params;
    const numbers = await keySets.of(right, [keys.right], () => keySetOf(right, keys.right));
    for await (const batch of left) {
      if (batch.numRows === 0) continue;
      const positions = positionsOf(numbers.find(batch, keys.left), kind === 'semi');
      if (positions.length === 0) continue;
      const kept = columnsAs(batch, schema);
      yield positions.length === batch.numRows ? kept : takeRows(kept, positions);
    }
  }

  async *#join(
    streams: Streams,
    columns: readonly JoinColumn[],
    schema: Schema,
  ): AsyncGenerator<RecordBatch> {
    const { kind, keys, build } = this.params;
    const probe = otherSide(build);
    const names = columns.flatMap((column) => column[build] ?? []);
    const rows = streams[build];
    const held = await buildSides.of(rows, [keys[build], names], () =>
      BuildSide.read(rows, keys[build], names),
    );
    const limit = JoinedBatches.limitOf(columns);
    const isLeftOnly = keepsLeftOnly(kind);
    const keepsHeld = keepsUnmatched(kind, build);
    const join = new HashJoin(held, {
      keepsProbe: keepsUnmatched(kind, probe),
      notesMatches: isLeftOnly || keepsHeld,
      limit,
    });
    const made = new JoinedBatches(schema, columns, this.params, held);
    for await (const batch of streams[probe]) {
      if (batch.numRows === 0) continue;
      const found = held.find(batch, keys[probe]);
      if (isLeftOnly) join.note(found);
      else for (const matches of join.matches(found)) yield* made.ofMatches(batch, matches);
    }
    if (isLeftOnly || keepsHeld) yield* made.ofHeld(join.heldRows(kind === 'semi'), limit);
  }
}

async function keySetOf(rows: BatchStream, keys: readonly string[]): Promise<KeyNumbers> {
  const numbers = new KeyNumbers(rows.schema, keys);
  for await (const batch of rows) {
    const own = keys.map((name) => columnOf(batch, name));
    if (batch.numRows > 0) numbers.add(own, batch.numRows);
  }
  return numbers;
}

/** The kind, the keys and the suffix, for plans. */
export function describeJoin({ kind, keys, suffix }: JoinParams): JsonObject {
  const on = keys.left.map((name, i) => (name === keys.right[i] ? name : `${name} = ${keys.right[i]}`));
  return { how: kind, on, ...(suffix !== undefined && { suffix }) };
}

async function* checked(
  batches: AsyncIterable<RecordBatch>,
  ctx: ExecutionContext,
): AsyncGenerator<RecordBatch> {
  for await (const batch of batches) {
    throwIfAborted(ctx.signal, 'join');
    yield batch;
  }
}

/** Positions of the rows whose key is known, or is not. */
function positionsOf(keys: Uint32Array, known: boolean): Uint32Array {
  const positions = new Uint32Array(keys.length);
  let count = 0;
  for (let row = 0; row < keys.length; row++)
    if ((keys[row] !== UNKNOWN_ROW) === known) positions[count++] = row;
  return positions.subarray(0, count);
}
