/**
 * Pages that are not read page by page: they are damaged, or of a kind that is left to the decoder, which
 * reads the row group from there on or has the error.
 *
 */
export class PageProblem extends Error {
  readonly column: string;

  constructor(message: string, column: string) {
    super(message);
    this.column = column;
  }
}
