import { UNKNOWN_ROW } from '../../../engine/keys/row-numbers.ts';
import type { BuildSide } from './build-side.ts';

/** Pairs of matching rows: probe[i] matches build[i]. The arrays are reused for the next pairs. */
export interface Matches {
  /** Rows of the probe batch, ascending. */
  readonly probe: Uint32Array;
  /**
   * Rows of the build side. A probe row without a match has the build side's number of rows here, an index
   * after the last row.
   */
  readonly build: Uint32Array;
  /** True if `probe` is a range of consecutive rows. */
  readonly isRange: boolean;
  /** True if any row has no match. */
  readonly hasMisses: boolean;
}

export interface HashJoinOptions {
  /** Also return probe rows without a match. */
  readonly keepsProbe: boolean;
  /** Record the keys of the build side that have a match, for `heldRows`. */
  readonly notesMatches: boolean;
  /** Most pairs at once. */
  readonly limit: number;
}

/**
 * Finds the matches of probe rows on the build side. Probe rows keep their order, and the matches of each
 * have the order of the build side. A bounded number of pairs is made at a time, even if a row has many.
 */
export class HashJoin {
  readonly #build: BuildSide;
  readonly #keepsProbe: boolean;
  /** 1 for the keys of the build side that occurred on the probe side. */
  readonly #matched: Uint8Array | undefined;
  readonly #probeRows: Uint32Array;
  readonly #buildRows: Uint32Array;
  /**
   * Position in the probe batch, so that pairs can be made in several pieces: the next row, and its next
   * match as an index into the build side's `rows`, or -1 before its first match.
   */
  #row = 0;
  #match = -1;
  #misses = 0;

  constructor(build: BuildSide, { keepsProbe, notesMatches, limit }: HashJoinOptions) {
    [this.#build, this.#keepsProbe] = [build, keepsProbe];
    this.#matched = notesMatches ? new Uint8Array(build.keys) : undefined;
    [this.#probeRows, this.#buildRows] = [new Uint32Array(limit), new Uint32Array(limit)];
  }

  /** The matches of a batch's rows. `keys`: numbers of their keys. */
  *matches(keys: Uint32Array): Generator<Matches> {
    [this.#row, this.#match] = [0, -1];
    if (this.#matched !== undefined) noteAll(keys, this.#matched);
    while (this.#row < keys.length) {
      const first = this.#row;
      this.#misses = 0;
      const count = this.#build.isUnique ? this.#fillUnique(keys) : this.#fill(keys);
      if (count === 0) continue;
      const isRange = this.#build.isUnique && count === this.#row - first;
      yield {
        probe: this.#probeRows.subarray(0, count),
        build: this.#buildRows.subarray(0, count),
        isRange,
        hasMisses: this.#misses > 0,
      };
    }
  }

  /** Records the keys of a batch's rows as matched, without making pairs. */
  note(keys: Uint32Array): void {
    if (this.#matched !== undefined) noteAll(keys, this.#matched);
  }

  /** Rows of the build side whose key occurred on the probe side (`hadMatch`), or all others; ascending. */
  heldRows(hadMatch: boolean): Uint32Array {
    const { keyOfRow, rowCount } = this.#build;
    const matched = this.#matched ?? new Uint8Array(this.#build.keys);
    const wanted = hadMatch ? 1 : 0;
    const rows = new Uint32Array(rowCount);
    let count = 0;
    for (let row = 0; row < rowCount; row++) {
      const key = keyOfRow[row];
      const had = key === UNKNOWN_ROW ? 0 : matched[key];
      if (had === wanted) rows[count++] = row;
    }
    return rows.subarray(0, count);
  }

  /** Fast path: each key has exactly one row. */
  #fillUnique(keys: Uint32Array): number {
    const { rows, rowCount } = this.#build;
    const [probe, build, keepsProbe] = [this.#probeRows, this.#buildRows, this.#keepsProbe];
    const end = Math.min(keys.length, this.#row + probe.length);
    let [count, misses] = [0, 0];
    for (let row = this.#row; row < end; row++) {
      const key = keys[row];
      if (key !== UNKNOWN_ROW) build[count] = rows[key];
      else if (keepsProbe) {
        build[count] = rowCount;
        misses++;
      } else continue;
      probe[count++] = row;
    }
    [this.#row, this.#misses] = [end, misses];
    return count;
  }

  #fill(keys: Uint32Array): number {
    const { offsets, rows, rowCount } = this.#build;
    const [probe, build, keepsProbe] = [this.#probeRows, this.#buildRows, this.#keepsProbe];
    const limit = probe.length;
    let [row, match, count, misses] = [this.#row, this.#match, 0, 0];
    while (row < keys.length && count < limit) {
      const key = keys[row];
      if (key === UNKNOWN_ROW) {
        if (keepsProbe) {
          probe[count] = row;
          build[count++] = rowCount;
          misses++;
        }
        row++;
        continue;
      }
      const end = offsets[key + 1];
      let at = match < 0 ? offsets[key] : match;
      const stop = Math.min(end, at + limit - count);
      for (; at < stop; at++) {
        probe[count] = row;
        build[count++] = rows[at];
      }
      match = at < end ? at : -1;
      if (match < 0) row++;
    }
    [this.#row, this.#match, this.#misses] = [row, match, misses];
    return count;
  }
}

function noteAll(keys: Uint32Array, matched: Uint8Array): void {
  for (let row = 0; row < keys.length; row++) if (keys[row] !== UNKNOWN_ROW) matched[keys[row]] = 1;
}
