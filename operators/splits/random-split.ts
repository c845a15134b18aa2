import type { RecordBatch, Schema } from 'apache-arrow';
import { UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import { shown } from '../../engine/shown.ts';
import { RowFilter } from '../dataflow/row-operator.ts';
import { pairColumns, type PairOptions } from '../ratings/rows/find-columns.ts';
import { pairHashes } from './pair-order.ts';

export interface SplitOptions extends PairOptions {
  readonly seed: number;
}

/**
 * One part of a random split: keeps the rows whose hash of (user, item, seed), scaled to [0, 1), is in [from,
 * to). The parts are disjoint, cover everything and don't depend on the order of rows; repetitions of a pair
 * are in the same part. With `outside`, keeps the other rows instead.
 */
export class RandomSplit extends RowFilter {
  readonly name = 'random-split';
  readonly passesNeeds = true;
  readonly isRowwise = true;
  readonly #from: number;
  readonly #to: number;
  readonly #options: SplitOptions;
  readonly #keep: 'inside' | 'outside';

  constructor(from: number, to: number, options: SplitOptions, keep: 'inside' | 'outside' = 'inside') {
    super();
    this.#from = from;
    this.#to = to;
    this.#options = options;
    this.#keep = keep;
  }

  describe(): JsonObject {
    return {
      from: this.#from,
      to: this.#to,
      ...(this.#keep === 'outside' ? { keep: this.#keep } : {}),
      ...this.#options,
    };
  }

  portable() {
    return {
      operator: 'random-split',
      from: this.#from,
      to: this.#to,
      options: { ...this.#options },
      keep: this.#keep,
    } as const;
  }

  static from({ from, to, options, keep }: ReturnType<RandomSplit['portable']>): RandomSplit {
    return new RandomSplit(from, to, options, keep);
  }

  override outputSchema(input: Schema): Schema {
    pairColumns(input, this.#options);
    return input;
  }

  override requiredColumns(wanted?: readonly string[]): readonly string[] | undefined {
    const { userCol, itemCol } = this.#options;
    if (wanted === undefined || userCol === undefined || itemCol === undefined) return undefined;
    return [...new Set([...wanted, userCol, itemCol])];
  }

  protected selection(input: Schema) {
    const [user, item] = pairColumns(input, this.#options);
    const low = Math.round(this.#from * 2 ** 32);
    const high = Math.round(this.#to * 2 ** 32);
    const inside = this.#keep === 'inside';
    return (batch: RecordBatch) => {
      const hashes = pairHashes(batch, user, item, this.#options.seed);
      const positions = new Uint32Array(batch.numRows);
      let kept = 0;
      for (let i = 0; i < hashes.length; i++)
        if ((hashes[i] >= low && hashes[i] < high) === inside) positions[kept++] = i;
      return positions.subarray(0, kept);
    };
  }
}

/** Bounds [from, to) of each part of a split by weights, as fractions of 1. */
export function splitBounds(weights: readonly number[]): readonly (readonly [number, number])[] {
  if (!Array.isArray(weights))
    throw new UsageError(
      `split weights must be an array of numbers such as [0.9, 0.1], got ${shown(weights)}`,
    );
  if (weights.length === 0 || !weights.every((weight) => Number.isFinite(weight) && weight > 0))
    throw new UsageError(`split weights must be positive numbers, got [${weights.map(shown).join(', ')}]`);
  const sum = weights.reduce((total, weight) => total + weight, 0);
  let reached = 0;
  return weights.map((weight, i) => {
    const from = reached / sum;
    reached += weight;
    return [from, i === weights.length - 1 ? 1 : reached / sum] as const;
  });
}
