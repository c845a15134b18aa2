import { type Data, DataType, Vector } from 'apache-arrow';
import { withoutViews } from '../expressions/without-views.ts';
import { mix32 } from '../random.ts';
import { hasNulls, isNullAt, keysFromData, keysFromVector } from './arrow-keys.ts';
import { hashesOf } from './key-hash.ts';
import { wordArray, wordsOfType } from './row-words.ts';

/** The word used for a null. */
const NULL_WORD = 0x6e756c6c;

/**
 * Hashes each row's values in some columns. Rows that RowNumbers treats as equal have equal hashes, in every
 * thread. The upper bits of the hash select the part to which an exchange sends the row.
 */
export function hashRows(columns: readonly Data[], rows: number): Uint32Array {
  const hashes = new Uint32Array(rows);
  for (const data of columns) {
    const { words, step } = hashWords(withoutViews(data), rows);
    if (hasNulls(data)) mixNullable(hashes, data, words, step);
    else if (step === 1) for (let row = 0; row < rows; row++) hashes[row] = mix32(hashes[row], words[row]);
    else mixSteps(hashes, words, step);
  }
  return hashes;
}

function mixSteps(hashes: Uint32Array, words: Int32Array, step: number): void {
  for (let row = 0, at = 0; row < hashes.length; row++)
    for (let word = 0; word < step; word++) hashes[row] = mix32(hashes[row], words[at++]);
}

function mixNullable(hashes: Uint32Array, data: Data, words: Int32Array, step: number): void {
  for (let row = 0; row < hashes.length; row++) {
    const isNull = isNullAt(data, row);
    for (let word = 0; word < step; word++)
      hashes[row] = mix32(hashes[row], isNull ? NULL_WORD : words[row * step + word]);
  }
}

/** The 32-bit words of each row's value (for text, of its hash): row i starts at `i * step`. */
function hashWords(data: Data, rows: number): { readonly words: Int32Array; readonly step: number } {
  const { type, dictionary } = data;
  if (DataType.isDictionary(type)) {
    if (dictionary === undefined || dictionary.length === 0) return { words: new Int32Array(rows), step: 1 };
    const step = isText(type.dictionary) ? 1 : wordsOfType(type.dictionary);
    const entries = isText(type.dictionary)
      ? hashesOf(keysFromVector(new Vector(dictionary.data.map(withoutViews)), 'dictionary'))
      : Int32Array.from(dictionary.data.flatMap((chunk) => [...wordArray(chunk)]));
    const [words, codes] = [new Int32Array(rows * step), data.values as Int32Array];
    for (let row = 0; row < rows; row++)
      for (let word = 0; word < step; word++)
        words[row * step + word] = entries[Number(codes[row]) * step + word];
    return { words, step };
  }
  if (isText(type)) return { words: hashesOf(keysFromData(data, 'utf8')), step: 1 };
  return { words: wordArray(data), step: wordsOfType(type) };
}

function isText(type: DataType): boolean {
  return DataType.isUtf8(type) || DataType.isLargeUtf8(type) || DataType.isUtf8View(type);
}
