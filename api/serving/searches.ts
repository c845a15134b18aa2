import { UsageError } from '../../engine/errors.ts';
import type { RunOptions, Session } from '../session.ts';
import type { PartitionRef } from '../../engine/partition.ts';
import {
  dropIndex,
  type Found,
  makeGram,
  makeIndex,
  type SearchRequest,
  type SearchSpace,
  searchIndex,
  solveRow,
} from '../../operators/serving/search.ts';
import type { ParamsOf, ValuesOf } from '../../operators/tasks/tasks.ts';
import type { SearchIndex } from '../../operators/tasks/search-tasks.ts';

/**
 * The indices of a model by name; held apart from the model, so that they can be dropped when it has been
 * collected.
 */
interface Indices {
  readonly session: Session;
  readonly made: Map<string, Promise<SearchIndex>>;
  readonly grams: Map<string, Promise<PartitionRef>>;
}

/** Frees the indices of models that were collected without a call of `close`. */
const forgotten = new FinalizationRegistry<Indices>((indices) => void drop(indices).catch(() => undefined));

/**
 * Searches for single rows of a model. What they need is made once, at the first request or by `prepare`, in
 * a thread; each request is one task of the session's threads for requests, beside all other work of the
 * session.
 *
 */
export class Searches {
  readonly #indices: Indices;
  readonly #running = new Set<Promise<unknown>>();
  #closed = false;

  constructor(session: Session) {
    this.#indices = { session, made: new Map(), grams: new Map() };
    forgotten.register(this, this.#indices, this.#indices);
  }

  /** Throws UsageError after `close`. */
  requireOpen(): void {
    if (this.#closed)
      throw new UsageError('the model is closed', {
        advice: 'Load it again, or close it when the last request has been answered',
      });
  }

  /**
   * Makes the index of a space, once. Throws CapacityError, and UsageError where the model or the session is
   * closed.
   */
  async prepare(name: string, space: () => SearchSpace): Promise<SearchIndex> {
    this.requireOpen();
    const { session, made } = this.#indices;
    let index = made.get(name);
    if (index === undefined) {
      const ctx = session.requestContext();
      index = makeIndex(space(), ctx);
      made.set(name, index);
      index.catch(() => made.delete(name));
    }
    return index;
  }

  async search(
    name: string,
    space: () => SearchSpace,
    request: SearchRequest,
    options: RunOptions = {},
  ): Promise<Found> {
    const running = this.#search(name, space, request, options);
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  /** Solves a row from the vectors of a space. `gramWeight`: of the Gram matrix of all of them, made once. */
  async solve(
    name: string,
    space: () => SearchSpace,
    params: ParamsOf<'solve-row'>,
    gramWeight: number | undefined,
    options: RunOptions = {},
  ): Promise<ValuesOf<'solve-row'>> {
    const running = this.#solve(name, space, params, gramWeight, options);
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  async #solve(
    name: string,
    space: () => SearchSpace,
    params: ParamsOf<'solve-row'>,
    gramWeight: number | undefined,
    options: RunOptions,
  ): Promise<ValuesOf<'solve-row'>> {
    const index = await this.prepare(name, space);
    const { session, grams } = this.#indices;
    if (gramWeight !== undefined && !grams.has(name)) {
      const made = makeGram(index, params.rank, gramWeight, session.requestContext());
      grams.set(name, made);
      made.catch(() => grams.delete(name));
    }
    return solveRow(index, params, await grams.get(name), session.requestContext(options));
  }

  async #search(
    name: string,
    space: () => SearchSpace,
    request: SearchRequest,
    options: RunOptions,
  ): Promise<Found> {
    const index = await this.prepare(name, space);
    return searchIndex(index, request, this.#indices.session.requestContext(options));
  }

  /** Waits for the requests under way and frees the memory; later requests throw UsageError. */
  async close(): Promise<void> {
    this.#closed = true;
    forgotten.unregister(this.#indices);
    await Promise.allSettled(this.#running);
    await drop(this.#indices);
  }
}

async function drop({ session, made, grams }: Indices): Promise<void> {
  const [all, others] = [[...made.values()], [...grams.values()]];
  made.clear();
  grams.clear();
  // In a closed session the memory is gone already.
  if (session.closed) return;
  for (const index of await Promise.allSettled(all))
    if (index.status === 'fulfilled') await dropIndex(Object.values(index.value), session.requestContext());
  for (const gram of await Promise.allSettled(others))
    if (gram.status === 'fulfilled') await dropIndex([gram.value], session.requestContext());
}
