import { type ColumnKind, columnTypes, type Partition, type SharedColumn } from '../partition.ts';

/**
 * Node silently truncates the byte offset and length of a view to 32 bits when it is posted to another
 * thread. Whole buffers are not affected.
 */
export const viewLimit = { bytes: 2 ** 32 - 1 };

/** A view beyond the limit, in the form in which it is posted to another thread. */
interface WideView {
  readonly wide: ColumnKind;
  readonly buffer: ArrayBufferLike;
  readonly offset: number;
  readonly length: number;
}

/** A view as it is posted to another thread; `receivedView` restores it there. */
export type SentView<View extends SharedColumn = SharedColumn> = View | (WideView & { readonly of?: View });

/** A partition whose views are in that form. */
export type SentPartition = Omit<Partition, 'columns'> & {
  readonly columns: Readonly<Record<string, SentView>>;
};

export function sentView<View extends SharedColumn>(view: View): SentView<View> {
  const { buffer, byteOffset: offset, byteLength, length } = view;
  return offset + byteLength <= viewLimit.bytes
    ? view
    : { wide: view.constructor.name as WideView['wide'], buffer, offset, length };
}

export function receivedView<View extends SharedColumn>(sent: SentView<View>): View {
  if (!('wide' in sent)) return sent;
  return new columnTypes[sent.wide](sent.buffer, sent.offset, sent.length) as View;
}

/** The partition itself if all its views are within the limit. */
export function sentPartition(partition: Partition): SentPartition {
  const columns = Object.entries(partition.columns);
  if (columns.every(([, view]) => view.byteOffset + view.byteLength <= viewLimit.bytes)) return partition;
  return { ...partition, columns: Object.fromEntries(columns.map(([name, view]) => [name, sentView(view)])) };
}

export function receivedPartition(sent: SentPartition): Partition {
  return {
    ...sent,
    columns: Object.fromEntries(
      Object.entries(sent.columns).map(([name, view]) => [name, receivedView(view)]),
    ),
  };
}
