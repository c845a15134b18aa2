import { closeReader } from '../../engine/regular-file.ts';
import type { Bound } from '../../engine/expressions/expression.ts';
import type { UrlVersions } from '../http/url-versions.ts';
import type { ParquetFileInfo } from './backend.ts';
import { mayMatch } from './may-match.ts';
import { hasPageBounds, pagesWithin } from './pages/pages-within.ts';
import { openRandomAccess } from './random-access.ts';
import type { RowGroupRequest } from './read-row-groups.ts';

/** Requests for the rows of a file within bounds, and page counts if pages are left out. */
export interface RequestsWithin {
  readonly requests: readonly RowGroupRequest[];
  /** Pages read, and all pages, of the row groups that are read in part. */
  readonly pages: { readonly read: number; readonly all: number };
}

/**
 * Leaves out row groups that the footer shows to be outside the bounds, and of the others the pages that the
 * page index shows to be outside. Consecutive whole row groups become one request; requests keep the order of
 * the file.
 */
export async function requestsWithin(
  whole: RowGroupRequest,
  info: ParquetFileInfo,
  bounds: readonly Bound[],
  versions?: UrlVersions,
): Promise<RequestsWithin> {
  const groups = [...info.rowGroups.keys()].filter(
    (group) => info.rowGroups[group].rows > 0 && mayMatch(info.rowGroups[group], bounds),
  );
  const none = { read: 0, all: 0 };
  if (!groups.some((group) => hasPageBounds(info, group, bounds)))
    return { requests: groups.length === 0 ? [] : [{ ...whole, rowGroups: groups }], pages: none };

  const names = info.schema.fields.map(({ name }) => name).filter((name) => whole.columns?.includes(name));
  const requests: RowGroupRequest[] = [];
  const pages = { ...none };
  let together: number[] = [];
  const flush = () => {
    if (together.length > 0) requests.push({ ...whole, rowGroups: together });
    together = [];
  };
  const handle = await openRandomAccess(info.file, false, versions);
  try {
    for (const group of groups) {
      const found = hasPageBounds(info, group, bounds)
        ? await pagesWithin({ file: info.file, handle }, info, group, bounds, names)
        : undefined;
      if (found === undefined) {
        together.push(group);
        continue;
      }
      flush();
      requests.push(...found.ranges.map((range) => ({ ...whole, rowGroups: [group], range })));
      pages.read += found.read;
      pages.all += found.all;
    }
  } finally {
    await closeReader(handle);
  }
  flush();
  return { requests, pages };
}
