import { readColumnIndex, readOffsetIndex } from 'hyparquet/src/indexes.js';
import { parseTimestamp } from '../../../engine/expressions/civil.ts';
import type { Bound, Literal } from '../../../engine/expressions/expression.ts';
import { readExactly, type RandomAccess } from '../../files/random-access.ts';
import type { ParquetFileInfo } from '../backend.ts';
import {
  type ColumnChunkInfo,
  type ColumnStatistics,
  type PageIndexPlace,
  storedNumber,
  type RowGroupInfo,
} from '../footer.ts';
import { checkThriftShape } from '../thrift-shape.ts';
import { RANGE_ROWS, type RowRange, startOf } from './cut-row-group.ts';
import { hasPlainPages } from './read-pages.ts';

/** Rows [from, to) of a row group. */
interface Rows {
  readonly from: number;
  readonly to: number;
}

/**
 * Pages of a row group that may match the bounds: row ranges to read, and page counts of the columns read.
 */
export interface PagesWithin {
  readonly ranges: readonly RowRange[];
  readonly read: number;
  readonly all: number;
}

/**
 * Ranges are joined if fewer rows than this are between them: each further range decompresses the
 * dictionaries of its columns again.
 */
const GAP_ROWS = 1 << 15;
/** Largest share of a row group's rows to read by ranges; above it, the whole row group is read. */
const MOST_READ = 1 / 2;

/** True if a column with bounds has a page index in the row group, and the backend can read row ranges. */
export function hasPageBounds(info: ParquetFileInfo, rowGroup: number, bounds: readonly Bound[]): boolean {
  return (
    info.plainColumns !== undefined &&
    info.rowGroups[rowGroup].columns.some(
      ({ column, pageIndex }) => pageIndex?.values && bounds.some((bound) => bound.column === column),
    )
  );
}

/**
 * Rows of a row group on pages whose minimum and maximum allow values within all bounds. Undefined if the
 * whole row group must be read: most of its rows are on such pages, or the index is inconsistent.
 */
export async function pagesWithin(
  file: OpenFile,
  info: ParquetFileInfo,
  rowGroup: number,
  bounds: readonly Bound[],
  names: readonly string[],
): Promise<PagesWithin | undefined> {
  const { columns, rows } = info.rowGroups[rowGroup];
  const chunkOf = (name: string) => columns.find(({ column }) => column === name);
  try {
    let kept: readonly Rows[] = [{ from: 0, to: rows }];
    for (const bound of bounds) {
      const chunk = chunkOf(bound.column);
      if (chunk?.pageIndex?.values !== undefined)
        kept = inBoth(kept, await rowsWithin(file, chunk, rows, bound));
    }
    kept = cutInto(RANGE_ROWS, withoutGaps(kept));
    if (kept.reduce((sum, { from, to }) => sum + to - from, 0) > MOST_READ * rows) return undefined;
    const isPlain = hasPlainPages(info, rowGroup, names);
    const pages = new Map<string, readonly IndexedPage[]>();
    for (const name of names) {
      const chunk = chunkOf(name);
      if (isPlain || chunk?.pageIndex)
        pages.set(name, await readIndexedPages(file, chunk as ColumnChunkInfo, rows));
    }
    const all = [...pages.values()].flat();
    return {
      ranges: kept.map(({ from, to }) => ({
        from,
        rows: to - from,
        starts: isPlain
          ? Object.fromEntries([...pages].map(([name, own]) => [name, startOf(own, from)]))
          : {},
      })),
      read: all.filter((page) => kept.some(({ from, to }) => page.firstRow < to && endOf(page) > from))
        .length,
      all: all.length,
    };
  } catch {
    return undefined;
  }
}

const endOf = ({ firstRow, rows }: IndexedPage) => firstRow + rows;

/** Rows of a column's pages that may have values within a bound. */
async function rowsWithin(
  file: OpenFile,
  chunk: ColumnChunkInfo,
  rows: number,
  bound: Bound,
): Promise<Rows[]> {
  const pages = await readIndexedPages(file, chunk, rows);
  const statistics = await readPageStatistics(file, chunk, pages);
  return pages
    .filter((page, i) => mayHold({ ...chunk, statistics: statistics[i] }, page.rows, bound))
    .map((page) => ({ from: page.firstRow, to: endOf(page) }));
}

/** Intersection of two ascending lists of rows. */
function inBoth(left: readonly Rows[], right: readonly Rows[]): Rows[] {
  const both: Rows[] = [];
  for (let [i, j] = [0, 0]; i < left.length && j < right.length;) {
    const from = Math.max(left[i].from, right[j].from);
    const to = Math.min(left[i].to, right[j].to);
    if (from < to) both.push({ from, to });
    if (left[i].to < right[j].to) i++;
    else j++;
  }
  return both;
}

/** Joins ranges with few rows between them. */
function withoutGaps(ranges: readonly Rows[]): Rows[] {
  const joined: Rows[] = [];
  for (const { from, to } of ranges) {
    const last = joined.at(-1);
    if (last !== undefined && from - last.to < GAP_ROWS) joined[joined.length - 1] = { from: last.from, to };
    else joined.push({ from, to });
  }
  return joined;
}

/** Cuts ranges into ranges of at most `most` rows. */
function cutInto(most: number, ranges: readonly Rows[]): Rows[] {
  return ranges.flatMap(({ from, to }) =>
    Array.from({ length: Math.ceil((to - from) / most) }, (_, i) => ({
      from: from + i * most,
      to: Math.min(to, from + (i + 1) * most),
    })),
  );
}

/** A page of values: bytes from the column's start to its header, and its rows in the row group. */
interface IndexedPage {
  readonly at: number;
  readonly firstRow: number;
  readonly rows: number;
}

/** An open file. */
interface OpenFile {
  readonly file: string;
  readonly handle: RandomAccess;
}

/** Pages of a column chunk of `rows` rows. Throws an Error for an inconsistent index. */
async function readIndexedPages(
  file: OpenFile,
  { pageIndex, start, bytes }: ColumnChunkInfo,
  rows: number,
): Promise<IndexedPage[]> {
  if (pageIndex === undefined) throw new Error('the column has no page index');
  const { page_locations: places } = readOffsetIndex(await thriftReader(file, pageIndex.pages));
  const pages = places.map(({ offset, first_row_index }, i) => {
    const firstRow = Number(first_row_index);
    return {
      at: Number(offset) - start,
      firstRow,
      rows: Number(places[i + 1]?.first_row_index ?? rows) - firstRow,
    };
  });
  const isSound = pages.every(({ at, rows: own }) => at >= 0 && at < bytes && own > 0);
  if (!isSound || pages[0]?.firstRow !== 0) throw new Error('the page index is damaged');
  return pages;
}

/** Statistics of the pages of a column chunk of signed integers or floats. */
async function readPageStatistics(
  file: OpenFile,
  { pageIndex, type }: ColumnChunkInfo,
  pages: readonly IndexedPage[],
): Promise<ColumnStatistics[]> {
  if (pageIndex?.values === undefined) throw new Error('the column has no index of values');
  const reader = await thriftReader(file, pageIndex.values);
  // Without a logical type, the library returns values as they are stored.
  const element = { name: '', type: type?.toUpperCase() as 'INT32' };
  const { null_pages, min_values, max_values, null_counts } = readColumnIndex(reader, element);
  if ([null_pages, min_values, max_values].some(({ length }) => length !== pages.length))
    throw new Error('the page index is damaged');
  return pages.map(({ rows }, i) => {
    if (null_pages[i]) return { nulls: rows };
    const nulls = null_counts?.[i];
    return {
      min: storedNumber(min_values[i]),
      max: storedNumber(max_values[i]),
      ...(nulls !== undefined && { nulls: Number(nulls) }),
    };
  });
}

async function thriftReader({ file, handle }: OpenFile, { at, bytes: length }: PageIndexPlace['pages']) {
  const bytes = await readExactly(handle, file, at, length);
  checkThriftShape(bytes);
  return { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), offset: 0 };
}

type Stored = number | bigint;
const MICROS_OF_DAY = 86_400_000_000n;

/** False only if the group's statistics prove that no row is within all bounds. */
export function mayMatch(group: RowGroupInfo, bounds: readonly Bound[]): boolean {
  return bounds.every((bound) => {
    const column = group.columns.find((one) => one.column === bound.column);
    return column === undefined || mayHold(column, group.rows, bound);
  });
}

/** The properties of a column chunk, or of a page, that are compared with bounds. */
type Bounded = Pick<ColumnChunkInfo, 'statistics' | 'type' | 'timeUnit'>;

/**
 * False only if the statistics of `rows` rows (a row group or a page) prove that no row is within the bound.
 */
function mayHold(chunk: Bounded, rows: number, bound: Bound): boolean {
  const { operator } = bound;
  const { nulls, min } = chunk.statistics;
  if (operator === 'isNull') return nulls !== 0;
  // Only `<=>` can be true for null. A column with a minimum is not all null, even if its null count says so.
  if (nulls === rows && min === undefined && operator !== '<=>') return false;
  return operator === 'isNotNull' || mayHoldValue(chunk, bound);
}

function mayHoldValue(chunk: Bounded, { operator, values }: Bound): boolean {
  const { type, timeUnit, statistics } = chunk;
  const [min, max] = [statistics.min, statistics.max].map((value) => comparable(value, timeUnit));
  const given = values.map((value) => storedValue(value, chunk));
  if (min === undefined || max === undefined || given.includes(undefined)) return true;
  // Statistics do not count NaN, which is greater than all numbers, so the maximum of floats does not limit
  // it.
  const isFloat = type === 'float' || type === 'double';
  const numbers = given as Stored[];
  switch (operator) {
    case '=':
    case 'in':
      return numbers.some((value) => value >= min && value <= max);
    case '<':
      return min < numbers[0];
    case '<=':
      return min <= numbers[0];
    case '>':
      return isFloat || max > numbers[0];
    case '>=':
      return isFloat || max >= numbers[0];
    default:
      return true;
  }
}

/** A value of statistics as expressions represent it: timestamps in microseconds, rounded down. */
function comparable(value: Stored | undefined, timeUnit: Bounded['timeUnit']): Stored | undefined {
  if (timeUnit === undefined || typeof value !== 'bigint') return value;
  if (timeUnit === 'ms') return value * 1000n;
  return timeUnit === 'us' ? value : (value - (((value % 1000n) + 1000n) % 1000n)) / 1000n;
}

/**
 * A constant in the form in which it is compared with a column's statistics; undefined for NaN, and for types
 * whose order in statistics is not known.
 */
function storedValue({ type, value }: Literal, chunk: Bounded): Stored | undefined {
  if (value === null) return undefined;
  if (type === 'timestamp') return chunk.timeUnit && parseTimestamp(String(value));
  if (type === 'date') return chunk.type === 'int32' ? daysOf(String(value)) : undefined;
  if (!/^(u?int(8|16|32|64)|float(32|64))$/.test(type)) return undefined;
  if (type === 'int64' || type === 'uint64') return BigInt(value);
  const number = Number(value);
  return Number.isNaN(number) ? undefined : number;
}

function daysOf(date: string): bigint | undefined {
  const micros = parseTimestamp(date);
  return micros === undefined ? undefined : micros / MICROS_OF_DAY;
}

/** A bound for plans: `item >= 5`. */
export function boundText({ column, operator, values }: Bound): string {
  return [column, operator, ...values.map(({ value }) => String(value))].join(' ');
}
