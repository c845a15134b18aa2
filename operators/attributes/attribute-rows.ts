import { CapacityError, DataError } from '../../engine/errors.ts';
import {
  concatKeys,
  hasNulls,
  isNullAt,
  keysFromData,
  keyTypeOf,
  refusedIn,
} from '../../engine/keys/arrow-keys.ts';
import {
  emptyKeys,
  type KeyColumn,
  keyCount,
  keyText,
  type KeyType,
  takeKeys,
  UNKNOWN_KEY,
  widen,
} from '../../engine/keys/key-column.ts';
import { KeyLookup } from '../../engine/keys/key-lookup.ts';
import { makeKeyTable } from '../../engine/keys/tables/make-key-table.ts';
import { sharedArray } from '../../engine/partition.ts';
import type { Sink } from '../../engine/stream/operator.ts';
import { columnOf } from '../dataflow/row-operator.ts';
import { fieldOf } from '../ratings/rows/columns.ts';
import type { AttributeMatrix } from './attribute-matrix.ts';
import { attributeBatch } from './attribute-values.ts';
import type { RowEncoder } from './encode-rows.ts';
import { type AttributeEncoding, GrowingRows } from './encoding.ts';

/** Encoded attributes with their ids: row r of F belongs to id r. */
export interface EncodedRows {
  /** Distinct, in the order of the input. */
  readonly ids: KeyColumn;
  readonly matrix: AttributeMatrix;
}

/** Encoded rows, with what the input has besides. */
export interface AttributeRows extends EncodedRows {
  /** Number of rows that were left out, since their id is missing. */
  readonly withoutId: number;
  /** Values and words of all rows that have no feature. */
  readonly unknownValues: number;
}

/**
 * Encodes rows of attributes and keeps them in memory. `columns`: the columns of the encoding. Throws
 * DataError for an id that occurs twice.
 */
export function encodeAttributes(
  encoder: RowEncoder,
  id: string,
  { columns }: Pick<AttributeEncoding, 'columns'>,
): Sink<AttributeRows> {
  return {
    name: 'encode-attributes',
    phase: 'read attributes',
    describe: () => ({ id, columns: columns.map(({ name }) => name) }),
    requiredColumns: () => [...new Set([id, ...columns.map(({ name }) => name)])],
    async consume(input) {
      const type = keyTypeOf(fieldOf(input.schema, id).type, id);
      for (const { name } of columns) fieldOf(input.schema, name);
      const rows = new GrowingRows();
      const ids: KeyColumn[] = [];
      const kept: number[] = [];
      let all = 0;
      for await (const batch of input) {
        const data = columnOf(batch, id);
        ids.push(keysFromData(data, type, refusedIn(batch, id)));
        encoder.encode(attributeBatch(batch), rows);
        const nulls = hasNulls(data);
        for (let row = 0; row < batch.numRows; row++, all++)
          if (!nulls || !isNullAt(data, row)) kept.push(all);
      }
      const matrix = rows.matrix(encoder.features);
      const keys =
        ids.length === 0 ? takeKeys({ type: 'int32', values: new Int32Array(0) }, []) : concatKeys(type, ids);
      const withoutId = all - kept.length;
      const own = { ids: keys, matrix };
      const withIds = withoutId === 0 ? own : rowsOf(own, Uint32Array.from(kept));
      requireDistinct(withIds.ids, id, kept);
      return { ...withIds, withoutId, unknownValues: rows.unknown };
    },
  };
}

/** Throws DataError that names an id that occurs twice. `rows`: the input's row of each id; default its position. */
export function requireDistinct(ids: KeyColumn, column: string, rows?: readonly number[]): void {
  const codes = new Uint32Array(keyCount(ids));
  makeKeyTable(ids.type).add(ids, codes);
  let next = 0;
  const repeated = codes.findIndex((code) => code !== next++);
  if (repeated < 0) return;
  const first = codes.indexOf(codes[repeated]);
  const [one, other] = [first, repeated].map((at) => 1 + (rows?.[at] ?? at));
  throw new DataError(`the id ${keyText(ids, repeated)} has attributes twice, in rows ${one} and ${other}`, {
    phase: 'read attributes',
    column,
    advice: 'Keep one row of each id, for example by groupBy',
  });
}

/** The ids as keys of a type. Throws DataError for one that the type cannot hold. */
export function keysOfType(ids: KeyColumn, type: KeyType): KeyColumn {
  if (ids.type === type) return ids;
  if (keyCount(ids) === 0) return emptyKeys(type, 0, 0);
  if (ids.type === 'int32' && type === 'int64') return widen(ids);
  const { halves } = ids as Extract<KeyColumn, { type: 'int64' }>;
  const rows = Array.from({ length: keyCount(ids) }, (_, row) => row);
  const narrows = ids.type === 'int64' && type === 'int32';
  const bad = narrows ? rows.find((row) => halves[2 * row + 1] !== halves[2 * row] >> 31) : 0;
  if (bad === undefined) return { type: 'int32', values: Int32Array.from(rows, (row) => halves[2 * row]) };
  throw new DataError(`the ids of the model are ${type}, which cannot hold ${shownKey(ids, bad)}`, {
    phase: 'read attributes',
    advice:
      ids.type === 'utf8' ? undefined : 'Read the ids as text (types), or train the model on ids of one type',
  });
}

function shownKey(ids: KeyColumn, row: number): string {
  const text = keyText(ids, row);
  return ids.type === 'utf8' ? JSON.stringify(text) : text;
}

/** The rows at these positions, with their ids. */
export function rowsOf({ ids, matrix }: EncodedRows, positions: Uint32Array): EncodedRows {
  return { ids: takeKeys(ids, positions), matrix: rowsAt(matrix, positions) };
}

/** Most numbers of a matrix, whose offsets are int32. */
const MOST_ENTRIES = 2 ** 31 - 1;

/** The rows at these positions, in shared memory; a row with the constant alone for UNKNOWN_KEY. */
export function rowsAt(matrix: AttributeMatrix, positions: ArrayLike<number>): AttributeMatrix {
  const offsets = sharedArray(Int32Array, positions.length + 1);
  const lengthOf = (row: number) => (row === UNKNOWN_KEY ? 1 : matrix.offsets[row + 1] - matrix.offsets[row]);
  let entries = 0;
  for (let row = 0; row < positions.length; row++) {
    entries += lengthOf(positions[row]);
    if (entries > MOST_ENTRIES)
      throw new CapacityError(`the attributes have more than ${MOST_ENTRIES.toLocaleString('en')} numbers`, {
        phase: 'read attributes',
        advice: 'Name fewer columns, or shorter vectors',
      });
    offsets[row + 1] = entries;
  }
  const indices = sharedArray(Uint32Array, entries);
  const values = sharedArray(Float32Array, entries);
  for (let row = 0; row < positions.length; row++) {
    const [at, from] = [offsets[row], positions[row]];
    if (from === UNKNOWN_KEY) {
      values[at] = 1;
      continue;
    }
    const [start, end] = [matrix.offsets[from], matrix.offsets[from + 1]];
    for (let k = 0; k < end - start; k++) {
      indices[at + k] = matrix.indices[start + k];
      values[at + k] = matrix.values[start + k];
    }
  }
  return { rows: positions.length, features: matrix.features, offsets, indices, values };
}

/** The attributes of a training's ids, in their order, and the number of ids that have some. */
export interface TrainingAttributes {
  readonly matrix: AttributeMatrix;
  readonly known: number;
}

/**
 * The attributes of ids. Throws DataError if the types of the ids cannot be compared, or if no id has
 * attributes.
 */
export function attributesOf(rows: EncodedRows, ids: KeyColumn, column: string): TrainingAttributes {
  const lookup = new KeyLookup(rows.ids);
  lookup.requireComparable(ids.type, column);
  const positions = lookup.positionsOf(ids);
  let known = 0;
  for (const position of positions) if (position !== UNKNOWN_KEY) known++;
  if (known === 0 && keyCount(ids) > 0)
    throw new DataError(
      `no row of the attributes has the id of a rating: their ids are such as ${firstOf(rows.ids)}, those of the ratings such as ${firstOf(ids)}`,
      { phase: 'read attributes', column, advice: 'Name the column that has the ids of the ratings with id' },
    );
  return { matrix: rowsAt(rows.matrix, positions), known };
}

function firstOf(ids: KeyColumn): string {
  return keyCount(ids) === 0 ? 'none' : keyText(ids, 0);
}
