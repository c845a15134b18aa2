import { UsageError } from '../../../engine/errors.ts';
import type { ListSearch } from '../../../operators/tasks/tasks.ts';
import { SCRATCH_BYTES, type TaskScope } from '../../handler.ts';
import { ScratchAddresses } from '../../scratch.ts';

/** Candidates that are kept before their exact scores are computed. */
export const MOST_CANDIDATES = 32_768;

/** Columns of a list whose masks are gathered at a time. */
export const MASKED_COLUMNS = 4096;

/** Rows of θ copied at a time. */
export const ROWS = 256;

/** The arguments of the kernel scanLists, in the order in which it reads them (cpu/assembly/lists.ts). */
export const SCAN_FIELDS = [
  'query',
  'centers',
  'size',
  'coarseQuery',
  'width',
  'bound',
  'coarse',
  'guide',
  'stride',
  'starts',
  'numbers',
  'signs',
  'table',
  'left',
  'leftCount',
  'mask',
  'masked',
  'n',
  'lows',
  'columns',
  'found',
  'room',
  'next',
  'column',
  'stop',
] as const;

/** Addresses of a search's arrays in scratch. Throws UsageError if they do not fit. */
export function listScratch(scope: TaskScope<ListSearch>, rowStride: number, lists: number) {
  const { n, rank } = scope.params;
  const addresses = new ScratchAddresses(scope.scratch);
  const { take } = addresses;
  const at = {
    query: take(4 * rowStride),
    coarse: take(2 * 16 * Math.ceil(rank / 16)),
    table: take(64 * Math.ceil(rank / 16)),
    bound: take(24),
    scan: take(4 * SCAN_FIELDS.length),
    starts: take(4 * (lists + 1)),
    scores: take(4 * n),
    items: take(4 * n),
    lows: take(4 * n),
    lowColumns: take(4 * n),
    ranks: take(4 * lists),
    numbers: take(4 * lists),
    found: take(8 * MOST_CANDIDATES),
    rows: take(4 * ROWS * rowStride),
    rowItems: take(4 * ROWS),
    mask: take(MASKED_COLUMNS),
  };
  const left = SCRATCH_BYTES - addresses.bytes;
  if (left < 4 * 1024)
    throw new UsageError(`a list of ${n} items does not fit into the memory of a search`, {
      phase: 'search',
      advice: 'Search without the index',
    });
  return { ...at, left: addresses.end, mostLeft: Math.floor(left / 4) };
}
