import type { LoadedModel } from './loaded-model.ts';

/** A model with the number of requests that use it. */
interface Lease {
  readonly loaded: LoadedModel;
  users: number;
  /** True once another model has replaced it. */
  replaced: boolean;
}

/**
 * The model that answers. When it is replaced, requests that began with the old model end with it, and the
 * old model is closed after the last of them.
 */
export class ServedModels {
  #now: Lease;
  readonly #closing = new Set<Promise<void>>();

  readonly #onReleased: () => void;

  /** `onReleased` is called when the memory of a replaced model is no longer used. */
  constructor(loaded: LoadedModel, onReleased: () => void = () => {}) {
    this.#now = { loaded, users: 0, replaced: false };
    this.#onReleased = onReleased;
  }

  get current(): LoadedModel {
    return this.#now.loaded;
  }

  /** Runs work with the current model, which stays open until the work has ended. */
  async use<T>(work: (loaded: LoadedModel) => Promise<T>): Promise<T> {
    const lease = this.#now;
    lease.users++;
    try {
      return await work(lease.loaded);
    } finally {
      lease.users--;
      this.#closeUnused(lease);
    }
  }

  replace(loaded: LoadedModel): void {
    const old = this.#now;
    this.#now = { loaded, users: 0, replaced: false };
    old.replaced = true;
    this.#closeUnused(old);
  }

  /** Closes the model after the last request, and waits for models that were replaced. */
  async close(): Promise<void> {
    await Promise.all([...this.#closing, this.#now.loaded.model.close()]);
  }

  #closeUnused({ replaced, users, loaded }: Lease): void {
    if (!replaced || users > 0) return;
    const closed = loaded.model.close().finally(() => {
      this.#closing.delete(closed);
      this.#onReleased();
    });
    this.#closing.add(closed);
    closed.catch(() => {});
  }
}
