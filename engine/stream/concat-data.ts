import {
  type Builder,
  Data,
  DataType,
  makeBuilder,
  makeData,
  RecordBatch,
  Struct,
  Vector,
} from 'apache-arrow';
import type { TypeMap } from 'apache-arrow';
import { setBits } from './set-bits.ts';

type Numbers = Int32Array;

/** The rows of batches with the same columns as one batch, without their origins. */
export function concatBatches(batches: readonly RecordBatch[]): RecordBatch {
  const [first] = batches;
  if (batches.length === 1) return first;
  const { schema } = first;
  const children = schema.fields.map((_, i) => concatData(batches.map(({ data }) => data.children[i])));
  const length = batches.reduce((sum, { numRows }) => sum + numRows, 0);
  const type = new Struct<TypeMap>(schema.fields);
  return new RecordBatch(schema, makeData({ type, length, nullCount: 0, children }));
}

/** Columns of one type, one after the other. Copies buffers, so that every value keeps all its bits. */
export function concatData(chunks: readonly Data[]): Data {
  const [{ type }] = chunks;
  if (chunks.length === 1) return chunks[0];
  if (isBuilt(type)) return concatByBuilder(chunks);
  const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  if (DataType.isNull(type)) return new Data(type, 0, length, length);
  const validity = concatValidity(chunks, length);
  const made = (buffers: { offsets?: Numbers; values?: Numbers | Uint8Array }, children: Data[] = []) => {
    const all = { 0: buffers.offsets, 1: buffers.values, 2: validity?.bitmap };
    return new Data(type, 0, length, validity?.nullCount ?? 0, all as never, children);
  };
  if (DataType.isBool(type)) return made({ values: concatBits(chunks, length) });
  if (DataType.isStruct(type) || DataType.isFixedSizeList(type)) {
    const below = DataType.isStruct(type) ? 1 : type.listSize;
    const childOf = (i: number) => (chunk: Data) => chunk.children[i].slice(0, below * chunk.length);
    return made(
      {},
      type.children.map((_, i) => concatData(chunks.map(childOf(i)))),
    );
  }
  if (chunks[0].valueOffsets === undefined) return made({ values: concatValues(chunks, length) });
  const offsets = concatOffsets(chunks, length);
  if (chunks[0].children.length > 0)
    return made({ offsets }, [
      concatData(chunks.map((chunk) => chunk.children[0].slice(firstOf(chunk), sizeOf(chunk)))),
    ]);
  const bytes = new Uint8Array(Number(offsets[length]));
  let at = 0;
  for (const chunk of chunks) {
    const [first, size] = [firstOf(chunk), sizeOf(chunk)];
    bytes.set((chunk.values as Uint8Array).subarray(first, first + size), at);
    at += size;
  }
  return made({ offsets, values: bytes });
}

/** True for types whose columns cannot be put together buffer by buffer. */
function isBuilt(type: DataType): boolean {
  return (
    DataType.isUnion(type) ||
    DataType.isDictionary(type) ||
    DataType.isUtf8View(type) ||
    DataType.isBinaryView(type)
  );
}

function firstOf({ valueOffsets }: Data): number {
  return Number(valueOffsets[0]);
}

/** Bytes or elements of all rows. */
function sizeOf(chunk: Data): number {
  return Number(chunk.valueOffsets[chunk.length]) - firstOf(chunk);
}

function concatValidity(
  chunks: readonly Data[],
  length: number,
): { readonly bitmap: Uint8Array; readonly nullCount: number } | undefined {
  const nullCount = chunks.reduce((sum, chunk) => sum + chunk.nullCount, 0);
  if (nullCount === 0) return undefined;
  const bitmap = new Uint8Array(Math.ceil(length / 64) * 8);
  let at = 0;
  for (const chunk of chunks) {
    const bits = chunk.nullCount === 0 ? undefined : chunk.nullBitmap;
    setBits(bitmap, at, { bits, offset: chunk.offset, length: chunk.length });
    at += chunk.length;
  }
  return { bitmap, nullCount };
}

function concatBits(chunks: readonly Data[], length: number): Uint8Array {
  const all = new Uint8Array(Math.ceil(length / 64) * 8);
  let at = 0;
  for (const chunk of chunks) {
    setBits(all, at, { bits: chunk.values as Uint8Array, offset: chunk.offset, length: chunk.length });
    at += chunk.length;
  }
  return all;
}

function concatValues(chunks: readonly Data[], length: number): Numbers {
  const [{ values, stride }] = chunks;
  const all = new ((values as Numbers).constructor as Int32ArrayConstructor)(length * stride);
  let at = 0;
  for (const chunk of chunks) {
    all.set((chunk.values as Numbers).subarray(0, chunk.length * stride), at);
    at += chunk.length * stride;
  }
  return all;
}

/** Offsets from 0 on, as wide as the given ones. */
function concatOffsets(chunks: readonly Data[], length: number): Numbers {
  if ((chunks[0].valueOffsets as unknown) instanceof BigInt64Array) return concatWideOffsets(chunks, length);
  const all = new Int32Array(length + 1);
  let [at, end] = [0, 0];
  for (const chunk of chunks) {
    const given = chunk.valueOffsets as Numbers;
    const by = end - given[0];
    for (let row = 1; row <= chunk.length; row++) all[at + row] = given[row] + by;
    at += chunk.length;
    end += given[chunk.length] - given[0];
  }
  return all;
}

function concatWideOffsets(chunks: readonly Data[], length: number): Numbers {
  const all = new BigInt64Array(length + 1);
  let [at, end] = [0, 0n];
  for (const chunk of chunks) {
    const given = chunk.valueOffsets as unknown as BigInt64Array;
    const by = end - given[0];
    for (let row = 1; row <= chunk.length; row++) all[at + row] = given[row] + by;
    at += chunk.length;
    end += given[chunk.length] - given[0];
  }
  return all as unknown as Numbers;
}

/** Value by value, with Arrow's builder. */
function concatByBuilder(chunks: readonly Data[]): Data {
  const builder: Builder = makeBuilder({ type: chunks[0].type, nullValues: [null] });
  for (const chunk of chunks) for (const value of new Vector([chunk])) builder.append(value);
  return builder.finish().flush();
}
