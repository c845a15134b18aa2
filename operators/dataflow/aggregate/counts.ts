import { type Data, Int32 } from 'apache-arrow';
import { type Accumulator, fixedData, grown, numberData } from './accumulator.ts';
import type { Argument } from './argument.ts';

/** Most rows that one state can count. */
export const MOST_COUNTED = 2 ** 31 - 1;

/** Rows at the start of a batch that are inspected. */
const SAMPLE = 128;

/**
 * True if most rows have the same group as the row before, as in sorted data. A loop over runs is then
 * faster: it does not wait for each sum to be stored before the next addition.
 */
export function isInRuns(codes: Uint32Array): boolean {
  const rows = Math.min(SAMPLE, codes.length);
  let same = 0;
  for (let i = 1; i < rows; i++) if (codes[i] === codes[i - 1]) same++;
  return 2 * same > rows;
}

/** Counts rows by group. */
export class Counts {
  #counts = new Float64Array(0);

  add(codes: Uint32Array, groups: number): void {
    const counts = (this.#counts = grown(this.#counts, groups));
    if (!isInRuns(codes)) {
      for (let i = 0; i < codes.length; i++) counts[codes[i]]++;
      return;
    }
    for (let i = 0, start = 0; i < codes.length; start = i) {
      const group = codes[i];
      while (i < codes.length && codes[i] === group) i++;
      counts[group] += i - start;
    }
  }

  merge(added: Int32Array, codes: Uint32Array, groups: number): void {
    const counts = (this.#counts = grown(this.#counts, groups));
    for (let i = 0; i < codes.length; i++) counts[codes[i]] += added[i];
  }

  of(groups: number): Float64Array {
    return (this.#counts = grown(this.#counts, groups));
  }
}

/** Number of rows of each group, counted once for all aggregates that need it. */
export class RowCounts extends Counts {
  /** True if any aggregate needs the counts. */
  isWanted = false;
}

/** Counts the values of each group that are not null: its rows minus its nulls, which are few. */
export class ValueCounts {
  readonly #rows: RowCounts;
  #nulls = new Float64Array(0);
  readonly #merged = new Counts();
  #isMerged = false;

  constructor(rows: RowCounts) {
    rows.isWanted = true;
    this.#rows = rows;
  }

  /**
   * Adds rows that RowCounts has counted already. `valid`: one byte a row, 0 for a null; undefined if there
   * are no nulls.
   */
  add(valid: Uint8Array | undefined, codes: Uint32Array, groups: number): void {
    if (valid === undefined) return;
    const nulls = (this.#nulls = grown(this.#nulls, groups));
    for (let i = 0; i < codes.length; i++) nulls[codes[i]] += 1 - valid[i];
  }

  merge(state: Data, codes: Uint32Array, groups: number): void {
    this.#isMerged = true;
    this.#merged.merge(state.values as Int32Array, codes, groups);
  }

  of(groups: number): Float64Array {
    if (this.#isMerged) return this.#merged.of(groups);
    const rows = this.#rows.of(groups);
    if (this.#nulls.length === 0) return rows;
    const nulls = grown(this.#nulls, groups);
    const counts = new Float64Array(groups);
    for (let group = 0; group < groups; group++) counts[group] = rows[group] - nulls[group];
    return counts;
  }

  state(groups: number): Data {
    return fixedData(new Int32(), new Int32Array(this.of(groups).subarray(0, groups)), groups);
  }
}

/** Number of rows of a group, or of its values that are not null. */
export class Count implements Accumulator {
  readonly #counts: ValueCounts;

  constructor(rows: RowCounts) {
    this.#counts = new ValueCounts(rows);
  }

  add(argument: Argument | undefined, codes: Uint32Array, groups: number): void {
    this.#counts.add(argument?.valid, codes, groups);
  }

  merge([state]: readonly Data[], codes: Uint32Array, groups: number): void {
    this.#counts.merge(state, codes, groups);
  }

  states(groups: number): Data[] {
    return [this.#counts.state(groups)];
  }

  result(groups: number): Data {
    return numberData('int64', this.#counts.of(groups), groups);
  }
}
