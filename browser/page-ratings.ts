import { UsageError } from '../engine/errors.ts';
import { shown } from '../engine/format.ts';
import { type Id, isId, keysOfIds } from '../engine/keys/find-id.ts';
import { type KeyColumn, keyCount, type KeyType, takeKeys, UNKNOWN_KEY } from '../engine/keys/key-column.ts';
import { keyTableOf, makeKeyTable } from '../engine/keys/tables/make-key-table.ts';
import { dataSetName, sharedArray } from '../engine/partition.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import { hostDevice } from '../engine/run/devices.ts';
import { giveTo } from '../engine/run/run-steps.ts';
import type { IndexedRatings } from '../operators/ratings/ids/number-ids.ts';
import type { CodedChunk } from '../operators/ratings/reading/rating-chunk.ts';

/** A rating of a user for an item. Only implicit data may leave out `rating`; it is then 1. */
export interface PageRating {
  readonly user: Id;
  readonly item: Id;
  readonly rating?: number;
}

/** Most ratings that a page trains on: more take minutes in one thread. */
export const MOST_RATINGS = 1_000_000;

/** Ratings of known users and items by position, and the number of those with an unknown one. */
export interface KnownRatings {
  readonly indexed: IndexedRatings;
  readonly unknown: number;
}

/** Numbers the users and items of ratings by ascending id, as the operators of Node do. */
export async function indexPageRatings(
  ratings: readonly PageRating[],
  implicit: boolean,
  ctx: ExecutionContext,
): Promise<IndexedRatings> {
  const values = valuesOf(ratings, implicit);
  if (ratings.length === 0) throw new UsageError('there are no ratings to train on');
  const sides = { users: numbered(ratings, 'user'), items: numbered(ratings, 'item') };
  const chunk = await giveChunk({ users: sides.users.codes, items: sides.items.codes, values }, ctx);
  return {
    users: sides.users.keys,
    items: sides.items.keys,
    rows: ratings.length,
    userCounts: sides.users.counts,
    itemCounts: sides.items.counts,
    chunks: [chunk],
  };
}

/** Numbers further ratings, such as test ratings, by the users and items of the training. */
export async function indexKnown(
  ratings: readonly PageRating[],
  { users, items }: Pick<IndexedRatings, 'users' | 'items'>,
  ctx: ExecutionContext,
): Promise<KnownRatings> {
  const values = valuesOf(ratings, false);
  const found = { users: positionsIn(users, ratings, 'user'), items: positionsIn(items, ratings, 'item') };
  const known = Uint32Array.from(ratings.keys()).filter(
    (row) => found.users[row] !== UNKNOWN_KEY && found.items[row] !== UNKNOWN_KEY,
  );
  const codes = (side: 'users' | 'items') => copied(Uint32Array, known, (row) => found[side][row]);
  const [userCodes, itemCodes] = [codes('users'), codes('items')];
  const own = copied(Float32Array, known, (row) => values[row]);
  const chunk = await giveChunk({ users: userCodes, items: itemCodes, values: own }, ctx);
  const indexed = {
    users,
    items,
    rows: known.length,
    userCounts: countsOf(userCodes, keyCount(users)),
    itemCounts: countsOf(itemCodes, keyCount(items)),
    chunks: known.length === 0 ? [] : [chunk],
  };
  return { indexed, unknown: ratings.length - known.length };
}

function valuesOf(ratings: readonly PageRating[], implicit: boolean): Float32Array {
  if (!Array.isArray(ratings))
    throw new UsageError(`ratings must be a list of { user, item, rating }, got ${shown(ratings)}`);
  if (ratings.length > MOST_RATINGS)
    throw new UsageError(`a page trains on at most ${MOST_RATINGS.toLocaleString('en')} ratings`, {
      advice: 'Train in Node, and open the model in the page',
    });
  const values = sharedArray(Float32Array, ratings.length);
  for (const [row, one] of (ratings as readonly unknown[]).entries()) {
    const { user, item, rating = implicit ? 1 : undefined } = (one ?? {}) as PageRating;
    if (!isId(user) || !isId(item) || typeof rating !== 'number' || !Number.isFinite(Math.fround(rating)))
      throw new UsageError(
        `a rating is an object such as { user: 1, item: 5, rating: 4 }, got ${shown(one)}`,
        {
          row,
        },
      );
    values[row] = rating;
  }
  return values;
}

/** The distinct ids of one side, ascending, and the position of each row's id among them. */
function numbered(ratings: readonly PageRating[], side: 'user' | 'item') {
  const ids = ratings.map((one) => one[side]);
  const column = keysOfIds(ids, typeOf(ids));
  const codes = sharedArray(Uint32Array, ratings.length);
  const table = makeKeyTable(column.type);
  table.add(column, codes);
  const order = table.ascending();
  const places = new Uint32Array(order.length);
  order.forEach((code, place) => (places[code] = place));
  for (let row = 0; row < codes.length; row++) codes[row] = places[codes[row]];
  const keys = takeKeys(table.keys(), order);
  return { keys, codes, counts: countsOf(codes, order.length) };
}

function typeOf(ids: readonly Id[]): KeyType {
  if (ids.some((id) => typeof id === 'string')) return 'utf8';
  const isShort = (id: Id) =>
    typeof id === 'bigint' ? BigInt.asIntN(32, id) === id : (Number(id) | 0) === id;
  return ids.every(isShort) ? 'int32' : 'int64';
}

/** The position of each row's id among keys; UNKNOWN_KEY if it is none of them. */
function positionsIn(keys: KeyColumn, ratings: readonly PageRating[], side: 'user' | 'item'): Uint32Array {
  const positions = new Uint32Array(ratings.length);
  const ids = ratings.map((one) => one[side]);
  keyTableOf(keys).find(keysOfIds(ids, keys.type), positions);
  return positions;
}

function countsOf(codes: Uint32Array, size: number): Int32Array {
  const counts = sharedArray(Int32Array, size);
  for (const code of codes) counts[code]++;
  return counts;
}

function copied<T extends Uint32Array | Float32Array>(
  type: { new (buffer: ArrayBufferLike): T; readonly BYTES_PER_ELEMENT: number },
  rows: Uint32Array,
  valueAt: (row: number) => number,
): T {
  const values = sharedArray(type, rows.length);
  rows.forEach((row, at) => (values[at] = valueAt(row)));
  return values;
}

/** Gives one chunk whose codes are positions to the device. */
async function giveChunk(
  { users, items, values }: Readonly<Record<'users' | 'items', Uint32Array>> & { values: Float32Array },
  ctx: ExecutionContext,
): Promise<CodedChunk> {
  const name = dataSetName('page-ratings');
  const ref = (part: string) => ({ name: `${name}/${part}`, partition: 0, version: 0 });
  const rows = values.length;
  const chunk = { rows, codes: ref('codes'), values: ref('values') };
  await giveTo(ctx, hostDevice(ctx.executor).info.place, [
    [chunk.codes, { layout: 'coded-pairs', rows, columns: { users, items } }],
    [chunk.values, { layout: 'values', rows, columns: { values } }],
  ]);
  return chunk;
}
