import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Dataset } from '../../api/dataset.ts';
import { type IndexUse, LARGE } from '../../api/serving/served-model.ts';
import { DataError, throwIfAborted, UsageError } from '../../engine/errors.ts';
import { counted } from '../../engine/format.ts';
import { readRegular } from '../../engine/regular-file.ts';
import type { Exclusions, Id, ItemFilters, ItemNames, Model, EventSink, Session } from '../../index.ts';
import { type AttributeFiles, withAttributeFiles } from '../options/data/attribute-options.ts';
import { jsonId } from '../report/recommendations.ts';
import { AddedRows, refusedRows, type SentRow, sentIds, type Side } from './added-rows.ts';
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
  /** Number of rows that requests had added when the model was loaded: see AddedRows. */
  readonly added: number;
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
  /** Files with attributes of items and users that the model gets. */
  readonly attributeFiles?: AttributeFiles;
  /** Cancels a load. */
  readonly signal: AbortSignal;
  readonly onEvent: EventSink;
}

/** Most bytes of a file of metadata, which has one line. */
const MOST_BYTES = 2 ** 28;

/**
 * Loads a model with the data that belong to it, ready for the first request. `added`: what requests have added
 * to the model before.
 */
export async function loadModel(data: ModelData, added = new AddedRows()): Promise<LoadedModel> {
  const { folder, session, index, readExclude, readFilters, readNames, signal, onEvent } = data;
  const version = await versionOf(folder);
  const { count } = added;
  const stored = await session.loadModel(folder, { signal, onEvent });
  const model = await withAdded(await withFiles(stored, data), added, data);
  try {
    const exclude = readExclude && (await model.exclusions(await readExclude(), { signal, onEvent }));
    const filters = await readFilters?.(model);
    const names = await readNames(model);
    await model.prepare({ index });
    if ((await versionOf(folder)) !== version)
      throw new DataError('the model was replaced while it was loaded', { phase: 'load', file: folder });
    const forms = model.idForms;
    const loadedAt = new Date();
    return { model, forms, version, index, exclude, names, filters, loadedAt, added: count };
  } catch (error) {
    await model.close();
    throw error;
  }
}

const sides = ['item', 'user'] as const satisfies readonly Side[];

/** The model with the rows of the files. */
async function withFiles(
  stored: Model,
  { attributeFiles = {}, index, signal, onEvent }: ModelData,
): Promise<Model> {
  const model = await withAttributeFiles(stored, attributeFiles, { signal, onEvent });
  if (model.indexed.length > 0 || !usesIndex(stored, index)) return model;
  const text = 'the index of the model does not have the items that --item-attributes adds';
  const advice = 'Save a model with them (model.withItems), and build its index by factorflow index';
  if (index !== 'auto') throw new UsageError(text, { advice });
  onEvent({ type: 'warning', text: `${text}, so searches do not use it. ${advice}` });
  return model;
}

function usesIndex({ indexed, itemCount }: Model, index: IndexUse): boolean {
  return indexed.length > 0 && index !== false && (index !== 'auto' || itemCount >= LARGE);
}

/** The model with the rows of requests; a warning reports those that it cannot have. */
async function withAdded(
  given: Model,
  added: AddedRows,
  { index, signal, onEvent }: ModelData,
): Promise<Model> {
  let model = given;
  for (const side of sides) {
    const rows = added.since(side, 0);
    if (rows.length === 0) continue;
    try {
      requireExtensible(model, side, index);
      ({ model } = await model.extended(side, rows, { signal, onEvent }));
    } catch (error) {
      if (!(error instanceof UsageError || error instanceof DataError || error instanceof HttpError))
        throw error;
      const text = `${counted(rows.length, side)} that requests added cannot be kept: ${error.message}`;
      onEvent({ type: 'warning', text });
    }
  }
  return model;
}

/** Throws HttpError for items that searches of an index would not find. */
function requireExtensible(model: Model, side: Side, index: IndexUse): void {
  if (side === 'item' && usesIndex(model, index))
    throw new HttpError(
      'USAGE',
      'the model has an index of its items, which takes no further ones until it is built again, or the server starts with --index off',
    );
}

/** Numbers of added rows, and the model with them: the same one if nothing has changed. */
interface Extension {
  readonly loaded: LoadedModel;
  readonly counts: Omit<Awaited<ReturnType<Model['extended']>>, 'model'>;
}

/** A loaded model with the rows of a request. */
async function extended(
  loaded: LoadedModel,
  side: Side,
  rows: readonly SentRow[],
  signal: AbortSignal,
): Promise<Extension> {
  const { index, exclude, filters } = loaded;
  requireExtensible(loaded.model, side, index);
  const { model, ...counts } = await loaded.model.extended(side, rows, { signal });
  if (counts.added + counts.changed === 0) return { loaded, counts };
  await model.prepare({ index }).catch(async (error: unknown) => {
    await model.close();
    throw error;
  });
  const carried = model.carried({ exclude, filters });
  return { loaded: { ...loaded, ...carried, model, forms: model.idForms }, counts };
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
  readonly #added = new AddedRows();
  /** The replacement under way: one begins when the one before has ended. */
  #replacing: Promise<unknown> = Promise.resolve();

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

  /**
   * Adds rows of a request, once those of earlier ones are added. Throws UsageError and HttpError for rows that
   * do not fit, and changes nothing then.
   */
  async add(side: Side, rows: readonly SentRow[], signal: AbortSignal): Promise<Extension> {
    return this.#alone(async () => {
      throwIfAborted(signal);
      const ids = sentIds(this.current.model, side, rows);
      const made = await extended(this.current, side, rows, signal).catch((error: unknown) => {
        throw refusedRows(error, side);
      });
      try {
        this.#added.keep(side, rows, ids);
      } catch (error) {
        if (made.loaded !== this.current) await made.loaded.model.close();
        throw error;
      }
      if (made.loaded !== this.current) this.#replace(made.loaded);
      return made;
    });
  }

  /** Takes another model, with what requests added while it was loaded. */
  async reload(
    load: (added: AddedRows) => Promise<LoadedModel>,
    isCurrent: () => Promise<boolean> = async () => true,
  ): Promise<LoadedModel | undefined> {
    const given = await load(this.#added);
    if (!(await isCurrent())) {
      await given.model.close();
      return undefined;
    }
    return this.#alone(async () => {
      let loaded = given;
      for (const side of sides) {
        const rows = this.#added.since(side, given.added);
        // Rows that do not fit this model are in the next load's warning.
        if (rows.length > 0)
          loaded = await extended(loaded, side, rows, new AbortController().signal).then(
            (made) => made.loaded,
            () => loaded,
          );
      }
      if (loaded !== given) await given.model.close();
      this.#replace(loaded);
      return loaded;
    });
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#replacing.then(work, work);
    this.#replacing = done.catch(() => {});
    return done;
  }

  #replace(loaded: LoadedModel): void {
    const old = this.#now;
    this.#now = { loaded, users: 0, replaced: false };
    old.replaced = true;
    this.#closeUnused(old);
  }

  /** Closes the model after the last request, and waits for models that were replaced. */
  async close(): Promise<void> {
    await this.#replacing;
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
