import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Dataset } from '../../api/dataset.ts';
import type { IndexUse } from '../../api/serving/served-model.ts';
import { DataError } from '../../engine/errors.ts';
import { readRegular } from '../../engine/regular-file.ts';
import type { Exclusions, Id, ItemFilters, ItemNames, Model, EventSink, Session } from '../../index.ts';
import { jsonId } from '../report/recommendations.ts';
import { HttpError } from './http-error.ts';

/** A model that is loaded and prepared, with the data that belong to it. */
export interface LoadedModel {
  readonly model: Model;
  /** The JavaScript types of its ids. */
  readonly forms: Model['idForms'];
  /** Short name of the stored model, for logs and answers. */
  readonly version: string;
  /** The use of the model's index, by the flag --index. */
  readonly index: IndexUse;
  /** Pairs that are not recommended, by the flag --exclude. */
  readonly exclude?: Exclusions | undefined;
  readonly names?: ItemNames | undefined;
  /** Attributes of items, by the flag --items. */
  readonly filters?: ItemFilters | undefined;
  readonly loadedAt: Date;
}

/** Throws HttpError 404 unless the model knows the id. */
export function requireKnown({ model }: LoadedModel, side: 'user' | 'item', id: Id): void {
  const known = side === 'user' ? model.hasUser(id) : model.hasItem(id);
  if (!known) throw new HttpError('NOT_FOUND', `the model has no ${side} ${shortId(id)}`);
}

/** The ids of a side in the form for JSON: numbers where all are safe integers, else texts. */
export function idsForJson({ forms }: LoadedModel, side: 'user' | 'item'): (id: Id) => number | string {
  const form = forms[side];
  return (id) => (typeof id === 'number' && form === 'number' ? id : jsonId(id, form));
}

/** An id for a message. */
export function shortId(id: Id): string {
  const text = String(id);
  return text.length > 100 ? `${text.slice(0, 100)}...` : text;
}

export interface ModelData {
  readonly folder: string;
  readonly session: Session;
  /** The flag --index. */
  readonly index: IndexUse;
  readonly readExclude: (() => Promise<Dataset>) | undefined;
  readonly readFilters: ((model: Model) => Promise<ItemFilters>) | undefined;
  readonly readNames: (model: Model) => Promise<ItemNames | undefined>;
  /** Cancels a load. */
  readonly signal: AbortSignal;
  readonly onEvent: EventSink;
}

/** Most bytes of a file of metadata, which has one line. */
const MOST_BYTES = 2 ** 28;

/** Loads a model with the data that belong to it, ready for the first request. */
export async function loadModel(data: ModelData): Promise<LoadedModel> {
  const { folder, session, index, readExclude, readFilters, readNames, signal, onEvent } = data;
  const version = await versionOf(folder);
  const model = await session.loadModel(folder, { signal, onEvent });
  try {
    const exclude = readExclude && (await model.exclusions(await readExclude(), { signal, onEvent }));
    const filters = await readFilters?.(model);
    const names = await readNames(model);
    await model.prepare({ index });
    if ((await versionOf(folder)) !== version)
      throw new DataError('the model was replaced while it was loaded', { phase: 'load', file: folder });
    const forms = model.idForms;
    return { model, forms, version, index, exclude, names, filters, loadedAt: new Date() };
  } catch (error) {
    await model.close();
    throw error;
  }
}

/** A short digest of the model's metadata, which name the training and its results. */
async function versionOf(folder: string): Promise<string> {
  const metadata = join(folder, 'metadata');
  const hash = createHash('sha256');
  const names = await readdir(metadata).catch((): string[] => []);
  for (const name of names.filter((one) => one.startsWith('part-')).sort())
    hash.update(readRegular(join(metadata, name), MOST_BYTES, { phase: 'load' }));
  return hash.digest('hex').slice(0, 12);
}

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
