import { UsageError } from '../../engine/errors.ts';

/**
 * Larger problems by duplication, as cuMF made its largest (W. Tan et al., Faster and Cheaper: Parallelizing
 * Large-Scale Matrix Factorization on GPUs, HPDC 2016, section 5.5: "100-by-1" and "160-by-20 duplication of
 * the Amazon Reviews data"). R becomes a grid of `users` x `items` equal blocks, here 3 x 2:
 *
 *     R R        copy (a, b) has the ratings of R with a * (span of the user ids) added to every user id
 *     R R        and b * (span of the item ids) added to every item id
 *     R R
 */
export interface Copies {
  readonly users: number;
  readonly items: number;
}

export const oneCopy: Copies = { users: 1, items: 1 };

/** Ids below this limit are exact as JavaScript numbers. */
const ID_LIMIT = 2 ** 53;

/** The ids of one column and their shift from copy to copy. */
export interface CopiedIds {
  readonly column: string;
  /** Number of copies along this column. */
  readonly copies: number;
  /** Distance between copies: largest id - smallest id + 1, so that copies do not overlap. */
  readonly span: number;
  /** True if ids of the last copy, or of the source, need 64 bits. */
  readonly wide: boolean;
}

export interface CopyLayout {
  readonly user: CopiedIds;
  readonly item: CopiedIds;
}

/**
 * The ids of a column in its copies. @throws UsageError if they exceed the integers that doubles represent
 * exactly.
 */
export function copiedIds(
  column: string,
  ids: { readonly smallest: number; readonly largest: number },
  copies: number,
): CopiedIds {
  const span = ids.largest - ids.smallest + 1;
  const largest = ids.largest + (copies - 1) * span;
  if (largest < ID_LIMIT && ids.smallest > -ID_LIMIT)
    return { column, copies, span, wide: largest >= 2 ** 31 || ids.smallest < -(2 ** 31) };
  throw new UsageError(
    `${copies} copies of the ids ${ids.smallest}..${ids.largest} of column "${column}" reach ${largest}`,
    {
      phase: 'generate',
      advice: 'Ids must stay below 2^53: make fewer copies',
    },
  );
}

/**
 * Returns the copies. @throws UsageError unless both are whole numbers from 1, with a product of at most
 * 2^31.
 */
export function checkCopies(copies: Copies): Copies {
  const { users, items } = copies;
  if ([users, items].every((count) => Number.isSafeInteger(count) && count >= 1) && users * items <= 2 ** 31)
    return copies;
  throw new UsageError(`${users} x ${items} copies cannot be made`, {
    phase: 'generate',
    advice: 'Give whole numbers from 1 with a product of 2^31 at most',
  });
}

/**
 * Copies first .. end - 1 of users * items; copy c is in row floor(c / items) and column c % items of the
 * grid.
 */
export interface CopyGroup {
  readonly first: number;
  readonly end: number;
}

/** Groups of whole copies that fill a part file of about `rowsPerPart` rows. */
export function copyGroups({ users, items }: Copies, rowsOfOne: number, rowsPerPart: number): CopyGroup[] {
  if (rowsOfOne === 0) return [{ first: 0, end: 1 }];
  const size = Math.max(1, Math.floor(rowsPerPart / rowsOfOne));
  const copies = users * items;
  return Array.from({ length: Math.ceil(copies / size) }, (_, group) => ({
    first: group * size,
    end: Math.min(copies, (group + 1) * size),
  }));
}
