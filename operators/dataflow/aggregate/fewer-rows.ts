/** Rows after which it is decided, and the share of them that must be left out. */
const ROWS = 1 << 16;
const SHARE = 1 / 3;

/** Most groups for which merging rows is certainly worth it. */
export const MOST_MERGED = Math.floor(ROWS * (1 - SHARE));

/**
 * Decides about work that leaves out rows ahead of an exchange, which the step after it would leave out as
 * well: it is given up where it leaves out few of the first rows.
 */
export class FewerRows {
  #given = 0;
  #kept = 0;
  /** True from then on. */
  isGivenUp = false;
  #isDecided = false;

  /** Notes the number of rows, and of those that were kept. */
  see(given: number, kept: number): void {
    if (this.#isDecided) return;
    this.#given += given;
    this.#kept += kept;
    if (this.#given < ROWS) return;
    this.#isDecided = true;
    this.isGivenUp = this.#kept > this.#given * (1 - SHARE);
  }
}
