import { type MatrixView, type TaskScope } from '../../handler.ts';
import type { ListSearch } from '../../../operators/tasks/tasks.ts';
import { roundings, roundQuery } from '../search/search.ts';
import type { listScratch } from './list-scratch.ts';
import { rotation } from './rotate.ts';
import { fillSignTable, type Spreads } from './sign-table.ts';

/** Factor of the rounding errors of one product: of the center's, the difference's, and rotations. */
const PRODUCTS = 4;

/** Writes what scanLists reads of a query: x̂ of the rotated query, the table of signs, and `bound`. */
export class ListQuery {
  readonly #scope: TaskScope<ListSearch>;
  readonly #at: ReturnType<typeof listScratch>;
  readonly #differs: Float32Array;
  readonly #spreads: Spreads;
  readonly #rotate: (vector: Float32Array) => void;
  readonly #all: Float32Array;

  constructor(
    scope: TaskScope<ListSearch>,
    at: ReturnType<typeof listScratch>,
    { pointer, stride }: MatrixView,
    lists: number,
  ) {
    const { memory, params } = scope;
    [this.#scope, this.#at] = [scope, at];
    // Three rows after the centers: see ListParts.
    const [differs, means, variances] = [0, 1, 2].map(
      (row) => new Float32Array(memory.buffer, pointer + 4 * (lists + row) * stride, params.rank),
    );
    [this.#differs, this.#spreads] = [differs, { means, variances }];
    this.#rotate = rotation(params.rank);
    this.#all = new Float32Array(params.rank).fill(1);
  }

  /** Writes them for the query in scratch. Returns ‖x‖ over the features in which vectors differ. */
  write(): { readonly length: number } {
    const { memory, params } = this.#scope;
    const { rank, longest, margin } = params;
    const at = this.#at;
    const x = new Float32Array(memory.buffer, at.query, rank);
    let squares = 0;
    for (const value of x) squares += value * value;
    const rotated = x.map((value, k) => (this.#differs[k] === 0 ? 0 : value));
    this.#rotate(rotated);
    const width = 16 * Math.ceil(rank / 16);
    const coarse = new Int16Array(memory.buffer, at.coarse, width);
    const { length, missing, step } = roundQuery(rotated, this.#all, coarse);
    const table = new Uint8Array(memory.buffer, at.table, 4 * width);
    const { shift, inverse } = fillSignTable(rotated, this.#spreads, margin ?? 0, table);
    const slack = PRODUCTS * roundings(rank) * Math.sqrt(squares) * longest;
    new Float32Array(memory.buffer, at.bound, 6).set([length, missing, step, slack, shift, inverse]);
    return { length };
  }
}
