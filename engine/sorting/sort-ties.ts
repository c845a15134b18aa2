import { compareRows, type KeyWord, type KeyWords, type TextKey, wordAt } from './sort-keys.ts';
import { commonBytes, TEXT_WORDS, textsOfRows, writeTexts } from './sort-texts.ts';

/** Most rows whose texts are compared pairwise. */
const FEW_ROWS = 32;

/** `rows`: row by position. `places`: positions in sorted order. */
interface Placed {
  readonly places: Uint32Array;
  readonly rows: Uint32Array;
}

/** Returns the stable order of rows. */
type Sort = (keys: KeyWords) => Uint32Array;

/**
 * Sorts those rows whose order the words do not decide, since their texts differ only after the bytes that
 * the words include.
 */
export function sortTies(keys: KeyWords, { places, rows }: Placed, sort: Sort): void {
  if (!keys.texts.some(({ end, long }) => hasValue(keys.words[end - 1], long))) return;
  for (let start = 0, end = 1; end <= places.length; end++) {
    if (end < places.length && isTie(keys, rows[places[end - 1]], rows[places[end]])) continue;
    if (end - start > 1) sortTie(keys, { places: places.subarray(start, end), rows }, sort);
    start = end;
  }
}

function hasValue(word: KeyWord, value: number): boolean {
  return typeof word === 'number' ? word === value : word.includes(value);
}

/** True if two rows have a long text and equal words up to its end. */
function isTie({ words, texts }: KeyWords, a: number, b: number): boolean {
  let word = 0;
  for (const { end, long } of texts) {
    for (; word < end; word++) if (wordAt(words[word], a) !== wordAt(words[word], b)) return false;
    if (wordAt(words[end - 1], a) === long) return true;
  }
  return false;
}

/** Sorts rows with equal words up to a long text, by the bytes after the texts' common prefix. */
function sortTie(keys: KeyWords, { places, rows }: Placed, sort: Sort): void {
  if (places.length <= FEW_ROWS) {
    places.sort((a, b) => compareRows(keys, rows[a], keys, rows[b]) || a - b);
    return;
  }
  const inOrder = places.toSorted();
  const own = inOrder.map((place) => rows[place]);
  const order = sort(keysAfterText(keys, own));
  for (let i = 0; i < order.length; i++) places[i] = inOrder[order[i]];
}

/**
 * The sort keys of rows whose words are equal up to their first long text: the remaining bytes of that text,
 * then the keys after it.
 */
function keysAfterText({ words, texts }: KeyWords, rows: Uint32Array): KeyWords {
  const at = texts.findIndex(({ end, long }) => wordAt(words[end - 1], rows[0]) === long);
  const first = texts[at];
  const same = textsOfRows(first.texts, rows, first.texts.skip ?? 0);
  const rest = { ...same, skip: (same.skip ?? 0) + commonBytes(same) };
  const ofText = Array.from({ length: TEXT_WORDS }, () => new Uint32Array(rows.length));
  writeTexts(rest, rows.length, ofText);
  if (first.sign < 0) for (const word of ofText) for (let i = 0; i < word.length; i++) word[i] = ~word[i];
  const moved = ({ end, texts: own, ...key }: TextKey): TextKey => ({
    ...key,
    end: end - first.end + TEXT_WORDS,
    texts: textsOfRows(own, rows, own.skip ?? 0),
  });
  return {
    rows: rows.length,
    words: [...ofText, ...words.slice(first.end).map((word) => wordOfRows(word, rows))],
    texts: [{ ...first, end: TEXT_WORDS, texts: rest }, ...texts.slice(at + 1).map(moved)],
  };
}

function wordOfRows(word: KeyWord, rows: Uint32Array): KeyWord {
  return typeof word === 'number' ? word : rows.map((row) => word[row]);
}
