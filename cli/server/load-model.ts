import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { IndexUse } from '../../api/serving/index-use.ts';
import type { Dataset } from '../../api/dataset.ts';
import { DataError } from '../../engine/errors.ts';
import { readRegular } from '../../engine/regular-file.ts';
import type { EventSink, ItemFilters, ItemNames, Model, Session } from '../../index.ts';
import type { LoadedModel } from './loaded-model.ts';

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
