import { readFileSync } from 'node:fs';
import { inflateRawSync } from 'node:zlib';
import { DataError } from '../../../index.ts';

const DIRECTORY_END = 0x06_05_4b_50;

/** An array of NumPy's format as it is stored: its header's text, and the bytes after the header. */
export interface StoredArray {
  readonly type: string;
  readonly fortranOrder: boolean;
  readonly shape: readonly number[];
  readonly bytes: Buffer;
}

/** The arrays of an .npz file, a zip file of .npy files, by name. */
export function readNpz(file: string): ReadonlyMap<string, StoredArray> {
  const bytes = readFileSync(file);
  const arrays = new Map<string, StoredArray>();
  let place = bytes.readUInt32LE(directoryEnd(bytes, file) + 16);
  for (let left = bytes.readUInt16LE(directoryEnd(bytes, file) + 10); left > 0; left--) {
    const nameLength = bytes.readUInt16LE(place + 28);
    const name = bytes.toString('utf8', place + 46, place + 46 + nameLength);
    arrays.set(name.replace(/\.npy$/, ''), parseArray(contentOf(bytes, place), file, name));
    place += 46 + nameLength + bytes.readUInt16LE(place + 30) + bytes.readUInt16LE(place + 32);
  }
  return arrays;
}

function directoryEnd(bytes: Buffer, file: string): number {
  for (let place = bytes.length - 22; place >= 0; place--)
    if (bytes.readUInt32LE(place) === DIRECTORY_END) return place;
  throw new DataError('the file is no zip file, as an .npz file is', { phase: 'read', file });
}

/** The content of the entry whose record in the directory is at `record`. */
function contentOf(bytes: Buffer, record: number): Buffer {
  const [method, packed] = [bytes.readUInt16LE(record + 10), bytes.readUInt32LE(record + 20)];
  const header = bytes.readUInt32LE(record + 42);
  const start = header + 30 + bytes.readUInt16LE(header + 26) + bytes.readUInt16LE(header + 28);
  const content = bytes.subarray(start, start + packed);
  return method === 0 ? content : inflateRawSync(content);
}

function parseArray(content: Buffer, file: string, name: string): StoredArray {
  const version = content[6];
  const [from, length] = version === 1 ? [10, content.readUInt16LE(8)] : [12, content.readUInt32LE(8)];
  const header = content.toString('latin1', from, from + length);
  const type = /'descr': '([^']+)'/.exec(header)?.[1];
  const shape = /'shape': \(([^)]*)\)/.exec(header)?.[1];
  if (type === undefined || shape === undefined)
    throw new DataError(`${name} has no header of NumPy's format`, { phase: 'read', file });
  return {
    type,
    fortranOrder: header.includes("'fortran_order': True"),
    shape: shape
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== '')
      .map(Number),
    bytes: content.subarray(from + length),
  };
}
