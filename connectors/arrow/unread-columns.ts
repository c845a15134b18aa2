/**
 * Columns of types that apache-arrow does not decode (run-end encoded, list views) are removed from a schema
 * and from its batches before that library sees them, so that the other columns can be read. The metadata are
 * FlatBuffers (Schema.fbs, Message.fbs): a table has a list of slots with the places of its fields. Vectors are
 * shortened in place.
 */
const FIELD = { name: 0, type: 2, union: 3, dictionary: 4, children: 5 } as const;
const SCHEMA = { fields: 1 } as const;
const MESSAGE = { header: 2 } as const;
const BATCH = { nodes: 1, buffers: 2, variadic: 4 } as const;

const [UNION, RUN_END, LIST_VIEW, LARGE_LIST_VIEW] = [14, 22, 25, 26];
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
  const view = viewOf(metadata);
  const schema = followed(view, placeOf(view, view.getUint32(0, true), slot));
  const fields = vectorAt(view, placeOf(view, schema, SCHEMA.fields));
  const tables = Array.from({ length: fields.length }, (_, i) => followed(view, fields.first + 4 * i));
  const columns = tables.map((table) => ({
    entries: entriesOf(view, table),
    isRemoved: hasUnread(view, table),
  }));
  const removed = tables.filter((_, i) => columns[i].isRemoved).map((table) => textAt(view, table));
  if (removed.length === 0 || removed.length === tables.length) return undefined;
  const kept = tables.filter((_, i) => !columns[i].isRemoved);
  // Each entry is a distance from its own place.
  kept.forEach((table, i) => view.setUint32(fields.first + 4 * i, table - (fields.first + 4 * i), true));
  view.setUint32(fields.first - 4, kept.length, true);
  return { removed, columns };
}

/** Removes the columns' entries from the metadata of a verified batch, in place. */
export function removeEntries(metadata: Uint8Array, { columns }: StoredColumns): void {
  const view = viewOf(metadata);
  const batch = followed(view, placeOf(view, view.getUint32(0, true), MESSAGE.header));
  const counts = variadicCounts(view, batch);
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
    const place = placeOf(view, batch, BATCH[name]);
    if (place === 0) continue;
    const { first, length } = vectorAt(view, place);
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
function variadicCounts(view: DataView, batch: number): number[] {
  const place = placeOf(view, batch, BATCH.variadic);
  if (place === 0) return [];
  const { first, length } = vectorAt(view, place);
  return Array.from({ length }, (_, i) => Math.max(0, Number(view.getBigInt64(first + 8 * i, true))));
}

function entriesOf(view: DataView, field: number): Entries {
  if (placeOf(view, field, FIELD.dictionary) !== 0) return { nodes: 1, buffers: 2, variadic: 0 };
  const type = typeAt(view, field);
  const own = type === UNION ? unionBuffers(view, field) : (bufferCounts[type] ?? 2);
  return childrenOf(view, field)
    .map((child) => entriesOf(view, child))
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
function unionBuffers(view: DataView, field: number): number {
  const place = placeOf(view, followed(view, placeOf(view, field, FIELD.union)), 0);
  return place !== 0 && view.getInt16(place, true) === 1 ? 2 : 1;
}

function hasUnread(view: DataView, field: number): boolean {
  return (
    unread.includes(typeAt(view, field)) || childrenOf(view, field).some((child) => hasUnread(view, child))
  );
}

function typeAt(view: DataView, field: number): number {
  const place = placeOf(view, field, FIELD.type);
  return place === 0 ? 0 : view.getUint8(place);
}

function childrenOf(view: DataView, field: number): number[] {
  const place = placeOf(view, field, FIELD.children);
  if (place === 0) return [];
  const { first, length } = vectorAt(view, place);
  return Array.from({ length }, (_, i) => followed(view, first + 4 * i));
}

function textAt(view: DataView, field: number): string {
  const place = placeOf(view, field, FIELD.name);
  if (place === 0) return '';
  const { first, length } = vectorAt(view, place);
  return Buffer.from(view.buffer, view.byteOffset + first, length).toString();
}

/** Place of a table's field; 0 if it is absent. */
function placeOf(view: DataView, table: number, field: number): number {
  const slots = table - view.getInt32(table, true);
  const slot = 4 + 2 * field;
  const place = slot + 2 <= view.getUint16(slots, true) ? view.getUint16(slots + slot, true) : 0;
  return place === 0 ? 0 : table + place;
}

/** The target of the pointer in a field. Throws an Error if a field that is needed is absent. */
function followed(view: DataView, place: number): number {
  if (place === 0) throw new Error('a part of it is missing');
  return place + view.getUint32(place, true);
}

function vectorAt(view: DataView, place: number): { readonly first: number; readonly length: number } {
  const vector = followed(view, place);
  return { first: vector + 4, length: view.getUint32(vector, true) };
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}
