import { gram } from '../cpu/tasks/gram.ts';
import { updateImplicit } from '../cpu/tasks/update.ts';
import { loadLists } from '../cpu/tasks/lists/encode-lists.ts';
import { listCandidates, rankLists, searchLists } from '../cpu/tasks/lists/search-lists.ts';
import { prepareSearch } from '../cpu/tasks/search/prepare-search.ts';
import { searchForRow } from '../cpu/tasks/search/search-for-row.ts';
import { search } from '../cpu/tasks/search/search.ts';
import { update } from '../cpu/tasks/update.ts';

/** The handlers of the tasks that requests consist of. Others would only make the page's module larger. */
export const servingTasks = {
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
