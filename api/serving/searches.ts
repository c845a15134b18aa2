import { UsageError } from '../../engine/errors.ts';
import type { RequestSession, RunOptions } from '../run-session.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { computeDevice } from '../../engine/run/devices.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { untilAborted } from '../../engine/waits.ts';
import {
  dropIndex,
  type Found,
  makeIndex,
  type SearchRequest,
  type SearchSpace,
  searchIndex,
} from '../../operators/serving/search.ts';
import type { IndexKind } from '../../connectors/model/index-layout.ts';
import type { ListIndex, ListTuning, PlacedLists } from '../../operators/serving/lists/list-index.ts';
import { SearchBatches } from './search-batches.ts';
import { ListSearches } from './list-searches.ts';
import type { SearchIndex } from '../../operators/tasks/search-tasks.ts';

/**
 * The search indexes of one model, by name. They do not refer to the model, so that they can be freed after
 * the model was garbage-collected.
 */
interface Indices {
  readonly session: RequestSession;
  readonly made: Map<string, Promise<SearchIndex>>;
  readonly lists: ListSearches;
}

/** Frees the search indexes of models that were garbage-collected without a call of `close`. */
const forgotten = new FinalizationRegistry<Indices>((indices) => void drop(indices).catch(() => undefined));

/**
 * Searches for single users and items of a model. A thread builds the index once, at the first request or by
 * `prepare`; each request is one task of the session's request threads, in parallel with the session's other
 * work.
 */
export class Searches {
  readonly #indices: Indices;
  readonly #running = new Set<Promise<unknown>>();
  readonly #batches: SearchBatches;
  #gram: Promise<Float32Array> | undefined;
  #closed = false;

  constructor(session: RequestSession) {
    this.#indices = { session, made: new Map(), lists: new ListSearches(session) };
    const { made } = this.#indices;
    let threads = 0;
    this.#batches = new SearchBatches(
      async (name, requests) => {
        const index = await made.get(name);
        if (index === undefined) throw new Error(`there is no index ${name}`);
        return searchIndex(index, requests, session.requestContext());
      },
      () => (threads ||= computeDevice(session.requestContext().executor).info.parallelism),
    );
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
   * Builds the index of a space, once. Throws CapacityError, and UsageError if the model or session is
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
    return this.#run(async () => {
      await this.prepare(name, space);
      return this.#batches.search(name, request, options.signal);
    });
  }

  /** Copies an index of lists to the request threads, once; `read` returns it. */
  async prepareLists(
    kind: IndexKind,
    read: () => Promise<ListIndex>,
    space: () => SearchSpace,
  ): Promise<PlacedLists> {
    this.requireOpen();
    return this.#indices.lists.prepare(kind, read, space);
  }

  /** Puts an index in place of the one before. */
  async replaceLists(kind: IndexKind, index: ListIndex, space: SearchSpace): Promise<void> {
    this.requireOpen();
    await this.#indices.lists.drop(kind);
    await this.#indices.lists.prepare(
      kind,
      async () => index,
      () => space,
    );
  }

  /** Frees an index; the next search prepares it again. */
  dropLists(kind: IndexKind): Promise<void> {
    return this.#indices.lists.drop(kind);
  }

  /** Changes how an index that was prepared is searched. */
  tuneLists(kind: IndexKind, change: ListTuning): Promise<void> {
    return this.#indices.lists.tune(kind, change);
  }

  /** Searches `probes` lists of an index that was prepared. */
  async searchLists(
    kind: IndexKind,
    probes: number,
    request: SearchRequest,
    options: RunOptions = {},
  ): Promise<Found> {
    this.requireOpen();
    return this.#run(() => this.#indices.lists.search(kind, probes, request, options.signal));
  }

  /** Runs work in the request threads, and releases the memory used there. */
  async compute<Result>(
    work: (ctx: ExecutionContext) => Promise<Result>,
    options: RunOptions,
  ): Promise<Result> {
    return this.#run(() => Holdings.within(this.#indices.session.requestContext(options), work));
  }

  /** The Gram matrix of all items, computed once. The signal ends the wait for it, not the work. */
  async gram(
    make: (ctx: ExecutionContext) => Promise<Float32Array>,
    signal?: AbortSignal,
  ): Promise<Float32Array> {
    this.#gram ??= Holdings.within(this.#indices.session.requestContext(), make);
    this.#gram.catch(() => (this.#gram = undefined));
    return signal ? untilAborted(this.#gram, signal, 'search') : this.#gram;
  }

  async #run<Result>(begin: () => Promise<Result>): Promise<Result> {
    const running = begin();
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  /** Waits for running requests and frees the memory; later requests throw UsageError. */
  async close(): Promise<void> {
    this.#closed = true;
    forgotten.unregister(this.#indices);
    await Promise.allSettled(this.#running);
    await drop(this.#indices);
  }
}

async function drop({ session, made, lists }: Indices): Promise<void> {
  await lists.close();
  const all = [...made.values()];
  made.clear();
  for (const index of await Promise.allSettled(all)) {
    // If the session is closed, it has already freed the memory.
    if (session.closed) return;
    if (index.status === 'fulfilled') await dropIndex(index.value, session.requestContext());
  }
}
