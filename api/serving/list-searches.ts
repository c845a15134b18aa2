import type { IndexKind } from '../../connectors/model/index-layout.ts';
import { computeDevice } from '../../engine/run/devices.ts';
import {
  dropLists,
  type ListIndex,
  type ListTuning,
  type PlacedLists,
  placeLists,
  searchInLists,
} from '../../operators/serving/lists/list-index.ts';
import type { Found, SearchRequest, SearchSpace } from '../../operators/serving/search.ts';
import type { RequestSession } from '../run-session.ts';
import { SearchBatches } from './search-batches.ts';

/** The indexes of lists of one model in the memory of the session's request threads. */
export class ListSearches {
  readonly #session: RequestSession;
  readonly #placed = new Map<IndexKind, Promise<PlacedLists>>();
  readonly #batches: SearchBatches;

  constructor(session: RequestSession) {
    this.#session = session;
    let threads = 0;
    this.#batches = new SearchBatches(
      async (name, requests) => {
        const [kind, probes] = name.split(' ');
        const placed = await this.#placed.get(kind as IndexKind);
        if (placed === undefined) throw new Error(`there is no index ${name}`);
        return searchInLists(placed, Number(probes), requests, session.requestContext());
      },
      () => (threads ||= computeDevice(session.requestContext().executor).info.parallelism),
    );
  }

  /** Copies an index to the threads, once. */
  prepare(kind: IndexKind, read: () => Promise<ListIndex>, space: () => SearchSpace): Promise<PlacedLists> {
    let placed = this.#placed.get(kind);
    if (placed === undefined) {
      placed = read().then((index) => placeLists(index, space(), this.#session.requestContext()));
      this.#placed.set(kind, placed);
      placed.catch(() => this.#placed.delete(kind));
    }
    return placed;
  }

  /** Changes how an index is searched. */
  async tune(kind: IndexKind, change: ListTuning): Promise<void> {
    const placed = await this.#placed.get(kind);
    if (placed === undefined) throw new Error(`there is no index ${kind}`);
    this.#placed.set(kind, Promise.resolve({ ...placed, search: { ...placed.search, ...change } }));
  }

  /** Searches of one kind, number of lists and length run together: see SearchBatches. */
  search(
    kind: IndexKind,
    probes: number,
    request: SearchRequest,
    signal: AbortSignal | undefined,
  ): Promise<Found> {
    return this.#batches.search(`${kind} ${probes} ${request.n}`, request, signal);
  }

  async drop(kind: IndexKind): Promise<void> {
    const placed = this.#placed.get(kind);
    this.#placed.delete(kind);
    const found = await placed?.catch(() => undefined);
    // If the session is closed, it has already freed the memory.
    if (found !== undefined && !this.#session.closed) await dropLists(found, this.#session.requestContext());
  }

  async close(): Promise<void> {
    await Promise.all(Array.from(this.#placed.keys(), (kind) => this.drop(kind)));
  }
}
