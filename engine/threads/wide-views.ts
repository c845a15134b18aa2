import type { Partition, SharedColumn } from '../partition.ts';

/**
 * Node cuts the byte offset and the byte length of a view to 32 bits when it goes to another thread, and
 * tells nothing. Buffers go whole.
 */
export const viewLimit = { bytes: 2 ** 32 - 1 };

const kinds = { Int32Array, Uint32Array, Float32Array, Float64Array, Uint8Array, Uint16Array, BigInt64Array };

/** A view of more memory than the limit, in the form in which it goes to another thread. */
interface WideView {
  readonly wide: keyof typeof kinds;
  readonly buffer: ArrayBufferLike;
  readonly offset: number;
  readonly length: number;
}

/** A view as it goes to another thread; `receivedView` is the inverse there. */
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
  const type = kinds[sent.wide] as unknown as new (
    buffer: ArrayBufferLike,
    offset: number,
    length: number,
  ) => View;
  return new type(sent.buffer, sent.offset, sent.length);
}

/** The partition itself where all its views are within the limit. */
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
