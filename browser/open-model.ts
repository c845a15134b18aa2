import { checkOptions } from '../api/check-options.ts';
import { hasBiases } from '../api/model-parts.ts';
import { LARGE, missingIndex, type UserPriors } from '../api/serving/served-model.ts';
import {
  decodeMetadata,
  type ModelStorage,
  type StoredEncoding,
  wholeCounts,
} from '../connectors/model/decode-metadata.ts';
import { gram } from '../cpu/tasks/implicit.ts';
import { loadLists } from '../cpu/tasks/lists/encode-lists.ts';
import { listCandidates, rankLists, searchLists } from '../cpu/tasks/lists/search-lists.ts';
import { searchForRow } from '../cpu/tasks/search/search-for-row.ts';
import { prepareSearch, search } from '../cpu/tasks/search/search.ts';
import { updateImplicit, update } from '../cpu/tasks/update.ts';
import { UsageError } from '../engine/errors.ts';
import { shown } from '../engine/format.ts';
import { emptyKeys } from '../engine/keys/key-column.ts';
import { PageIndexes } from './page-indexes.ts';
import { PageItems } from './page-items.ts';
import { PageModel } from './page-model.ts';
import { PageSession } from './page-session.ts';
import { openSide, readAllRows, readIds, type SideShape } from './read-side.ts';
import { addressOf, type Fetch, problem, RemoteFile, type RemoteOptions } from './remote-file.ts';
import type { WebGpuCode } from './web-gpu.ts';

export interface OpenModelOptions {
  /** Sends the requests; for headers, or to count bytes. Default: the page's fetch. */
  readonly fetch?: Fetch;
  /** Cancels the loading. */
  readonly signal?: AbortSignal;
  /**
   * True: searches use the list index of the model, and the factors of items stay on the server but for the
   * rows that requests need. False: all factors are loaded. Default (`auto`): as true from 1,000,000 items on,
   * if the model has an index.
   */
  readonly index?: 'auto' | boolean;
  /**
   * `webGpu` of this module, to search by WebGPU: see PageDeviceOption. Default: the model has no code of
   * WebGPU.
   */
  readonly webGpu?: WebGpuCode;
}

/**
 * Opens a model folder that `Model.save` wrote, on a web server. Reads the metadata and the items, or with
 * `index` their ids alone; the factors of users stay on the server. Throws DataError that names a missing,
 * damaged or changed file, UsageError if the browser has no WebAssembly SIMD, or if `index` is true and the
 * model has no index for recommendations.
 */
export async function openModel(url: string | URL, options: OpenModelOptions = {}): Promise<PageModel> {
  checkOptions('openModel', options, ['fetch', 'signal', 'index', 'webGpu'], '{ signal }');
  const folder = addressOf('openModel', url, "openModel('model/')").replace(/\/+$/, '');
  const {
    fetch = (address, init) => globalThis.fetch(address, init),
    signal,
    index = 'auto',
    webGpu,
  } = options;
  if (index !== 'auto' && typeof index !== 'boolean')
    throw new UsageError(`the option index of openModel must be 'auto', true or false, got ${shown(index)}`);
  if (webGpu !== undefined && typeof webGpu !== 'function')
    throw new UsageError(`the option webGpu of openModel takes webGpu, got ${shown(webGpu)}`, {
      advice: "Import it from factorflow/browser: openModel('model/', { webGpu })",
    });
  const [session, { items, indexes, ...parts }] = await Promise.all([
    PageSession.open(servingTasks),
    readParts(folder, index, { fetch, signal }),
  ]);
  return new PageModel(parts, session, { remote: { items, indexes }, webGpu });
}

async function readParts(folder: string, index: 'auto' | boolean, remote: RemoteOptions) {
  const file = `${folder}/metadata/part-00000`;
  const line = await metadataLine(file, remote);
  const { metadata, storage } = decodeMetadata(line, file);
  const { rank: width, columns, factorflow } = metadata;
  checkStored(factorflow, storage, file);
  const { items: rows, itemIdType: type } = storage;
  const digests = storage.files;
  const shape = { folder, name: 'itemFactors', rows, width, type, digests };
  const [{ items, indexes, ids }, counts] = await Promise.all([
    readItems(folder, shape, index, remote),
    storage.itemCounts ? readCounts({ ...shape, name: 'itemCounts', width: 1 }, remote) : undefined,
  ]);
  if ((await metadataLine(file, remote)) !== line)
    throw problem(folder, 'the model was replaced while it was read', 'Open it again');
  return {
    factors: {
      rank: width,
      users: emptyKeys(storage.userIdType, 0, 0),
      userFactors: new Float32Array(0),
      items: ids,
      get itemFactors() {
        if (items.loaded === undefined) throw new Error('the factors of the items were not read');
        return items.loaded;
      },
    },
    rank: width - (hasBiases(factorflow) ? 2 : 0),
    itemCounts: counts && wholeCounts(counts, `${folder}/itemCounts`),
    columns,
    metadata: factorflow,
    ...(storage.attributes?.user && { priors: pagePriors(storage.attributes.user, width, file) }),
    ...(items.loaded === undefined && { remoteItems: items }),
    items,
    indexes,
  };
}

/** A page knows of its visitors what is predicted of users without attributes. */
function pagePriors({ constant }: StoredEncoding, width: number, file: string): UserPriors {
  if (constant?.length !== width)
    throw problem(
      file,
      'the metadata do not contain the constant of the attributes of users',
      'Load it with Model.load in Node and save it again',
    );
  const prior = { row: Float32Array.from(constant), isOwn: false };
  return {
    of: ({ attributes }) => {
      if (attributes === undefined) return prior;
      throw new UsageError('a page does not read the attributes of users', { advice: 'Leave them out' });
    },
  };
}

/** Reads the ids of the items, and their factors unless an index takes the place of these. */
async function readItems(folder: string, shape: SideShape, index: 'auto' | boolean, remote: RemoteOptions) {
  const side = await openSide(shape, remote);
  const items = new PageItems(side);
  const indexes = new PageIndexes(folder, items, remote.fetch);
  items.openLists = (signal) => indexes.open('recommend', signal);
  const asked = index === true || (index === 'auto' && shape.rows >= LARGE);
  const [ids, lists] = await Promise.all([
    readIds(side),
    asked ? indexes.open('recommend', remote.signal) : undefined,
    asked ? undefined : items.load(remote.signal),
  ]);
  if (index === true && lists === undefined) throw missingIndex('recommend');
  if (asked && lists === undefined) await items.load(remote.signal);
  // The signal cancels the loading, not the requests of later searches.
  for (const { file } of side.parts) file.forgetSignal();
  return { ids, items, indexes };
}

async function readCounts(shape: SideShape, remote: RemoteOptions): Promise<Float32Array> {
  const side = await openSide(shape, remote);
  return readAllRows(side, remote.signal ?? new AbortController().signal);
}

/** The line of the metadata; asked for anew, whatever the browser has stored. */
async function metadataLine(url: string, { fetch, signal }: RemoteOptions): Promise<string> {
  const fresh: Fetch = (address, init) => fetch(address, { ...init, cache: 'no-cache' });
  const file = await RemoteFile.open(url, { fetch: fresh, signal });
  if ('missing' in file)
    throw problem(
      url,
      `there is no model at this URL: ${file.missing}`,
      'Give the URL of a folder that Model.save wrote',
    );
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

/** The handlers of the tasks that requests consist of. Others would only make the page's module larger. */
const servingTasks = {
  gram,
  update,
  'update-implicit': updateImplicit,
  'load-lists': loadLists,
  'rank-lists': rankLists,
  'list-candidates': listCandidates,
  'search-lists': searchLists,
  'prepare-search': prepareSearch,
  search,
  'search-for-row': searchForRow,
};
