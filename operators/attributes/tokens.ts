import type { KeyColumn } from '../../engine/keys/key-column.ts';

/** Separators of several values in one text, in the order in which they are tried. */
export const separators = ['|', ';', ','] as const;

/**
 * The words of an ASCII text by the rules of Unicode (UAX 29, as in Intl.Segmenter, which takes 25 times as
 * long): a point or apostrophe between letters or digits does not end a word.
 */
const asciiWords =
  /(?=_*[A-Za-z0-9])(?:[A-Za-z0-9_]|(?<=[A-Za-z])['.:](?=[A-Za-z])|(?<=[0-9])[.,;'](?=[0-9]))+/g;

// oxlint-disable-next-line no-control-regex -- the range of ASCII
const isAscii = /^[\0-\x7f]*$/;

const isWord = /[\p{L}\p{N}]/u;

let segmenter: Intl.Segmenter | undefined;

/** The words of a text in lower case, by Unicode's word boundaries: "L'Été 1982" -> l'été, 1982. */
export function wordsOf(text: string): string[] {
  if (isAscii.test(text)) return text.toLowerCase().match(asciiWords) ?? [];
  segmenter ??= new Intl.Segmenter('und', { granularity: 'word' });
  const words: string[] = [];
  for (const { segment } of segmenter.segment(text.normalize('NFKC').toLowerCase()))
    if (isWord.test(segment)) words.push(segment);
  return words;
}

/** The parts of a text between separators, without spaces around them; empty parts are left out. */
export function partsOf(text: string, separator: string): string[] {
  return text
    .split(separator)
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/** The tokens of each row of a batch: those of row r are keys[offsets[r]] to keys[offsets[r + 1]]. */
export interface Tokens {
  readonly offsets: Int32Array;
  readonly keys: KeyColumn & { readonly type: 'utf8' };
}

/** The tokens of a batch's rows. `split` returns the tokens of a value that is not null. */
export function tokensOf(
  rows: number,
  valueAt: (row: number) => unknown,
  split: (value: unknown) => readonly string[],
): Tokens {
  const offsets = new Int32Array(rows + 1);
  const texts: string[] = [];
  for (let row = 0; row < rows; row++) {
    const value = valueAt(row);
    if (value !== null && value !== undefined) for (const token of split(value)) texts.push(token);
    offsets[row + 1] = texts.length;
  }
  return { offsets, keys: utf8Keys(texts) };
}

const encoder = new TextEncoder();

/** Texts as a column of keys. */
export function utf8Keys(texts: readonly string[]): Tokens['keys'] {
  const offsets = new Int32Array(texts.length + 1);
  const joined = texts.join('');
  let bytes: Uint8Array = encoder.encode(joined);
  // Encoding all texts at once is much faster; only texts of ASCII have as many bytes as characters.
  if (bytes.length === joined.length)
    for (let i = 0; i < texts.length; i++) offsets[i + 1] = offsets[i] + texts[i].length;
  else {
    const each = texts.map((text) => encoder.encode(text));
    each.forEach(({ length }, i) => (offsets[i + 1] = offsets[i] + length));
    // Halves of a pair at the end of one text and the start of the next are a character where joined.
    if (offsets[texts.length] !== bytes.length) bytes = new Uint8Array(offsets[texts.length]);
    each.forEach((text, i) => bytes.set(text, offsets[i]));
  }
  return { type: 'utf8', offsets, bytes };
}
