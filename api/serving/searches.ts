import type { IndexKind } from '../../connectors/model/index-layout.ts';
import { cancelledBy, UsageError } from '../../engine/errors.ts';
import type { PartitionRef } from '../../engine/partition.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { computeDevice } from '../../engine/run/devices.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { untilAborted } from '../../engine/waits.ts';
import {
  type ListIndex,
  type ListTuning,
  type PlacedLists,
  placeLists,
  searchInLists,
  dropIndex,
  type Found,
  makeIndex,
  searchIndex,
  type SearchRequest,
  type SearchSpace,
} from '../../operators/serving/search.ts';
import type { SearchIndex } from '../../operators/tasks/search-tasks.ts';
import type { RequestSession, RunOptions } from '../run-session.ts';

/**
 * The search indexes of one model, by name and by kind. They do not refer to the model, so that they can be freed
 * after the model was garbage-collected.
 */
interface Indices {
  readonly session: RequestSession;
  readonly exact: Map<string, Promise<SearchIndex>>;
  readonly lists: Map<IndexKind, Promise<PlacedLists>>;
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
    const indices: Indices = { session, exact: new Map(), lists: new Map() };
    this.#indices = indices;
    let threads = 0;
    this.#batches = new SearchBatches(
      (index, requests) => searchIn(indices, index, requests),
      () => (threads ||= computeDevice(session.requestContext().executor).info.parallelism),
    );
    forgotten.register(this, indices, indices);
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
    const { session, exact } = this.#indices;
    return once(exact, name, async () => makeIndex(space(), session.requestContext()));
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
    const { session, lists } = this.#indices;
    return once(lists, kind, async () => placeLists(await read(), space(), session.requestContext()));
  }

  /** Frees an index of lists; the next search prepares it again. */
  async dropLists(kind: IndexKind): Promise<void> {
    const { session, lists } = this.#indices;
    const placed = lists.get(kind);
    lists.delete(kind);
    const found = await placed?.catch(() => undefined);
    // If the session is closed, it has already freed the memory.
    if (found !== undefined && !session.closed) await dropIndex(found.parts, session.requestContext());
  }

  /** Changes how an index that was prepared is searched. */
  async tuneLists(kind: IndexKind, change: ListTuning): Promise<void> {
    const placed = await made(this.#indices.lists, kind);
    const search = { ...placed.search, ...change };
    this.#indices.lists.set(kind, Promise.resolve({ ...placed, search }));
  }

  /**
   * Searches `probes` lists of an index that was prepared. Searches of one kind, number of lists and length run
   * together: see SearchBatches.
   */
  async searchLists(
    kind: IndexKind,
    probes: number,
    request: SearchRequest,
    options: RunOptions = {},
  ): Promise<Found> {
    this.requireOpen();
    return this.#run(() =>
      this.#batches.search(`${kind} # ${probes} # ${request.n}`, request, options.signal),
    );
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

/** Makes an index, or returns it if it was made. One that could not be made is made again. */
function once<Key, Index>(
  known: Map<Key, Promise<Index>>,
  key: Key,
  make: () => Promise<Index>,
): Promise<Index> {
  let index = known.get(key);
  if (index === undefined) {
    index = make();
    known.set(key, index);
    index.catch(() => known.delete(key));
  }
  return index;
}

async function made<Key, Index>(known: Map<Key, Promise<Index>>, key: Key): Promise<Index> {
  const index = await known.get(key);
  if (index === undefined) throw new Error(`there is no index ${String(key)}`);
  return index;
}

/** Searches by exact scores in the index of a name, or in lists: "kind # number of lists # length". */
async function searchIn(
  { session, exact, lists }: Indices,
  index: string,
  requests: readonly SearchRequest[],
): Promise<readonly Found[]> {
  const [kind, probes] = index.split(' # ');
  return probes === undefined
    ? searchIndex(await made(exact, index), requests, session.requestContext())
    : searchInLists(await made(lists, kind as IndexKind), Number(probes), requests, session.requestContext());
}

async function drop({ session, exact, lists }: Indices): Promise<void> {
  const all = [...exact.values(), ...Array.from(lists.values(), async (placed) => (await placed).parts)];
  exact.clear();
  lists.clear();
  for (const index of await Promise.allSettled<Readonly<Record<string, PartitionRef>>>(all)) {
    // If the session is closed, it has already freed the memory.
    if (session.closed) return;
    if (index.status === 'fulfilled') await dropIndex(index.value, session.requestContext());
  }
}

/** Most searches that one task runs; a longer batch would delay the requests that come next. */
const MOST_SEARCHES = 32;

interface Waiting {
  readonly index: string;
  readonly request: SearchRequest;
  readonly resolve: (found: Found) => void;
  readonly reject: (error: unknown) => void;
  cancelled: boolean;
}

/** Runs searches of one index and one mask as one task, in their order. */
type RunBatch = (index: string, requests: readonly SearchRequest[]) => Promise<readonly Found[]>;

/**
 * Sends a search to a thread at once while one is free. Searches that arrive while all threads are busy wait,
 * and go together: a message to a thread costs about as much as a search.
 */
export class SearchBatches {
  readonly #run: RunBatch;
  readonly #threads: () => number;
  #waiting: Waiting[] = [];
  #running = 0;

  constructor(run: RunBatch, threads: () => number) {
    [this.#run, this.#threads] = [run, threads];
  }

  /** Rejects with CancelledError when the signal fires; a search that runs then is not stopped. */
  async search(index: string, request: SearchRequest, signal: AbortSignal | undefined): Promise<Found> {
    if (signal?.aborted) throw cancelledBy(signal);
    const { promise, resolve, reject } = Promise.withResolvers<Found>();
    const waiting: Waiting = { index, request, resolve, reject, cancelled: false };
    this.#waiting.push(waiting);
    this.#send();
    if (signal === undefined) return promise;
    const cancel = () => {
      waiting.cancelled = true;
      reject(cancelledBy(signal));
    };
    signal.addEventListener('abort', cancel, { once: true });
    try {
      return await promise;
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }

  #send(): void {
    const threads = this.#threads();
    while (this.#running < threads && this.#waiting.length > 0) {
      const batch = this.#take(Math.min(MOST_SEARCHES, Math.ceil(this.#waiting.length / threads)));
      if (batch.length === 0) continue;
      this.#running++;
      void this.#answer(batch).finally(() => {
        this.#running--;
        this.#send();
      });
    }
  }

  /** Removes the first search, and up to `most` in all of the same index and mask. */
  #take(most: number): Waiting[] {
    const rest = this.#waiting.filter(({ cancelled }) => !cancelled);
    const batch: Waiting[] = [];
    this.#waiting = [];
    for (const one of rest) {
      const fits = batch.length === 0 || isTogether(batch[0], one);
      if (fits && batch.length < most) batch.push(one);
      else this.#waiting.push(one);
    }
    return batch;
  }

  async #answer(batch: readonly Waiting[]): Promise<void> {
    try {
      const found = await this.#run(
        batch[0].index,
        batch.map(({ request }) => request),
      );
      batch.forEach(({ resolve }, k) => resolve(found[k]));
    } catch (error) {
      // One request may be at fault, such as by lists that are too long; the others are answered.
      if (batch.length === 1) batch[0].reject(error);
      else for (const one of batch) await this.#answer([one]);
    }
  }
}

function isTogether(first: Waiting, other: Waiting): boolean {
  return first.index === other.index && first.request.mask === other.request.mask;
}
