import type { MixedColumn } from '../../engine/stream/operator.ts';
import type { FieldBlock } from '../lines/field-block.ts';
import { isNumeric, isTextAndWhole, textsAmongWhole } from '../lines/infer-types.ts';
import type { ValueRules } from '../lines/column-reading.ts';
import { fieldText } from '../lines/row-layout.ts';
import type { RowWindow } from '../lines/row-window.ts';

/**
 * A column with more texts than this is a text column, and its further rows are not inspected for exceptions.
 */
const MOST_TEXTS = 1000;

/** A column is reported if fewer than one of this number of rows has a text. */
const ROWS_PER_TEXT = 100;

interface CountedFile {
  readonly file: string;
  readonly names: readonly string[];
  /** Kinds of values of each column. */
  readonly kinds: readonly number[];
  readonly rows: number;
}

interface Found {
  readonly line: number;
  readonly text: string;
  readonly texts: number;
}

/**
 * Finds columns that are text only because of a few values. Only the rows of columns with texts are read
 * again.
 */
export class MixedColumns {
  readonly #window: RowWindow;
  readonly #rules: ValueRules;
  /** Undefined for columns that cannot be reported. */
  readonly #found = new Map<number, Found | undefined>();

  constructor(window: RowWindow, rules: ValueRules) {
    this.#window = window;
    this.#rules = rules;
  }

  /**
   * Counts the texts in the block's rows from `from` on. `kinds`: the kinds found in the column so far,
   * including this block.
   */
  add(block: FieldBlock, column: number, kinds: number, from: number): void {
    const before = this.#found.get(column);
    if (kinds === 0 || isNumeric(kinds) || (before === undefined && this.#found.has(column))) return;
    const texts = textsAmongWhole(block, column, this.#rules, {
      from,
      most: MOST_TEXTS - (before?.texts ?? 0),
    });
    if (texts?.length === 0) return;
    this.#found.set(
      column,
      texts &&
        (before ? { ...before, texts: before.texts + texts.length } : this.#first(block, column, texts)),
    );
  }

  #first(block: FieldBlock, column: number, texts: readonly number[]): Found {
    const line = this.#window.lineOf(block.starts[texts[0] * block.columns + column]);
    return { line, text: fieldText(block, texts[0], column), texts: texts.length };
  }

  /** The columns to report, for the file's first `rows` rows. */
  result({ file, names, kinds, rows }: CountedFile): readonly MixedColumn[] {
    return [...this.#found].flatMap(([column, found]) => {
      const isFew = found !== undefined && found.texts * ROWS_PER_TEXT < rows;
      return isFew && isTextAndWhole(kinds[column]) ? [{ file, column: names[column], rows, ...found }] : [];
    });
  }
}
