import { sortedById } from '../../connectors/model/factor-table.ts';
import { idCount } from '../../connectors/model/id-column.ts';
import type { FactorTable } from '../../connectors/model/write-factors.ts';
import { DataError, UsageError } from '../../engine/errors.ts';
import { concatKeys } from '../../engine/keys/arrow-keys.ts';
import { type KeyColumn, keyCount } from '../../engine/keys/key-column.ts';
import { sharedArray } from '../../engine/partition.ts';
import { idColumnOf, keysOf } from '../serving/factor-arrays.ts';
import type { Side } from './block-facts.ts';

/** One side of a model that the parent sends: factors in parts, in any order, and numbers for each row. */
export class FactorSide {
  readonly #side: Side;
  readonly #numbers = new Map<string, Float32Array>();
  #parts: readonly FactorTable[] = [];
  /** The next rows replace these. */
  #isComplete = false;

  constructor(side: Side) {
    this.#side = side;
  }

  /** Number of factors so far. */
  get values(): number {
    return this.#parts.reduce((sum, { factors }) => sum + factors.length, 0);
  }

  /** Adds rows. The first ones after `take` replace all earlier ones, and their numbers. */
  add(rows: FactorTable): void {
    if (this.#isComplete) this.#numbers.clear();
    this.#parts = this.#isComplete ? [rows] : [...this.#parts, rows];
    this.#isComplete = false;
  }

  setNumbers(name: string, values: Float32Array): void {
    this.#numbers.set(name, values);
  }

  /** Numbers of the rows by ascending id. */
  numbers(name: string): Float32Array | undefined {
    return this.#numbers.get(name);
  }

  /**
   * All rows by ascending id, in shared memory. Throws DataError for repeated ids, UsageError for no rows.
   */
  take(features: number): { readonly ids: KeyColumn; readonly factors: Float32Array } {
    this.#isComplete = true;
    const whole = sortedById(this.#joined(features), features, 'the feed');
    this.#parts = [whole];
    const ids = keysOf(whole.ids);
    for (const [name, { length }] of this.#numbers) {
      if (length !== keyCount(ids))
        throw new DataError(`the ${this.#side} have ${length} ${name}, need ${keyCount(ids)}`, {
          phase: 'load',
        });
    }
    return { ids, factors: whole.factors };
  }

  #joined(features: number): FactorTable {
    const parts = this.#parts;
    if (parts.length === 0)
      throw new UsageError(`the ${this.#side} of the model are missing`, {
        advice: 'Send their factors before the request model',
      });
    const types = new Set(parts.filter(({ factors }) => factors.length > 0).map(({ ids }) => ids.type));
    if (types.size > 1)
      throw new DataError(`ids are ${[...types].join(' and ')}, need one type`, {
        phase: 'load',
        file: 'the feed',
      });
    const rows = parts.reduce((sum, { ids }) => sum + idCount(ids), 0);
    if (this.values !== rows * features)
      throw new DataError(`the factors of the ${this.#side} are not ${features} for each row`, {
        phase: 'load',
        file: 'the feed',
      });
    const [only] = parts;
    if (parts.length === 1 && only.factors.buffer instanceof SharedArrayBuffer) return only;
    const [type = only.ids.type] = types;
    const keys = concatKeys(
      type,
      parts.filter(({ ids }) => ids.type === type).map(({ ids }) => keysOf(ids)),
    );
    const factors = sharedArray(Float32Array, this.values);
    let at = 0;
    for (const part of parts) {
      factors.set(part.factors, at);
      at += part.factors.length;
    }
    return { ids: idColumnOf(keys), factors };
  }
}
