import { createHash, type Hash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { JsonObject } from '../../../engine/json.ts';
import type { KeyColumn } from '../../../engine/keys/key-column.ts';
import { keyCount } from '../../../engine/keys/key-column.ts';
import { keyHashes } from '../../../engine/keys/key-hash.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { RatingBlock } from '../../../operators/ratings/rating-block.ts';
import { blocksOf } from '../../../operators/ratings/parts-in-files.ts';
import { type Ratings, ratingsOf } from '../../../operators/ratings/ratings.ts';
import { differencesOf } from '../../../operators/planner/given-plan.ts';

/** Identifies a run's data in a checkpoint. */
export type Fingerprint = {
  readonly users: number;
  readonly items: number;
  readonly ratings: number;
  readonly validationPairs: number | null;
  readonly userIds: string;
  readonly itemIds: string;
  readonly values: string;
  readonly validation: string | null;
};

/** Bytes to hash at a time. */
const PIECE_BYTES = 1 << 24;

/** A fingerprint of the data of a run. It is equal for equal data, in any row order. */
export async function fingerprintOf(
  {
    users,
    items,
    ratings,
    test,
  }: {
    readonly users: KeyColumn;
    readonly items: KeyColumn;
    readonly ratings: Ratings;
    readonly test: RatingBlock | undefined;
  },
  ctx: ExecutionContext,
): Promise<Fingerprint> {
  return {
    users: keyCount(users),
    items: keyCount(items),
    ratings: ratings.ratings,
    validationPairs: test?.ratings ?? null,
    userIds: await digestOf(Object.values(keyHashes(users))),
    itemIds: await digestOf(Object.values(keyHashes(items))),
    values: await digestOfRatings(ratings, ctx),
    validation: test === undefined ? null : await digestOfRatings(ratingsOf(test), ctx),
  };
}

/**
 * Two hashes joined to one text: of row offsets and column indices, and of values. They are computed in the
 * same pass, so that ratings in files are read once.
 */
async function digestOfRatings(ratings: Ratings, ctx: ExecutionContext): Promise<string> {
  const [places, values] = [createHash('sha256'), createHash('sha256')];
  let first = 0;
  for (const { rows, offsets } of ratings.parts) {
    await feed(places, first === 0 ? offsets : offsets.subarray(1).map((offset) => first + offset));
    first += offsets[rows];
  }
  for await (const { block } of blocksOf(ratings, ctx)) {
    await feed(places, block.indices);
    await feed(values, block.values);
  }
  return createHash('sha256').update(places.digest()).update(values.digest()).digest('hex');
}

async function digestOf(arrays: readonly ArrayBufferView[]): Promise<string> {
  const hash = createHash('sha256');
  for (const array of arrays) await feed(hash, array);
  return hash.digest('hex');
}

async function feed(hash: Hash, { buffer, byteOffset, byteLength }: ArrayBufferView): Promise<void> {
  for (let at = 0; at < byteLength; at += PIECE_BYTES) {
    hash.update(new Uint8Array(buffer, byteOffset + at, Math.min(PIECE_BYTES, byteLength - at)));
    // Lets devices and signals run.
    await setImmediate();
  }
}

/**
 * Texts about the differences of two fingerprints: of their counts or, if all counts are equal, of their
 * contents.
 */
export function fingerprintDifferences(saved: JsonObject, actual: Fingerprint): string[] {
  const counts = (['users', 'items', 'ratings', 'validationPairs'] as const).flatMap((name) =>
    differencesOf(
      name === 'validationPairs' ? 'pairs of the validation set' : name,
      saved[name],
      actual[name],
      'the checkpoint',
    ).map((text) => text.replace(' is ', ': ')),
  );
  if (counts.length > 0) return counts;
  const differences = {
    userIds: 'other users',
    itemIds: 'other items',
    values: 'other ratings of the same users and items',
    validation: 'another validation set',
  } as const;
  return (Object.keys(differences) as (keyof typeof differences)[]).flatMap((name) =>
    saved[name] === actual[name] ? [] : [differences[name]],
  );
}
