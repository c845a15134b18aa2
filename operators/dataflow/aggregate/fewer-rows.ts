/** Number of rows after which it is decided, and the share of them that must be removed to continue. */
const ROWS = 1 << 16;
const SHARE = 1 / 3;

/** Most groups for which merging rows is always worthwhile. */
export const MOST_MERGED = Math.floor(ROWS * (1 - SHARE));

/**
 * Decides whether to remove rows before an exchange, which the step after it would remove anyway. This stops
 * if it removes few of the first rows.
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
