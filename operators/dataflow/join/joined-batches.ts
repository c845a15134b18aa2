import { type Data, DataType, RecordBatch, type Schema } from 'apache-arrow';
import { nullData } from '../../../engine/stream/join-data.ts';
import { takeData } from '../../../engine/stream/take-data.ts';
import { batchOf } from '../row-operator.ts';
import { type BuildSide, columnOf, type Matches } from './hash-join.ts';
import { type JoinColumn, type JoinParams, keepsUnmatched, otherSide } from './join-columns.ts';

/** Most rows of a batch, and most bytes of its values unless one row has more. */
const MOST_ROWS = 1 << 16;
const MOST_BYTES = 4 << 20;

/**
 * The input from which a column is taken for a pair of rows. `coalesced`: the build side if it has a match,
 * else the probe side.
 */
type From = 'probe' | 'build' | 'coalesced';

interface Column {
  readonly type: DataType;
  readonly from: From;
  /** Name of the column on the probe side, if it has it; likewise `build`. */
  readonly probe: string | undefined;
  readonly build: string | undefined;
}

/** Makes the batches of a join's result from pairs of rows of a probe batch and the build side. */
export class JoinedBatches {
  readonly #schema: Schema;
  readonly #columns: readonly Column[];
  readonly #held: BuildSide;

  constructor(schema: Schema, columns: readonly JoinColumn[], params: JoinParams, held: BuildSide) {
    [this.#schema, this.#held] = [schema, held];
    this.#columns = columns.map((column) => ({
      type: column.field.type,
      from: fromOf(column, params),
      probe: column[otherSide(params.build)],
      build: column[params.build],
    }));
  }

  /** Most rows of a batch, by the size of fixed-width values. */
  static limitOf(columns: readonly JoinColumn[]): number {
    const bytes = columns.reduce((sum, { field }) => sum + fixedBytes(field.type), 0);
    return Math.max(1, Math.min(MOST_ROWS, Math.floor(MOST_BYTES / Math.max(1, bytes))));
  }

  /** The batches of pairs of rows. */
  *ofMatches(batch: RecordBatch, matches: Matches): Generator<RecordBatch> {
    const { probe, build, isRange, hasMisses } = matches;
    const parts = this.#columns.map(({ type, from, probe: own, build: other }) => {
      if (from !== 'build') return { type, from, data: columnOf(batch, own as string), rows: probe, other };
      const { values, withNull } = this.#held.column(other as string);
      return { type, from, data: hasMisses ? withNull : values, rows: build, other };
    });
    const copied = parts.filter(({ from }) => !(isRange && from === 'probe'));
    for (const [start, end] of piecesOf(copied, probe.length)) {
      const children = parts.map(({ from, data, rows, other }) => {
        if (from === 'probe' && isRange) return data.slice(probe[start], end - start);
        const taken = takeData(data, rows.subarray(start, end));
        if (from === 'coalesced') this.#replace(taken, other as string, build.subarray(start, end));
        return taken;
      });
      yield batchOf(this.#schema, end - start, children);
    }
  }

  /** Batches of build-side rows, with nulls for the other side's columns. */
  *ofHeld(rows: Uint32Array, limit: number): Generator<RecordBatch> {
    for (let at = 0; at < rows.length; at += limit) {
      const some = rows.subarray(at, at + limit);
      const held = this.#columns.map(({ type, build }) => ({
        type,
        data: build === undefined ? undefined : this.#held.column(build).values,
        rows: some,
      }));
      for (const [start, end] of piecesOf(held, some.length)) {
        const children = held.map(({ type, data }) =>
          data === undefined ? nullData(type, end - start) : takeData(data, some.subarray(start, end)),
        );
        yield batchOf(this.#schema, end - start, children);
      }
    }
  }

  /**
   * Overwrites float keys taken from the probe side by the build side's equal values: -0 equals 0, but the
   * result must have the bits of the side that defines the key.
   */
  #replace(taken: Data, name: string, build: Uint32Array): void {
    const [values, held] = [
      taken.values as Float64Array,
      this.#held.column(name).values.values as Float64Array,
    ];
    for (let i = 0; i < build.length; i++) if (build[i] < this.#held.rowCount) values[i] = held[build[i]];
  }
}

/**
 * Chooses the input from which a column is read. A key could be read from either, since equal keys have equal
 * bits, and the probe side is faster: its rows are consecutive. Only equal floats may differ in bits (-0 and
 * 0), so a float key is read from the side that defines its value.
 */
function fromOf({ left, right, field }: JoinColumn, { kind, build }: JoinParams): From {
  const probe = otherSide(build);
  if (left === undefined || right === undefined)
    return (build === 'left') === (left !== undefined) ? 'build' : 'probe';
  const own = kind === 'right' ? 'right' : 'left';
  if (own === probe || !DataType.isFloat(field.type)) return 'probe';
  return keepsUnmatched(kind, probe) ? 'coalesced' : 'build';
}

interface Taken {
  readonly type: DataType;
  readonly data: Data | undefined;
  readonly rows: Uint32Array;
}

/** Splits pairs into ranges whose values fit into a batch. */
function* piecesOf(columns: readonly Taken[], length: number): Generator<readonly [number, number]> {
  const variable = columns.filter(({ type, data }) => data !== undefined && isVariable(type));
  const bytes = (start: number, end: number) =>
    variable.reduce((sum, { data, rows }) => sum + variableBytes(data as Data, rows.subarray(start, end)), 0);
  const left: [number, number][] = [[0, length]];
  for (let piece = left.pop(); piece !== undefined; piece = left.pop()) {
    const [start, end] = piece;
    if (variable.length === 0 || end - start <= 1 || bytes(start, end) <= MOST_BYTES) {
      yield piece;
      continue;
    }
    const middle = (start + end) >>> 1;
    left.push([middle, end], [start, middle]);
  }
}

/** Bytes of each value in arrays whose size depends only on the number of rows. */
function fixedBytes(type: DataType): number {
  if (DataType.isNull(type)) return 0;
  if (DataType.isDictionary(type)) return type.indices.bitWidth / 8;
  if (DataType.isInt(type) || DataType.isDecimal(type) || DataType.isTime(type)) return type.bitWidth / 8;
  if (DataType.isFixedSizeBinary(type)) return type.byteWidth;
  if (DataType.isUtf8View(type) || DataType.isBinaryView(type)) return 16;
  if (DataType.isStruct(type)) return type.children.reduce((sum, field) => sum + fixedBytes(field.type), 0);
  if (DataType.isFixedSizeList(type)) return type.listSize * fixedBytes(type.children[0].type);
  if (DataType.isUtf8(type) || DataType.isBinary(type) || DataType.isList(type)) return 4;
  return 8;
}

/** True for types with values of variable size. */
function isVariable(type: DataType): boolean {
  if (DataType.isStruct(type) || DataType.isFixedSizeList(type))
    return type.children.some((field) => isVariable(field.type));
  const isText = DataType.isUtf8(type) || DataType.isLargeUtf8(type);
  const isBytes = DataType.isBinary(type) || DataType.isLargeBinary(type);
  return isText || isBytes || DataType.isList(type) || DataType.isLargeList(type) || DataType.isMap(type);
}

/**
 * Bytes of text, binary and list values at some rows; list elements count with the mean size of their column.
 */
function variableBytes(data: Data, rows: Uint32Array): number {
  const { type, children } = data;
  if (DataType.isStruct(type)) return children.reduce((sum, child) => sum + variableBytes(child, rows), 0);
  if (!isVariable(type)) return 0;
  if (DataType.isFixedSizeList(type)) return rows.length * type.listSize * meanBytes(children[0]);
  const offsets = data.valueOffsets as Int32Array | Float64Array | BigInt64Array;
  let elements = 0;
  for (let i = 0; i < rows.length; i++) elements += Number(offsets[rows[i] + 1]) - Number(offsets[rows[i]]);
  return children.length === 0 ? elements : elements * meanBytes(children[0]);
}

function meanBytes(data: Data): number {
  return data.length === 0 ? 0 : data.byteLength / data.length;
}
