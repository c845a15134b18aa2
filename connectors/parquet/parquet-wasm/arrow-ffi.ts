import { DataType, makeData, RecordBatch, Struct } from 'apache-arrow';
import type { Data, Int32, Schema } from 'apache-arrow';
import type { RecordBatch as WasmBatch } from 'parquet-wasm/node';

/**
 * The C data interface of a record batch in 32-bit WebAssembly memory:
 *
 *     ArrowArray { length, null_count, offset, n_buffers, n_children: int64;  buffers, children, dictionary, release, private: pointer }
 *                  0       8           16      24         32                  40       44        48          52       56
 *
 * A column of numbers without nulls has the buffers [validity (null), values]. Its values are taken directly
 * from the decoder's memory; the IPC stream would copy them three times.
 */
const at = {
  length: 0,
  nullCount: 8,
  offset: 16,
  buffers: 24,
  children: 32,
  bufferList: 40,
  childList: 44,
} as const;

/** True for a schema whose batches `takeNumbers` can copy. */
export function hasOnlyNumbers(schema: Schema): boolean {
  return schema.fields.every(
    ({ type }) =>
      (DataType.isInt(type) && type.bitWidth >= 32) || (DataType.isFloat(type) && type.precision > 0),
  );
}

/**
 * Copies a batch's values out, or returns views that are valid until the decoder continues. Undefined, with
 * the batch unchanged, if it has nulls or another layout.
 */
export function takeNumbers(
  batch: WasmBatch,
  schema: Schema,
  memory: () => ArrayBuffer,
  views: boolean,
): RecordBatch | undefined {
  const exported = batch.toFFI();
  try {
    const buffer = memory();
    const view = new DataView(buffer);
    const array = exported.arrayAddr();
    const length = int64(view, array + at.length);
    if (int64(view, array + at.offset) !== 0 || int64(view, array + at.children) !== schema.fields.length)
      return undefined;
    const list = view.getUint32(array + at.childList, true);
    const children: Data[] = [];
    for (const [index, { type }] of schema.fields.entries()) {
      const child = view.getUint32(list + 4 * index, true);
      const plain =
        int64(view, child + at.length) === length &&
        int64(view, child + at.nullCount) === 0 &&
        int64(view, child + at.buffers) === 2;
      if (!plain) return undefined;
      const values = view.getUint32(view.getUint32(child + at.bufferList, true) + 4, true);
      const from = values + int64(view, child + at.offset) * type.ArrayType.BYTES_PER_ELEMENT;
      const data = views
        ? new type.ArrayType(buffer, from, length)
        : new type.ArrayType(buffer.slice(from, from + length * type.ArrayType.BYTES_PER_ELEMENT));
      children.push(makeData({ type: type as Int32, length, nullCount: 0, data }));
    }
    return new RecordBatch(
      schema,
      makeData({ type: new Struct(schema.fields), length, nullCount: 0, children }),
    );
  } finally {
    exported.free();
  }
}

function int64(view: DataView, position: number): number {
  return Number(view.getBigInt64(position, true));
}
