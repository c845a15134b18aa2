/** After ROWS rows the step continues only if it has removed at least this share of them. */
const ROWS = 1 << 16;
const SHARE = 1 / 3;

/**
 * With at most this number of groups, a partial step always removes at least SHARE of the first ROWS rows.
 */
export const MOST_MERGED = Math.floor(ROWS * (1 - SHARE));

/**
 * Decides whether a partial step, which groups rows or removes duplicates before rows are exchanged, saves
 * enough. The step after the exchange does the same work again, so a partial step that removes few of the
 * first ROWS rows gives up and passes the remaining rows on unchanged.
 */
export class FewerRows {
  #given = 0;
  #kept = 0;
  /** True once the work has stopped. */
  isGivenUp = false;
  #isDecided = false;

  /** Counts `given` rows, of which `kept` were kept. */
  count(given: number, kept: number): void {
    if (this.#isDecided) return;
    this.#given += given;
    this.#kept += kept;
    if (this.#given < ROWS) return;
    this.#isDecided = true;
    this.isGivenUp = this.#kept > this.#given * (1 - SHARE);
  }
}

/**
 * Positions of the rows that start a new group: for each group from number `before` on, its first row. Groups
 * are numbered in order of first occurrence.
 */
export function newGroups(codes: Uint32Array, before: number, groups: number): Uint32Array {
  const positions = new Uint32Array(groups - before);
  for (let i = 0, next = before; next < groups; i++) if (codes[i] === next) positions[next++ - before] = i;
  return positions;
}
