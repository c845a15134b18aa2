/**
 * Pages that cannot be read page by page: damaged, or of a kind that only the decoder reads. The decoder then
 * reads the row group from there on, or reports the error.
 */
export class PageProblem extends Error {
  readonly column: string;

  constructor(message: string, column: string) {
    super(message);
    this.column = column;
  }
}
