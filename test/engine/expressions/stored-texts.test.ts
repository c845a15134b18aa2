/**
 * Tests of texts against constants read the stored bytes: they agree with the same tests of JavaScript's
 * texts.
 */
import { Dictionary, Int8, Int32, Table, Utf8, vectorFromArray } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { checkPredicate } from '../../../engine/expressions/check.ts';
import { selectedRows } from '../../../engine/expressions/select-rows.ts';
import { type Column, col } from '../../../index.ts';

const words = [
  '',
  'a',
  'ab',
  'abc',
  'b',
  'ba',
  'bab',
  'ä',
  'äa',
  '\u{1F600}',
  '\uFFFD',
  '\uD7FF',
  'a%b',
  'zebra',
  null,
];
const parts = ['', 'a', 'ab', 'b', 'ä', '\u{1F600}', '\uFFFD', '\uE000', 'zebra', 'none'];
const rows = Array.from({ length: 700 }, (_, i) => words[(i * 7 + (i >> 4)) % words.length]);
const points = (text: string) => Array.from(text, (point) => point.codePointAt(0) as number);

function isBefore(left: string, right: string): boolean {
  const [a, b] = [points(left), points(right)];
  const at = a.findIndex((point, i) => point !== b[i]);
  return at < 0 ? a.length < b.length : b[at] !== undefined && a[at] < b[at];
}

const tests: Readonly<Record<string, [(part: string) => Column, (text: string, part: string) => boolean]>> = {
  '=': [(part) => col('t').eq(part), (text, part) => text === part],
  '!=': [(part) => col('t').ne(part), (text, part) => text !== part],
  '<': [(part) => col('t').lt(part), (text, part) => isBefore(text, part)],
  '>': [(part) => col('t').gt(part), (text, part) => isBefore(part, text)],
  '<=': [(part) => col('t').le(part), (text, part) => !isBefore(part, text)],
  '>=': [(part) => col('t').ge(part), (text, part) => !isBefore(text, part)],
  in: [(part) => col('t').isIn(part, 'ba', 'q'), (text, part) => [part, 'ba', 'q'].includes(text)],
  startsWith: [(part) => col('t').startsWith(part), (text, part) => text.startsWith(part)],
  endsWith: [(part) => col('t').endsWith(part), (text, part) => text.endsWith(part)],
  contains: [(part) => col('t').contains(part), (text, part) => text.includes(part)],
  'like x': [(part) => col('t').like(part), (text, part) => text === part],
  'like x%': [(part) => col('t').like(`${part}%`), (text, part) => text.startsWith(part)],
  'like %x': [(part) => col('t').like(`%${part}`), (text, part) => text.endsWith(part)],
  'like %x%': [(part) => col('t').like(`%${part}%`), (text, part) => text.includes(part)],
};
const types = {
  text: new Utf8(),
  codes: new Dictionary(new Utf8(), new Int32()),
  bytes: new Dictionary(new Utf8(), new Int8()),
};

describe.each(Object.entries(types))('of a column of %s', (_, type) => {
  const whole = new Table({ t: vectorFromArray(rows, type) }).batches[0];
  it.each(Object.entries(tests))('%s', (_name, [condition, expected]) => {
    for (const batch of [whole, whole.slice(33, 650)])
      for (const part of parts) {
        const first = batch === whole ? 0 : 33;
        const found = selectedRows(checkPredicate(condition(part).expression, batch.schema), batch);
        const wanted = [...rows.slice(first, first + batch.numRows).entries()]
          .filter(([, text]) => text !== null && expected(text, part))
          .map(([row]) => row);
        expect([...found], JSON.stringify(part)).toEqual(wanted);
      }
  });
});

it('finds texts in a long list of constants', () => {
  const list = Array.from({ length: 40 }, (_, i) => `word ${i}`);
  const batch = new Table({ t: vectorFromArray(['word 3', 'word 39', 'word 40', ''], new Utf8()) })
    .batches[0];
  const [first, ...others] = list;
  const found = selectedRows(checkPredicate(col('t').isIn(first, ...others).expression, batch.schema), batch);
  expect([...found]).toEqual([0, 1]);
});

it('takes half of a surrogate pair for no other character', () => {
  const batch = new Table({ t: vectorFromArray(['\uFFFD', 'a'], new Utf8()) }).batches[0];
  const found = selectedRows(checkPredicate(col('t').eq('\uD83D').expression, batch.schema), batch);
  expect([...found]).toEqual([]);
});
