import {
  ascendingRows,
  firstDescent,
  type IdColumn,
  idText,
  takeIds,
} from '../../connectors/model/id-column.ts';
import { DataError } from '../../engine/errors.ts';
import type { KeyColumn } from '../../engine/keys/key-column.ts';
import { sharedArray } from '../../engine/partition.ts';
import { keysOf } from '../serving/factor-arrays.ts';

interface Rows {
  readonly ids: IdColumn;
  readonly factors: Float32Array;
}

/** Rows of factors that arrive in parts, in any order. */
export class FactorSide {
  readonly #rank: number;
  #parts: Rows[] = [];
  #rows = 0;

  constructor(rank: number) {
    this.#rank = rank;
  }

  get rows(): number {
    return this.#rows;
  }

  add(rows: Rows): void {
    this.#parts.push(rows);
    this.#rows += rows.factors.length / this.#rank;
  }

  /**
   * All rows by ascending id, in shared memory; the parts are forgotten. Throws DataError for repeated ids.
   */
  take(side: string): { readonly ids: KeyColumn; readonly factors: Float32Array; readonly rows: number } {
    const ids = joined(this.#parts.filter(({ factors }) => factors.length > 0).map((part) => part.ids));
    const order = ascendingRows(ids);
    const sorted = takeIds(ids, order);
    const repeated = firstDescent(sorted);
    if (repeated !== undefined)
      throw new DataError(`the ${side} have the id ${idText(sorted, repeated)} more than once`, {
        phase: 'read',
        file: 'the feed',
      });
    const factors = this.#inOrder(order);
    this.#parts = [];
    this.#rows = 0;
    return { ids: keysOf(sorted), factors, rows: order.length };
  }

  #inOrder(order: Uint32Array): Float32Array {
    const rank = this.#rank;
    const place = new Uint32Array(order.length);
    order.forEach((row, at) => (place[row] = at));
    const sorted = sharedArray(Float32Array, order.length * rank);
    let row = 0;
    for (const { factors } of this.#parts)
      for (let at = 0; at < factors.length; at += rank, row++)
        sorted.set(factors.subarray(at, at + rank), place[row] * rank);
    return sorted;
  }
}

/** Ids of all parts. Throws DataError if they are of several types. */
function joined(parts: readonly IdColumn[]): IdColumn {
  const types = new Set(parts.map(({ type }) => type));
  if (types.size > 1)
    throw new DataError(`ids are ${[...types].join(' and ')}, need one type`, {
      phase: 'read',
      file: 'the feed',
    });
  const values = parts.map((part) => (part.type === 'utf8' ? undefined : part.values));
  if (values.includes(undefined))
    throw new DataError('ids are text, need int32 or int64', { phase: 'read', file: 'the feed' });
  const length = values.reduce((sum, one) => sum + (one?.length ?? 0), 0);
  if (types.has('int64')) {
    const all = new BigInt64Array(length);
    let at = 0;
    for (const one of values as BigInt64Array[]) {
      all.set(one, at);
      at += one.length;
    }
    return { type: 'int64', values: all };
  }
  const all = new Int32Array(length);
  let at = 0;
  for (const one of values as Int32Array[]) {
    all.set(one, at);
    at += one.length;
  }
  return { type: 'int32', values: all };
}
