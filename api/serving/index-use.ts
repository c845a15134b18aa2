import type { IndexHeader, IndexKind } from '../../connectors/model/index-layout.ts';
import type { StoredIndex } from '../../connectors/model/item-index-file.ts';
import { UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/shown.ts';
import type { ListIndex } from '../../operators/serving/lists/list-index.ts';
import type { Found, SearchRequest } from '../../operators/serving/search.ts';
import type { RunOptions } from '../run-session.ts';

/** From this number of items on, an index is used without being asked for. */
export const LARGE = 1_000_000;

/**
 * The use of a model's index: `auto` (default) from 1,000,000 items on, if the model has one; true or false
 * for any size; or the number of lists to search.
 */
export type IndexUse = 'auto' | boolean | number;

export interface IndexOption {
  readonly index?: IndexUse;
}

/** The indexes of a model, as requests use them. */
export interface UsedIndexes {
  /** The index of a kind. Throws DataError if its file is damaged, or of another model. */
  stored(kind: IndexKind): Promise<StoredIndex>;
  /** The number of lists to search; undefined for an exact search. Throws UsageError without an index. */
  probes(kind: IndexKind, use?: IndexUse): number | undefined;
  /** Searches lists that are not all in memory; absent where `stored` gives the whole index. */
  readonly search?: (
    kind: IndexKind,
    probes: number,
    request: SearchRequest,
    options: RunOptions,
  ) => Promise<Found>;
}

/** The number of lists to search of an index with this header: see UsedIndexes. */
export function probesOf(
  head: IndexHeader | undefined,
  kind: IndexKind,
  use: IndexUse,
  items: number,
): number | undefined {
  if (use === false) return undefined;
  if (use === 'auto') return head !== undefined && items >= LARGE ? head.probes : undefined;
  if (head === undefined) throw missingIndex(kind);
  return use === true ? head.probes : Math.min(use, head.lists);
}

/** The parts of an index that a search takes. */
export function listIndexOf({ header, centers, starts, guide, codes }: StoredIndex): ListIndex {
  const { rank, vectors, normalized, longest, margin } = header;
  return { rank, vectors, normalized, longest, margin, centers, starts, guide, codes };
}

/** Throws UsageError unless it is a use of an index. */
export function checkIndexUse(method: string, use: unknown): void {
  if (use === undefined || use === 'auto' || typeof use === 'boolean') return;
  if (Number.isInteger(use) && (use as number) >= 1) return;
  throw new UsageError(
    `the option index of ${method} must be 'auto', true, false or a number of lists, got ${shown(use)}`,
  );
}

export function missingIndex(kind: IndexKind): UsageError {
  return new UsageError(`the model has no index for ${kind}`, {
    advice: 'Build one by model.buildIndex() or factorflow index MODEL, or search without index',
  });
}
