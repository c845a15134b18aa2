import { makeData, type Data, type Int32, type Utf8 } from 'apache-arrow';
import type { TextType } from '../files/format-names.ts';
import { LONGEST_ROW, type ScanBounds } from './field-block.ts';
import { plainRows, type RowKernels } from './generated/plain-rows-wasm.ts';
import { COMMA, DOT } from './parse-numbers.ts';
import { arrowType } from './read-column.ts';
import type { RowLayout, PlainMarks } from './row-layout.ts';

const LF = 0x0a;

/**
 * Codes of the types for the WebAssembly kernel (connectors/lines/assembly/plain-rows.ts). SKIP: the column
 * is not read.
 */
const SKIP = 0;
const readings: Readonly<Partial<Record<TextType, number>>> = {
  int32: 1,
  int64: 2,
  float32: 3,
  float64: 4,
  utf8: 5,
  date: 6,
  timestamp: 7,
  'timestamp(UTC)': 7,
};
const arrays = {
  int32: Int32Array,
  int64: BigInt64Array,
  float32: Float32Array,
  float64: Float64Array,
  utf8: Int32Array,
  date: Int32Array,
  timestamp: BigInt64Array,
  'timestamp(UTC)': BigInt64Array,
} as const;
/** Number of Int32 values that describe a column to the kernel, and the place of its number of nulls. */
const DESCRIPTION = 8;
const NULLS = 5;
/**
 * The kernel works on 16 bytes at once, so it may read or write this number of bytes after the end of an
 * area.
 */
const SLACK = 16;
const PAGE = 1 << 16;

/** Plain rows are returned as a batch of their own only if they are at least this number. */
export const FEW_ROWS = 1024;

interface Scanner {
  readonly memory: WebAssembly.Memory;
  readonly kernels: RowKernels;
}

let module: WebAssembly.Module | undefined;
/** A kernel with its memory that is not in use; the thread reuses it for its next rows. */
let spare: Scanner | undefined;

function takeScanner(bytes: number): Scanner {
  const last = spare;
  spare = undefined;
  if (last !== undefined) {
    const missing = bytes - last.memory.buffer.byteLength;
    if (missing > 0) last.memory.grow(Math.ceil(missing / PAGE));
    return last;
  }
  module ??= new WebAssembly.Module(Buffer.from(plainRows, 'base64'));
  const memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / PAGE) });
  return {
    memory,
    kernels: new WebAssembly.Instance(module, { env: { memory } }).exports as unknown as RowKernels,
  };
}

/**
 * A column to read, with addresses in the kernel's memory: of its null bitmap and values; for text, of the
 * starts, ends and offsets of its texts.
 */
interface Wanted {
  /** The column's position among all columns. */
  readonly column: number;
  readonly type: keyof typeof arrays;
  readonly bitmap: number;
  readonly values: number;
  readonly ends: number;
  readonly offsets: number;
}

/** Allocates consecutive addresses in a scanner's memory. */
class Places {
  end = 0;

  take(bytes: number): number {
    const at = this.end;
    this.end = Math.ceil((at + bytes) / SLACK) * SLACK;
    return at;
  }
}

/**
 * Reads plain rows as numbers, times and texts in one pass over their bytes. A row is plain if it has no
 * quotes, numbers of at most 15 digits with only digits, a minus and a point, and ISO times of at most six
 * digits after the second; fields may be empty. Nearly all files have only such rows. Stops before any other row, which the general scanner then reads. The kernel
 * is WebAssembly and reads a copy of the bytes; the thread reuses that memory.
 */
export class PlainRows implements Disposable {
  rows = 0;
  readonly #maximumRows: number;
  readonly #delimiter: number;
  readonly #quotes: boolean;
  readonly #point: number;
  readonly #wanted: readonly Wanted[];
  readonly #columns: number;
  readonly #scanner: Scanner;
  readonly #reached: number;
  readonly #descriptions: number;
  readonly #input: number;
  readonly #texts: number;

  private constructor(
    { types, given, rules }: RowLayout,
    marks: PlainMarks,
    wanted: readonly number[],
    maximumRows: number,
  ) {
    this.#maximumRows = maximumRows;
    this.#delimiter = marks.delimiter;
    this.#quotes = marks.quotes;
    this.#point = rules.decimalComma ? COMMA : DOT;
    this.#columns = types.length;
    const room = new Places();
    this.#reached = room.take(4);
    this.#descriptions = room.take(4 * DESCRIPTION * types.length);
    this.#input = room.take(LONGEST_ROW + 1 + SLACK);
    this.#texts = room.take(LONGEST_ROW + SLACK);
    this.#wanted = wanted.map((column): Wanted => {
      const type = types[column] as keyof typeof arrays;
      const more = type === 'utf8' ? 4 : 0;
      return {
        column,
        type,
        bitmap: room.take((maximumRows + 7) >> 3),
        values: room.take(arrays[type].BYTES_PER_ELEMENT * maximumRows),
        ends: room.take(more * maximumRows),
        offsets: room.take(more * (maximumRows + 1)),
      };
    });
    this.#scanner = takeScanner(room.end);
    const all = this.#ints(this.#descriptions, DESCRIPTION * types.length).fill(SKIP);
    for (const { column, type, values, ends, bitmap } of this.#wanted)
      all.set([readings[type] ?? SKIP, Number(given[column]), values, ends, bitmap], DESCRIPTION * column);
    for (const { bitmap } of this.#wanted) this.#bitmap(bitmap, maximumRows).fill(0xff);
  }

  #ints(at: number, length: number): Int32Array {
    return new Int32Array(this.#scanner.memory.buffer, at, length);
  }

  #bitmap(at: number, rows: number): Uint8Array {
    return new Uint8Array(this.#scanner.memory.buffer, at, (rows + 7) >> 3);
  }

  /** Number of nulls of a column among the rows, as an array of one element. */
  #nulls(column: number): Int32Array {
    return this.#ints(this.#descriptions + 4 * (DESCRIPTION * column + NULLS), 1);
  }

  /** Undefined if no row of this layout can be plain. */
  static of(layout: RowLayout, wanted: readonly number[], maximumRows: number): PlainRows | undefined {
    const { marks, rules, types } = layout;
    if (
      marks === undefined ||
      rules.nulls !== undefined ||
      types.length < 2 ||
      wanted.some((column) => readings[types[column]] === undefined)
    )
      return undefined;
    return new PlainRows(layout, marks, wanted, maximumRows);
  }

  /** Reads rows up to the first one that is not plain, or LONGEST_ROW bytes. Returns the position reached. */
  scan(bytes: Uint8Array, from: number, { to, limit }: ScanBounds): number {
    const { memory, kernels } = this.#scanner;
    const size = Math.max(0, Math.min(to - from, LONGEST_ROW));
    const input = this.#input;
    const copy = new Uint8Array(memory.buffer, input, size + 1);
    copy.set(bytes.subarray(from, from + size));
    // A line end after the last byte, so that searches in the kernel need no check for the end.
    copy[size] = LF;
    for (const { column, bitmap } of this.#wanted) {
      const nulls = this.#nulls(column);
      if (nulls[0] > 0) this.#bitmap(bitmap, this.#maximumRows).fill(0xff);
      nulls[0] = 0;
    }
    this.rows = kernels.scanRows(
      input,
      input + Math.min(size, limit - from),
      input + size,
      this.#maximumRows,
      this.#descriptions,
      this.#columns,
      this.#delimiter,
      Number(this.#quotes),
      this.#point,
      this.#reached,
    );
    return from + new Int32Array(memory.buffer, this.#reached, 1)[0] - input;
  }

  /** The wanted columns as Arrow data: copied, or `borrowed` until the next rows are read. */
  columns(borrowed: boolean): Data[] {
    const [{ memory, kernels }, length] = [this.#scanner, this.rows];
    let texts = this.#texts;
    return this.#wanted.map(({ column, type, values, ends, offsets, bitmap }) => {
      const own = <T extends { slice(): T }>(array: T) => (borrowed ? array : array.slice());
      const [nullCount] = this.#nulls(column);
      const nulls = { nullCount, ...(nullCount > 0 && { nullBitmap: own(this.#bitmap(bitmap, length)) }) };
      if (type === 'utf8') {
        const size = kernels.copyTexts(values, ends, length, offsets, texts);
        const data = own(new Uint8Array(memory.buffer, texts, size));
        texts += size;
        return makeData({
          type: arrowType(type) as Utf8,
          length,
          ...nulls,
          valueOffsets: own(new Int32Array(memory.buffer, offsets, length + 1)),
          data,
        });
      }
      return makeData({
        type: arrowType(type) as Int32,
        length,
        ...nulls,
        data: own(new arrays[type](memory.buffer, values, length) as Int32Array),
      });
    });
  }

  /** Releases the memory. Borrowed columns are invalid from then on. */
  [Symbol.dispose](): void {
    spare = this.#scanner;
  }
}
