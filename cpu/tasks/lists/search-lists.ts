import { sharedArray } from '../../../engine/partition.ts';
import type { ListSearch } from '../../../operators/tasks/tasks.ts';
import type { TaskHandler, TaskScope } from '../../handler.ts';
import { ListSearcher } from './list-searcher.ts';

/** See `rank-lists` of KernelTasks. */
export const rankLists: TaskHandler<'rank-lists'> = (scope) => {
  const lists = searcherOf(scope).rank(scope.params.query, scope.params.probes);
  return { rows: lists.length, values: { lists } };
};

/** See `list-candidates` of KernelTasks. */
export const listCandidates: TaskHandler<'list-candidates'> = (scope) => {
  const searcher = searcherOf(scope);
  const columns = searcher.candidates(scope.params.query, scope.params.left);
  return { rows: searcher.scanned, values: { columns } };
};

/** See `search-lists` of KernelTasks. */
export const searchLists: TaskHandler<'search-lists'> = (scope) => {
  const searcher = searcherOf(scope);
  const found: { readonly items: readonly number[]; readonly scores: readonly number[] }[] = [];
  for (const { query, left, allowed } of scope.params.searches) {
    if (scope.cancelled()) break;
    const { items, scores, count } = searcher.search(query, left, allowed);
    found.push({
      items: Array.from(items.subarray(0, count)),
      scores: Array.from(scores.subarray(0, count)),
    });
  }
  return { rows: searcher.scanned, values: { found } };
};

/** See `top-n-in-lists` of KernelTasks. */
export const topNInLists: TaskHandler<'top-n-in-lists'> = (scope) => {
  const { from, to, rank, n } = scope.params;
  const searcher = searcherOf(scope);
  const queries = scope.partition('queries').columns.values as Float32Array;
  const exclude = scope.hasInput('exclude') ? scope.partition('exclude').columns : undefined;
  const offsets = exclude?.offsets as Int32Array | undefined;
  const indices = exclude?.indices as Uint32Array | undefined;
  const items = sharedArray(Uint32Array, (to - from) * n);
  const scores = sharedArray(Float32Array, (to - from) * n);
  for (let row = from; row < to && !scope.cancelled(); row++) {
    const left = offsets && indices ? indices.subarray(offsets[row], offsets[row + 1]) : [];
    const found = searcher.search(queries.subarray(row * rank, (row + 1) * rank), left);
    items.set(found.items, (row - from) * n);
    scores.set(found.scores, (row - from) * n);
  }
  return {
    rows: to - from,
    bytesDown: 8 * n * (to - from),
    partitions: { top: { layout: 'top-n', rows: to - from, columns: { items, scores } } },
  };
};

function searcherOf(scope: TaskScope<ListSearch>): ListSearcher {
  const values = (name: string) => scope.partition(name).columns.values;
  return new ListSearcher(scope, {
    centers: scope.matrix('centerRows'),
    radii: scope.matrix('radii'),
    coarse: scope.matrix('coarse'),
    guide: scope.matrix('columnGuide'),
    signs: scope.matrix('signs'),
    starts: values('starts') as Uint32Array,
    vectors: values('vectors') as Float32Array,
    mask: scope.hasInput('mask') ? (values('mask') as Uint8Array) : undefined,
  });
}
