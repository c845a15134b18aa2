import { createHash, type Hash } from 'node:crypto';
import type { JsonObject } from '../../../engine/json.ts';
import type { KeyColumn } from '../../../engine/keys/key-column.ts';
import { keyCount } from '../../../engine/keys/key-column.ts';
import { keyHashes } from '../../../engine/keys/key-hash.ts';
import type { RatingBlock } from '../../../operators/ratings/rating-block.ts';
import { differencesOf } from '../given-plan.ts';

/** The data of a run as a checkpoint tells them apart. */
export type Fingerprint = { readonly users: number; readonly items: number; readonly ratings: number; readonly validationPairs: number | null; readonly userIds: string; readonly itemIds: string; readonly values: string; readonly validation: string | null };

/** Bytes that are hashed at a time. */
const PIECE_BYTES = 1 << 24;

/** The same for the same data in any order of rows. */
export async function fingerprintOf({ users, items, block, test }: { readonly users: KeyColumn; readonly items: KeyColumn; readonly block: RatingBlock; readonly test: RatingBlock | undefined }): Promise<Fingerprint> {
  return {
    users: keyCount(users),
    items: keyCount(items),
    ratings: block.ratings,
    validationPairs: test?.ratings ?? null,
    userIds: await digestOf(Object.values(keyHashes(users))),
    itemIds: await digestOf(Object.values(keyHashes(items))),
    values: await digestOf([block.offsets, block.indices, block.values]),
    validation: test === undefined ? null : await digestOf([test.offsets, test.indices, test.values]),
  };
}

async function digestOf(arrays: readonly ArrayBufferView[]): Promise<string> {
  const hash: Hash = createHash('sha256');
  for (const { buffer, byteOffset, byteLength } of arrays) {
    for (let at = 0; at < byteLength; at += PIECE_BYTES) {
      hash.update(new Uint8Array(buffer, byteOffset + at, Math.min(PIECE_BYTES, byteLength - at)));
      // Devices and signals have their turn.
      await new Promise(setImmediate);
    }
  }
  return hash.digest('hex');
}

/** The differences in words: first of counts, then of what is counted. */
export function fingerprintDifferences(saved: JsonObject, actual: Fingerprint): string[] {
  const counts = (['users', 'items', 'ratings', 'validationPairs'] as const).flatMap((name) => differencesOf(name === 'validationPairs' ? 'pairs of the validation set' : name, saved[name], actual[name], 'the checkpoint').map((text) => text.replace(' is ', ': ')));
  if (counts.length > 0) return counts;
  const told = { userIds: 'other users', itemIds: 'other items', values: 'other ratings of the same users and items', validation: 'another validation set' } as const;
  return (Object.keys(told) as (keyof typeof told)[]).flatMap((name) => (saved[name] === actual[name] ? [] : [told[name]]));
}
