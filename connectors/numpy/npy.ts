/**
 * A .npy file, version 1.0 of NumPy's format: a header with type and shape, padded to 64 bytes, then the
 * numbers in C order.
 *
 *     \x93NUMPY 1 0   length of the header, uint16   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 8), }\n   ...
 */
export type NpyArray = { readonly shape: readonly number[] } & (
  | { readonly values: Float32Array | Int32Array | BigInt64Array }
  /** Bits of float16 numbers. */
  | { readonly half: Uint16Array }
  /** Texts of Unicode code points, padded to the longest. */
  | { readonly texts: readonly string[] }
);

/** The file's bytes in pieces: the header, then the array, as a view of its own memory if its type allows. */
export function npyBytes(array: NpyArray): Uint8Array[] {
  const { type, bytes } = contentOf(array);
  const shape = array.shape.length === 1 ? `(${array.shape[0]},)` : `(${array.shape.join(', ')})`;
  const text = `{'descr': '${type}', 'fortran_order': False, 'shape': ${shape}, }`;
  const length = 64 * Math.ceil((10 + text.length + 1) / 64) - 10;
  const header = new Uint8Array(10 + length).fill(0x20);
  header.set([0x93, ...new TextEncoder().encode('NUMPY'), 1, 0, length & 255, length >> 8]);
  header.set(new TextEncoder().encode(text), 10);
  header[header.length - 1] = 0x0a;
  return [header, bytes];
}

function contentOf(array: NpyArray): { readonly type: string; readonly bytes: Uint8Array } {
  if ('half' in array) return { type: '<f2', bytes: bytesOf(array.half) };
  if ('values' in array)
    return {
      type: array.values instanceof Float32Array ? '<f4' : array.values instanceof Int32Array ? '<i4' : '<i8',
      bytes: bytesOf(array.values),
    };
  const points = array.texts.map((text) => Array.from(text, (character) => character.codePointAt(0) ?? 0));
  const width = points.reduce((most, own) => Math.max(most, own.length), 1);
  const codes = new Uint32Array(width * points.length);
  points.forEach((own, row) => codes.set(own, row * width));
  return { type: `<U${width}`, bytes: bytesOf(codes) };
}

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}
