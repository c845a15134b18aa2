import { cancelledBy } from '../engine/errors.ts';

/** A request whose result several readers wait for. It is cancelled when all of them are. */
export class SharedRequest<Value> {
  readonly #aborting = new AbortController();
  readonly #value: Promise<Value>;
  #waiting = 0;
  #ended = false;

  constructor(start: (signal: AbortSignal) => Promise<Value>) {
    this.#value = start(this.#aborting.signal);
    const end = () => void (this.#ended = true);
    this.#value.then(end, end);
  }

  /** True if no later reader can wait for it. */
  get cancelled(): boolean {
    return this.#aborting.signal.aborted;
  }

  /** Calls `end` if the request fails. */
  failed(end: () => void): void {
    this.#value.catch(end);
  }

  async wait(signal: AbortSignal | undefined): Promise<Value> {
    if (signal === undefined) {
      this.#waiting++;
      return this.#value;
    }
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    const cancel = () => {
      reject(cancelledBy(signal, { phase: 'read' }));
      if (--this.#waiting === 0 && !this.#ended) this.#aborting.abort(signal.reason);
    };
    this.#waiting++;
    if (signal.aborted) cancel();
    else signal.addEventListener('abort', cancel, { once: true });
    try {
      return await Promise.race([aborted, this.#value]);
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }
}

/** A value that is read once, by a request that its readers share. */
export class SharedValue<Value> {
  readonly #read: (signal: AbortSignal) => Promise<Value>;
  #request: SharedRequest<Value> | undefined;

  constructor(read: (signal: AbortSignal) => Promise<Value>) {
    this.#read = read;
  }

  /** Reads it again if the request failed or was cancelled. */
  get(signal: AbortSignal | undefined): Promise<Value> {
    if (this.#request === undefined || this.#request.cancelled) {
      const request = new SharedRequest(this.#read);
      this.#request = request;
      request.failed(() => this.#request === request && (this.#request = undefined));
    }
    return this.#request.wait(signal);
  }
}

/** Requests by name, whose results are kept up to a number of bytes; the longest unused ones are removed. */
export class RequestCache<Key, Value> {
  readonly #entries = new Map<Key, { readonly request: SharedRequest<Value>; readonly bytes: number }>();
  readonly #most: number;
  #bytes = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Bytes that are kept. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Undefined if it was removed, failed or was cancelled. */
  get(key: Key): SharedRequest<Value> | undefined {
    const found = this.#entries.get(key);
    if (found === undefined || found.request.cancelled) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, found);
    return found.request;
  }

  set(key: Key, request: SharedRequest<Value>, bytes: number): void {
    this.#delete(key);
    this.#entries.set(key, { request, bytes });
    this.#bytes += bytes;
    request.failed(() => this.#entries.get(key)?.request === request && this.#delete(key));
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#most) break;
      this.#delete(oldest);
    }
  }

  #delete(key: Key): void {
    this.#bytes -= this.#entries.get(key)?.bytes ?? 0;
    this.#entries.delete(key);
  }
}
