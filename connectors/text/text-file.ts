import { makeData, RecordBatch, Struct } from 'apache-arrow';
import type { Schema } from 'apache-arrow';
import { DataError, throwIfAborted } from '../../engine/errors.ts';
import { setOrigin } from '../../engine/stream/stream.ts';
import { unpackedBytes } from '../compression/unpacked-bytes.ts';
import { inputName } from '../files/path-kinds.ts';
import { FieldProblem, readColumn } from './read-column.ts';
import { FieldBlock } from './record-scanner.ts';
import { RowWindow, shorten } from './row-window.ts';
import { blockRows, fieldText, inferLayout, scanWindow, skipMark } from './text-layout.ts';
import type { TextLayout, TextOptions } from './text-layout.ts';

/** A text file whose first part is in memory. Its owner closes it. */
export class TextFile {
  readonly layout: TextLayout;
  readonly #file: string;
  readonly #window: RowWindow;

  private constructor(file: string, window: RowWindow, layout: TextLayout) {
    this.#file = file;
    this.#window = window;
    this.layout = layout;
  }

  /** Opens the file (or stdin, "-") and infers its layout, unless that is known. */
  static async open(file: string, options: TextOptions, batchSize: number, known?: TextLayout): Promise<TextFile> {
    const window = new RowWindow(file, unpackedBytes(file));
    try {
      await window.fill();
      skipMark(window);
      return new TextFile(file, window, known ?? inferLayout(window, inputName(file), options, batchSize));
    } catch (error) {
      await window.close();
      throw error;
    }
  }

  /**
   * The rows of the file, once, under `schema`, which has some of the layout's columns. `layout` may have wider types than
   * the file's own. Throws DataError that names the line, the column and the text.
   */
  async *read(layout: TextLayout, schema: Schema, batchSize: number, signal: AbortSignal): AsyncGenerator<RecordBatch> {
    const [window, file] = [this.#window, this.#file];
    const { dialect, names } = layout;
    const wanted = schema.fields.map(({ name }) => names.indexOf(name));
    if (layout.header) {
      const head = new FieldBlock(names.length, 1);
      window.advance(scanWindow(window, head, window.from, dialect), head.lines);
    }
    const block = new FieldBlock(names.length, blockRows(window, names.length, batchSize));
    for (let firstRow = 0; ; firstRow += block.rows) {
      throwIfAborted(signal, 'read');
      const next = scanWindow(window, block, window.from, dialect);
      const batch = block.rows > 0 ? this.#toBatch(block, layout, schema, wanted) : undefined;
      window.advance(next, block.lines);
      if (batch !== undefined) yield setOrigin(batch, { file: inputName(file), firstRow });
      else if (window.atEnd) return;
      else await window.fill();
    }
  }

  #toBatch(block: FieldBlock, { types, given }: TextLayout, schema: Schema, wanted: readonly number[]): RecordBatch {
    try {
      const children = wanted.map((column) => readColumn(block, column, types[column], given[column]));
      return new RecordBatch(schema, makeData({ type: new Struct(schema.fields), length: block.rows, nullCount: 0, children }));
    } catch (error) {
      if (error instanceof FieldProblem) throw this.#fieldProblem(block, error, schema, wanted, given);
      throw error;
    }
  }

  #fieldProblem(block: FieldBlock, { message, row, column }: FieldProblem, schema: Schema, wanted: readonly number[], given: TextLayout['given']): DataError {
    const name = schema.fields[wanted.indexOf(column)].name;
    const position = block.starts[row * block.columns + column];
    const inferred = given[column] ? '' : ', or set the column\'s type in the option types (utf8 takes any text): it was inferred from the first 4 MiB';
    const summary = `line ${this.#window.lineOf(position)}: ${shorten(fieldText(block, row, column))} ${message}`;
    return new DataError(summary, { phase: 'read', file: inputName(this.#file), column: name, advice: `Correct the line${inferred}` });
  }

  async close(): Promise<void> {
    await this.#window.close();
  }
}
