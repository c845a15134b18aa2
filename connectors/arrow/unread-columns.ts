import { FlatTable } from './verify-metadata.ts';

/**
 * Columns of types that apache-arrow does not decode (run-end encoded, list views, integers of 128 bits) are
 * removed from a schema and from its batches before that library sees them, so that the other columns can be read. The metadata are
 * FlatBuffers (Schema.fbs, Message.fbs): a table has a list of slots with the places of its fields. Vectors are
 * shortened in place.
 */
const FIELD = { name: 0, type: 2, union: 3, dictionary: 4, children: 5 } as const;
const SCHEMA = { fields: 1 } as const;
const MESSAGE = { header: 2 } as const;
const BATCH = { nodes: 1, buffers: 2, variadic: 4 } as const;

const [INTEGER, UNION, RUN_END, LIST_VIEW, LARGE_LIST_VIEW] = [2, 14, 22, 25, 26];
const unread: readonly number[] = [RUN_END, LIST_VIEW, LARGE_LIST_VIEW];
/** Types of Schema.fbs by their number of buffers (buffers of nested columns not counted); all others have two. */
const bufferCounts: Readonly<Record<number, number>> = {
  1: 0,
  4: 3,
  5: 3,
  13: 1,
  16: 1,
  19: 3,
  20: 3,
  [RUN_END]: 0,
  [LIST_VIEW]: 3,
  [LARGE_LIST_VIEW]: 3,
};
const views: readonly number[] = [23, 24];

/** Entries of a column in the vectors of a batch. */
interface Entries {
  readonly nodes: number;
  /** Without the data of views, whose number of buffers each batch has in its own vector `variadic`. */
  readonly buffers: number;
  readonly variadic: number;
}

/** The columns of a file, those that are removed among them. */
export interface StoredColumns {
  readonly removed: readonly string[];
  readonly columns: readonly { readonly entries: Entries; readonly isRemoved: boolean }[];
}

/**
 * Removes columns from a verified footer (`slot` 1) or schema message (`slot` 2), in place. Undefined if the
 * library can read all columns, or none.
 */
export function removeUnread(metadata: Uint8Array, slot: 1 | 2): StoredColumns | undefined {
  const schema = neededTable(FlatTable.root(metadata), slot);
  const { view } = schema;
  const { first } = schema.vector(SCHEMA.fields);
  const tables = schema.tables(SCHEMA.fields);
  const columns = tables.map((table) => ({ entries: entriesOf(table), isRemoved: hasUnread(table) }));
  const removed = tables.filter((_, i) => columns[i].isRemoved).map((table) => table.text(FIELD.name));
  if (removed.length === 0 || removed.length === tables.length) return undefined;
  const kept = tables.filter((_, i) => !columns[i].isRemoved);
  // Each entry is a distance from its own place.
  kept.forEach((table, i) => view.setUint32(first + 4 * i, table.at - (first + 4 * i), true));
  view.setUint32(first - 4, kept.length, true);
  return { removed, columns };
}

/** Removes the columns' entries from the metadata of a verified batch, in place. */
export function removeEntries(metadata: Uint8Array, { columns }: StoredColumns): void {
  const batch = neededTable(FlatTable.root(metadata), MESSAGE.header);
  const { view } = batch;
  const counts = variadicCounts(batch);
  let views = 0;
  const stored = columns.map(({ entries, isRemoved }) => {
    const ofViews = counts.slice(views, (views += entries.variadic));
    const buffers = ofViews.reduce((sum, count) => sum + count, entries.buffers);
    return { entries: { ...entries, buffers }, isRemoved };
  });
  for (const [name, bytes] of [
    ['nodes', 16],
    ['buffers', 16],
    ['variadic', 8],
  ] as const) {
    const { first, length } = batch.vector(BATCH[name]);
    if (first === 0) continue;
    let [from, to] = [0, 0];
    for (const { entries, isRemoved } of stored) {
      const end = Math.min(length, from + entries[name]);
      if (!isRemoved) {
        metadata.copyWithin(first + to * bytes, first + from * bytes, first + end * bytes);
        to += end - from;
      }
      from = end;
    }
    view.setUint32(first - 4, to, true);
  }
}

/** The number of data buffers of each column of views. */
function variadicCounts(batch: FlatTable): number[] {
  const { first, length } = batch.vector(BATCH.variadic);
  return Array.from({ length }, (_, i) => Math.max(0, Number(batch.view.getBigInt64(first + 8 * i, true))));
}

function entriesOf(field: FlatTable): Entries {
  if (field.has(FIELD.dictionary)) return { nodes: 1, buffers: 2, variadic: 0 };
  const type = field.byte(FIELD.type);
  const own = type === UNION ? unionBuffers(field) : (bufferCounts[type] ?? 2);
  return field
    .tables(FIELD.children)
    .map(entriesOf)
    .reduce(
      (sum, child) => ({
        nodes: sum.nodes + child.nodes,
        buffers: sum.buffers + child.buffers,
        variadic: sum.variadic + child.variadic,
      }),
      { nodes: 1, buffers: own, variadic: views.includes(type) ? 1 : 0 },
    );
}

/** A dense union (mode 1) has offsets as well as type ids. */
function unionBuffers(field: FlatTable): number {
  return neededTable(field, FIELD.union).short(0) === 1 ? 2 : 1;
}

function hasUnread(field: FlatTable): boolean {
  const type = field.byte(FIELD.type);
  const isWide = type === INTEGER && neededTable(field, FIELD.union).int(0) > 64;
  return isWide || unread.includes(type) || field.tables(FIELD.children).some(hasUnread);
}

/** Throws an Error if the table is absent. */
function neededTable(table: FlatTable, field: number): FlatTable {
  const found = table.table(field);
  if (found === undefined) throw new Error('a part of it is missing');
  return found;
}
