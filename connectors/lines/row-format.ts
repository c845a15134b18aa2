import { Field, Schema, RecordBatch, type Data } from 'apache-arrow';
import { throwIfAborted, type DataError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { ValueNeeds } from '../../engine/stream/operator.ts';
import type { ByteRange, ReadSplit, ReadSplitOptions, SplitEnd } from '../../engine/stream/split.ts';
import { type BatchOrigin, setOrigin } from '../../engine/stream/stream.ts';
import { batchOf } from '../../engine/stream/whole-data.ts';
import { isPlainFile, unpackedBytes } from '../compression/unpacked-bytes.ts';
import {
  type FileFormat,
  type FilePart,
  type FileSplit,
  fileSplitReader,
  type OpenFile,
} from '../files/file-set-source.ts';
import type { TextType } from '../files/format-names.ts';
import { inputName } from '../files/path-kinds.ts';
import { byteAt, fileSize, bytesFrom } from '../files/stored-bytes.ts';
import type { UrlVersions } from '../http/request.ts';
import { FieldBlock } from './field-block.ts';
import { FEW_ROWS, PlainRows } from './plain-rows.ts';
import { arrowType, type FieldProblem, readColumn } from './read-column.ts';
import { type RowLayout, type RowScan, blockRows, fieldText, scanWindow, skipMark } from './row-layout.ts';
import { WHOLE_FILE, RowWindow, shorten } from './row-window.ts';

const LF = 0x0a;

/** Properties that differ between formats of lines. */
export interface RowKind<Layout extends RowLayout> extends Pick<FileFormat<Layout>, 'name' | 'extensions'> {
  readonly batchSize: number;
  infer(window: RowWindow, file: string): Layout;
  reconcile(layouts: readonly Layout[], needs?: ValueNeeds): readonly Layout[];
  /** The facts of a layout, as JSON, from which another thread makes its scanner again. */
  scanning(layout: Layout): JsonObject;
}

/** A layout as plain JSON. */
type StoredLayout = {
  readonly header: boolean;
  readonly head?: { readonly lines: number; readonly end: number };
  readonly names: readonly string[];
  readonly types: readonly TextType[];
  readonly given: readonly boolean[];
  readonly decimalComma: boolean;
  readonly nulls: readonly string[] | null;
  readonly scanning: JsonObject;
};

type RowSplit = FileSplit & { readonly layout: StoredLayout; readonly batchSize: number };

/**
 * A format of lines. Files are read whole or as byte ranges; reading cannot start in the middle of a
 * compressed file.
 */
export function rowFormat<Layout extends RowLayout>({
  name,
  extensions,
  batchSize,
  infer,
  reconcile,
  scanning,
}: RowKind<Layout>): FileFormat<Layout> {
  return {
    name,
    extensions,
    opensAtOnce: 1,
    open: (file, versions) => {
      const bytes = unpackedBytes(file, undefined, versions);
      return RowFile.open({ file, bytes, range: WHOLE_FILE, batchSize }, async (window) => {
        await window.requireText();
        return infer(window, inputName(file));
      });
    },
    reopen: ({ file, layout, size, versions }) =>
      openRange({ file, range: WHOLE_FILE, batchSize }, layout, size, versions),
    endsWhole: (file, size) => !isPlainFile(file) || byteAt(file, size - 1) === LF,
    reconcile,
    cut: async ({ file, layout, size }, targetBytes) => {
      const { header, head, names, types, given, rules } = layout;
      const stored: StoredLayout = {
        header,
        ...(head && { head }),
        names,
        types,
        given,
        decimalComma: rules.decimalComma,
        nulls: rules.nulls === undefined ? null : [...rules.nulls],
        scanning: scanning(layout),
      };
      return rangesOf(file, targetBytes, size, head?.end).map((part): FilePart => ({
        ...part,
        layout: stored,
        batchSize,
      }));
    },
  };
}

/** Makes the reader of the format's splits; `readersOf` makes the scanner of its rows again. */
export function rowSplitReader(
  readersOf: (scanning: JsonObject, names: readonly string[]) => Pick<RowLayout, 'scanner' | 'marks'>,
): ReadSplit {
  return fileSplitReader(async (split) => {
    const { file, range, batchSize, layout, stamp } = split as RowSplit;
    const { decimalComma, nulls, scanning, ...rest } = layout;
    const { names, types } = rest;
    const whole: RowLayout = {
      ...rest,
      rules: { decimalComma, nulls: nulls === null ? undefined : new Set(nulls) },
      schema: new Schema(names.map((column, i) => new Field(column, arrowType(types[i]), true))),
      kinds: [],
      ...readersOf(scanning, names),
    };
    const size = stamp?.size || Number.POSITIVE_INFINITY;
    return openRange({ file, range: range ?? WHOLE_FILE, batchSize }, whole, size);
  });
}

/**
 * Opens a range of the first `size` bytes of a file whose layout is known. A compressed file has only one
 * range, the whole file.
 */
async function openRange<Layout extends RowLayout>(
  rows: Omit<StoredRows, 'bytes'>,
  layout: Layout,
  size: number,
  versions?: UrlVersions,
): Promise<RowFile<Layout>> {
  const { file, range } = rows;
  const isPart = range.from > 0 || range.to < WHOLE_FILE.to;
  const bytes =
    isPart || isPlainFile(file)
      ? bytesFrom(file, range.known ? range.from : range.from - 1, size)
      : unpackedBytes(file, size, versions);
  return RowFile.open({ ...rows, bytes }, () => layout);
}

/** Byte ranges of about equal size, of which the first has the whole head; one range for a compressed file. */
function rangesOf(
  file: string,
  targetBytes: number,
  most: number,
  headEnd = 0,
): readonly { readonly bytes: number; readonly range?: ByteRange }[] {
  const size = Math.min(most, fileSize(file));
  const count = Math.ceil(size / targetBytes);
  if (count <= 1 || !isPlainFile(file)) return [{ bytes: size }];
  const starts = Array.from({ length: count }, (_, i) => Math.floor((i * size) / count)).filter(
    (start) => start === 0 || start > headEnd,
  );
  return starts.map((from, i) => ({
    bytes: (starts[i + 1] ?? size) - from,
    range: { from, to: starts[i + 1] ?? WHOLE_FILE.to, known: i === 0, rows: 0, lines: 0 },
  }));
}

/** The columns to read from rows. `wanted`: positions of the schema's columns among the layout's. */
interface RowReading<Layout> {
  readonly layout: Layout;
  readonly schema: Schema;
  readonly wanted: readonly number[];
}

interface FoundRows {
  readonly batch: RecordBatch;
  readonly origin: Omit<BatchOrigin, 'file' | 'firstRow'>;
}

/** A file, or a byte range of it, and most rows of a batch. */
interface StoredRows {
  readonly file: string;
  readonly bytes: AsyncGenerator<Uint8Array>;
  readonly range: ByteRange;
  readonly batchSize: number;
}

/**
 * A text file, or a byte range of it, read through a window of a few megabytes in memory. The caller closes
 * it.
 */
class RowFile<Layout extends RowLayout> implements OpenFile<Layout> {
  readonly layout: Layout;
  readonly #rows: StoredRows;
  readonly #window: RowWindow;
  /** False if the range starts at a guessed byte and no line starts in it. */
  readonly #hasLines: boolean;

  private constructor(rows: StoredRows, window: RowWindow, layout: Layout, hasLines: boolean) {
    [this.#rows, this.#window, this.layout, this.#hasLines] = [rows, window, layout, hasLines];
  }

  /** `layoutOf` is given the first window. */
  static async open<Layout extends RowLayout>(
    rows: StoredRows,
    layoutOf: (window: RowWindow) => Layout | Promise<Layout>,
  ): Promise<RowFile<Layout>> {
    const { file, bytes, range } = rows;
    const window = new RowWindow(file, bytes, range);
    try {
      const hasLines = range.known || (await window.toFirstLine());
      if (range.known) await window.fill();
      if (range.known && range.from === 0) skipMark(window);
      return new RowFile(rows, window, await layoutOf(window), hasLines);
    } catch (error) {
      await window.close();
      throw error;
    }
  }

  /**
   * The rows of the range, once, as batches of `schema`, which has some of the layout's columns. `layout` may
   * have wider types than the file's own. A value that cannot be read is a DataError with line, column and
   * text; with `takesFaults` it becomes null, and the batch's origin has the reason. Returns the end of the
   * range.
   */
  async *read(
    layout: Layout,
    schema: Schema,
    { signal, takesFaults, borrowed = false }: ReadSplitOptions,
  ): AsyncGenerator<RecordBatch, SplitEnd> {
    const window = this.#window;
    const { range, batchSize } = this.#rows;
    const file = inputName(this.#rows.file);
    if (!this.#hasLines) return { startsAt: -1, endsAt: -1, lines: 0 };
    const startsAt = range.known ? range.from : window.position;
    const { names } = layout;
    const places = new Map(names.map((name, at) => [name, at]));
    const wanted = schema.fields.map(({ name }) => places.get(name) ?? -1);
    if (range.known && range.from === 0) await this.#skipHead(layout);
    const rows = blockRows(window, names.length, batchSize);
    // Files of only plain rows need none.
    let block: FieldBlock | undefined;
    const blockOf = () => {
      block ??= new FieldBlock(names.length, rows);
      if (takesFaults) block.faults ??= new Map();
      return block;
    };
    // A consumer that handles bad rows reads the columns that it chose, so other fields do not matter.
    const scan = layout.scanner(wanted.length === names.length && !takesFaults);
    using plain = PlainRows.of(layout, wanted, rows);
    let firstRow = range.rows;
    for (;;) {
      throwIfAborted(signal, 'read');
      const isRead = window.from >= window.limit || (window.atEnd && window.from === window.to);
      const found = isRead
        ? undefined
        : (this.#plainRows(plain, schema, borrowed) ??
          this.#scannedRows(blockOf(), scan, { layout, schema, wanted }));
      if (found !== undefined) {
        yield setOrigin(found.batch, { file, firstRow, ...found.origin });
        firstRow += found.batch.numRows;
      } else if (window.atEnd || window.from >= window.limit)
        return { startsAt, endsAt: window.position, lines: window.lines - range.lines };
      else await window.fill();
    }
  }

  /** The next rows, if they are plain and enough for a batch. */
  #plainRows(plain: PlainRows | undefined, schema: Schema, borrowed: boolean): FoundRows | undefined {
    if (plain === undefined) return undefined;
    const { bytes, from, to, limit, atEnd, lines } = this.#window;
    const end = plain.scan(bytes, from, { to, limit, atEnd });
    const { rows } = plain;
    const isLast = rows > 0 && atEnd && end === to;
    if (rows < FEW_ROWS && !isLast) return undefined;
    const batch = toBatch(schema, rows, plain.columns(borrowed));
    this.#window.advance(end, rows);
    return { batch, origin: { lineOf: (row) => lines + 1 + row } };
  }

  /** The next rows of any kind; undefined if the window has no complete row. */
  #scannedRows(block: FieldBlock, scan: RowScan, reading: RowReading<Layout>): FoundRows | undefined {
    const window = this.#window;
    const next = scanWindow(window, block, window.from, scan);
    const shown = (row: number) => window.lineText(block.starts[row * block.columns]);
    const faults =
      block.faults && new Map([...block.faults].map(([row, message]) => [row, `${message}: ${shown(row)}`]));
    const batch = block.rows > 0 ? this.#toBatch(block, reading, faults) : undefined;
    const lineOf = linesOf(block, window.lineOf(window.from));
    window.advance(next, block.lines);
    return batch && { batch, origin: { lineOf, ...(faults && faults.size > 0 && { faults }) } };
  }

  /** Skips the lines before the first row, and the header: the whole first row, even if the range ends inside. */
  async #skipHead(layout: Layout): Promise<void> {
    const window = this.#window;
    for (let left = layout.head?.lines ?? 0; left > 0;) {
      const lf = window.bytes.subarray(0, window.to).indexOf(LF, window.from);
      if (lf < 0) await window.fill();
      else {
        window.advance(lf + 1, 1);
        left--;
      }
    }
    if (!layout.header) return;
    const head = new FieldBlock(layout.names.length, 1);
    for (;;) {
      window.advance(
        scanWindow(window, head, window.from, layout.scanner(true), Number.POSITIVE_INFINITY),
        head.lines,
      );
      if (head.rows > 0 || window.atEnd) return;
      await window.fill();
    }
  }

  /**
   * Adds the reasons of values that could not be read to `faults`; throws the first if `faults` is undefined.
   */
  #toBatch(
    block: FieldBlock,
    { layout, schema, wanted }: RowReading<Layout>,
    faults: Map<number, string> | undefined,
  ): RecordBatch {
    const { types, given, rules } = layout;
    const onFault = (problem: FieldProblem) => {
      if (faults === undefined) throw this.#fieldProblem(block, problem, layout);
      const { row, column, message } = problem;
      if (!faults.has(row))
        faults.set(row, `${layout.names[column]} ${shorten(fieldText(block, row, column))} ${message}`);
    };
    const children = wanted.map((column) =>
      readColumn({ ...rules, block, column, zeros: given[column], onFault }, types[column]),
    );
    return toBatch(schema, block.rows, children);
  }

  #fieldProblem(
    block: FieldBlock,
    { message, row, column, advice }: FieldProblem,
    { names, given }: Layout,
  ): DataError {
    const position = block.starts[row * block.columns + column];
    const inferred = given[column]
      ? ''
      : ", or set the column's type in the option types (utf8 takes any text): it was inferred from the first 4 MiB";
    return this.#window.problemAt(
      position,
      `${shorten(fieldText(block, row, column))} ${message}`,
      advice ?? `Correct the line${inferred}`,
      names[column],
    );
  }

  async close(): Promise<void> {
    await this.#window.close();
  }
}

function toBatch(schema: Schema, rows: number, children: Data[]): RecordBatch {
  return batchOf(schema, rows, children);
}

/** Line number of each row of a block; `first` is the number of the block's first line. */
function linesOf(block: FieldBlock, first: number): (row: number) => number {
  // Usually each row is one line; then no table is needed.
  if (block.lines === block.rows) return (row) => first + row;
  const before = block.linesBefore.slice(0, block.rows);
  return (row) => first + before[row];
}
