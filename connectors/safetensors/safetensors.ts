/**
 * A file of the safetensors format: the length of the header, a header of JSON padded to 8 bytes, then the
 * tensors in C order. The tensors are written by size of their numbers, so that each one is aligned.
 *
 *     length, uint64   {"user_factors": {"dtype": "F32", "shape": [3, 8], "data_offsets": [0, 96]}, ...}   ...
 */
export interface Tensor {
  readonly name: string;
  readonly type: 'F32' | 'F16' | 'I32' | 'I64' | 'U8';
  readonly shape: readonly number[];
  readonly data: ArrayBufferView;
}

/** The file's bytes in pieces: length and header, then the tensors as views of their own memory. */
export function safetensorsBytes(
  tensors: readonly Tensor[],
  metadata: Readonly<Record<string, string>>,
): Uint8Array[] {
  const sorted = tensors.toSorted((left, right) => numberBytes[right.type] - numberBytes[left.type]);
  let end = 0;
  const entries = sorted.map(({ name, type: dtype, shape, data }) => {
    const start = end;
    end += data.byteLength;
    return [name, { dtype, shape, data_offsets: [start, end] }] as const;
  });
  const json = JSON.stringify({ __metadata__: metadata, ...Object.fromEntries(entries) });
  const text = new TextEncoder().encode(json);
  const header = new Uint8Array(8 + 8 * Math.ceil(text.length / 8)).fill(0x20);
  new DataView(header.buffer).setBigUint64(0, BigInt(header.length - 8), true);
  header.set(text, 8);
  const bytes = ({ buffer, byteOffset, byteLength }: ArrayBufferView) =>
    new Uint8Array(buffer, byteOffset, byteLength);
  return [header, ...sorted.map(({ data }) => bytes(data))];
}

const numberBytes: Readonly<Record<Tensor['type'], number>> = { I64: 8, F32: 4, I32: 4, F16: 2, U8: 1 };
