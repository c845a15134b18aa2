import type { Data, Field, RecordBatch } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import { isNullAt } from '../../engine/keys/arrow-keys.ts';
import { RowNumbers } from '../../engine/keys/row-numbers.ts';
import { folderName } from './folder-names.ts';
import { folderTexts } from './folder-texts.ts';

/** Longest file name of common file systems, in bytes. */
const LONGEST_NAME = 255;

/** Numbers the folders of rows (0, 1, 2, ... in order of appearance) by the values of some columns. */
export class FoldersOfRows {
  /** The path of each folder, such as `genre=Drama/year=1999`. */
  readonly paths: string[] = [];
  readonly #numbers: RowNumbers;
  readonly #columns: readonly { readonly name: string; readonly texts: ReturnType<typeof folderTexts> }[];
  /** Folder of each distinct value. Different values may share a folder, if their texts are equal. */
  readonly #folders: number[] = [];
  readonly #byPath = new Map<string, number>();

  /** Throws DataError for columns whose types cannot name folders. */
  constructor(columns: readonly Pick<Field, 'name' | 'type'>[]) {
    this.#columns = columns.map(({ name, type }) => ({ name, texts: folderTexts(type, name) }));
    this.#numbers = new RowNumbers(columns);
  }

  /** Folder of each row of a batch. `columns`: the batch's values of the partition columns. */
  of(columns: readonly Data[], { numRows }: RecordBatch): Uint32Array {
    const numbers = this.#numbers.add(columns, numRows);
    const folders = this.#folders;
    const texts = this.#columns.map((column, i) => column.texts(columns[i]));
    for (let row = 0; row < numRows; row++) {
      const number = numbers[row];
      if (folders[number] === undefined) folders[number] = this.#folder(columns, texts, row);
      numbers[row] = folders[number];
    }
    return numbers;
  }

  #folder(columns: readonly Data[], texts: readonly ((row: number) => string)[], row: number): number {
    const names = this.#columns.map(({ name }, i) => {
      const value = isNullAt(columns[i], row) ? null : texts[i](row);
      return requireLength(folderName(name, value), name);
    });
    const path = names.join('/');
    const known = this.#byPath.get(path);
    if (known !== undefined) return known;
    this.#byPath.set(path, this.paths.length);
    return this.paths.push(path) - 1;
  }
}

function requireLength(name: string, column: string): string {
  const bytes = Buffer.byteLength(name);
  if (bytes <= LONGEST_NAME) return name;
  const summary = `a value is too long for the name of a folder, which has at most ${LONGEST_NAME} bytes: ${name.slice(0, 60)}… has ${bytes}`;
  throw new DataError(summary, {
    phase: 'write',
    column,
    advice: 'Partition by a column of short values',
  });
}
