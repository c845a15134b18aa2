import { checkOptions } from '../api/check-options.ts';
import { hasBiases } from '../api/model-parts.ts';
import { decodeMetadata, type ModelStorage } from '../connectors/model/decode-metadata.ts';
import { wholeCounts } from '../connectors/model/whole-counts.ts';
import { emptyKeys, keyCount } from '../engine/keys/key-column.ts';
import { addressOf } from './page-address.ts';
import { PageIndexes } from './page-indexes.ts';
import { PageModel } from './page-model.ts';
import { PageSession } from './page-session.ts';
import { readSide } from './read-side.ts';
import { servingTasks } from './serving-tasks.ts';
import { type Fetch, problem, RemoteFile, type RemoteOptions } from './remote-file.ts';

export interface OpenModelOptions {
  /** Sends the requests; for headers, or to count bytes. Default: the page's fetch. */
  readonly fetch?: Fetch;
  /** Cancels the loading. */
  readonly signal?: AbortSignal;
}

/**
 * Opens a model folder that `Model.save` wrote, on a web server. Reads the metadata and the items; the
 * factors of users stay on the server. Throws DataError that names a missing, damaged or changed file,
 * UsageError if the browser has no WebAssembly SIMD.
 */
export async function openModel(url: string | URL, options: OpenModelOptions = {}): Promise<PageModel> {
  checkOptions('openModel', options, ['fetch', 'signal'], '{ signal }');
  const folder = addressOf('openModel', url, "openModel('model/')").replace(/\/+$/, '');
  const { fetch = (address, init) => globalThis.fetch(address, init), signal } = options;
  const remote = { fetch, signal };
  const [session, parts] = await Promise.all([PageSession.open(servingTasks), readParts(folder, remote)]);
  const { items, itemFactors, rank } = parts.factors;
  const indexes = new PageIndexes(
    { folder, items: keyCount(items), itemFactors, rank },
    { fetch, signal: undefined },
  );
  return new PageModel(parts, session, indexes);
}

async function readParts(folder: string, remote: RemoteOptions) {
  const file = `${folder}/metadata/part-00000`;
  const line = await metadataLine(file, remote);
  const { metadata, storage } = decodeMetadata(line, file);
  const { rank: width, columns, factorflow } = metadata;
  checkStored(factorflow, storage, file);
  const { items: rows, itemIdType: type } = storage;
  const shape = { url: `${folder}/itemFactors`, rows, width, type };
  const [items, counts] = await Promise.all([
    readSide(shape, remote),
    storage.itemCounts ? readSide({ ...shape, url: `${folder}/itemCounts`, width: 1 }, remote) : undefined,
  ]);
  if ((await metadataLine(file, remote)) !== line)
    throw problem(folder, 'the model was replaced while it was read', 'Open it again');
  return {
    factors: {
      rank: width,
      users: emptyKeys(storage.userIdType, 0, 0),
      userFactors: new Float32Array(0),
      items: items.ids,
      itemFactors: items.values,
    },
    rank: width - (hasBiases(factorflow) ? 2 : 0),
    itemCounts: counts && wholeCounts(counts.values, `${folder}/itemCounts`),
    columns,
    metadata: factorflow,
  };
}

/** The line of the metadata; asked for anew, whatever the browser has stored. */
async function metadataLine(url: string, { fetch, signal }: RemoteOptions): Promise<string> {
  const fresh: Fetch = (address, init) => fetch(address, { ...init, cache: 'no-cache' });
  const file = await RemoteFile.open(url, { fetch: fresh, signal });
  if (file === undefined)
    throw problem(url, 'there is no model at this URL', 'Give the URL of a folder that Model.save wrote');
  return (await file.text()).trimEnd();
}

/** Throws unless the metadata have what a page needs, which it cannot find out by itself. */
function checkStored(
  metadata: Parameters<typeof hasBiases>[0],
  storage: ModelStorage | undefined,
  file: string,
): asserts storage is ModelStorage {
  const advice = 'Load it with Model.load in Node and save it again';
  if (storage === undefined)
    throw problem(file, 'the metadata do not contain the number of items, as in models of Spark', advice);
  if (hasBiases(metadata) && typeof metadata.meanRating !== 'number')
    throw problem(file, 'the metadata do not contain the mean rating of a model with biases', advice);
}
