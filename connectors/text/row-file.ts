import { makeData, RecordBatch, Struct } from 'apache-arrow';
import type { Schema } from 'apache-arrow';
import { throwIfAborted } from '../../engine/errors.ts';
import type { DataError } from '../../engine/errors.ts';
import { setOrigin } from '../../engine/stream/stream.ts';
import { unpackedBytes } from '../compression/unpacked-bytes.ts';
import { inputName } from '../files/path-kinds.ts';
import { FieldProblem, readColumn } from './read-column.ts';
import { FieldBlock } from './record-scanner.ts';
import type { RowLayout } from './row-layout.ts';
import { blockRows, fieldText, scanWindow, skipMark } from './row-layout.ts';
import { RowWindow, shorten } from './row-window.ts';

/** A file of lines whose first part is in memory. Its owner closes it. */
export class RowFile<Layout extends RowLayout> {
  readonly layout: Layout;
  readonly #file: string;
  readonly #window: RowWindow;

  private constructor(file: string, window: RowWindow, layout: Layout) {
    this.#file = file;
    this.#window = window;
    this.layout = layout;
  }

  /** Opens the file (or stdin, "-"), and finds its layout by `infer` from the first part in memory unless it is known. */
  static async open<Layout extends RowLayout>(file: string, infer: (window: RowWindow, file: string) => Layout, known?: Layout): Promise<RowFile<Layout>> {
    const window = new RowWindow(file, unpackedBytes(file));
    try {
      await window.fill();
      skipMark(window);
      return new RowFile(file, window, known ?? infer(window, inputName(file)));
    } catch (error) {
      await window.close();
      throw error;
    }
  }

  /**
   * The rows of the file, once, under `schema`, which has some of the layout's columns. `layout` may have wider types than
   * the file's own. A value that cannot be read is a DataError that names the line, the column and the text; with `takesFaults`
   * it is null, and the batch's origin has that reason.
   */
  async *read(layout: Layout, schema: Schema, batchSize: number, signal: AbortSignal, takesFaults: boolean): AsyncGenerator<RecordBatch> {
    const [window, file] = [this.#window, inputName(this.#file)];
    const { names } = layout;
    const wanted = schema.fields.map(({ name }) => names.indexOf(name));
    if (layout.header) {
      const head = new FieldBlock(names.length, 1);
      window.advance(scanWindow(window, head, window.from, layout), head.lines);
    }
    const block = new FieldBlock(names.length, blockRows(window, names.length, batchSize));
    if (takesFaults) block.faults = new Map();
    for (let firstRow = 0; ; firstRow += block.rows) {
      throwIfAborted(signal, 'read');
      const next = scanWindow(window, block, window.from, layout);
      const faults = new Map([...(block.faults ?? [])].map(([row, message]) => [row, `${message}: ${window.lineText(block.starts[row * names.length])}`]));
      const batch = block.rows > 0 ? this.#toBatch(block, layout, schema, wanted, takesFaults ? faults : undefined) : undefined;
      const lineOf = linesOf(block, window.lineOf(window.from));
      window.advance(next, block.lines);
      if (batch !== undefined) yield setOrigin(batch, { file, firstRow, lineOf, ...(faults.size > 0 && { faults }) });
      else if (window.atEnd) return;
      else await window.fill();
    }
  }

  /** Adds the reasons of values that could not be read to `faults`, or throws the first where that is undefined. */
  #toBatch(block: FieldBlock, layout: Layout, schema: Schema, wanted: readonly number[], faults: Map<number, string> | undefined): RecordBatch {
    const { types, given, rules } = layout;
    const onFault = (problem: FieldProblem) => {
      if (faults === undefined) throw this.#fieldProblem(block, problem, layout);
      const { row, column, message } = problem;
      if (!faults.has(row)) faults.set(row, `${layout.names[column]} ${shorten(fieldText(block, row, column))} ${message}`);
    };
    const children = wanted.map((column) => readColumn({ ...rules, block, column, zeros: given[column], onFault }, types[column]));
    return new RecordBatch(schema, makeData({ type: new Struct(schema.fields), length: block.rows, nullCount: 0, children }));
  }

  #fieldProblem(block: FieldBlock, { message, row, column, advice }: FieldProblem, { names, given }: Layout): DataError {
    const position = block.starts[row * block.columns + column];
    const inferred = given[column] ? '' : ", or set the column's type in the option types (utf8 takes any text): it was inferred from the first 4 MiB";
    return this.#window.problemAt(position, `${shorten(fieldText(block, row, column))} ${message}`, advice ?? `Correct the line${inferred}`, names[column]);
  }

  async close(): Promise<void> {
    await this.#window.close();
  }
}

/** Lines of the block's rows, of which the first line has that number. */
function linesOf(block: FieldBlock, first: number): (row: number) => number {
  // Nearly always each row has a line.
  if (block.lines === block.rows) return (row) => first + row;
  const before = block.linesBefore.slice(0, block.rows);
  return (row) => first + before[row];
}
