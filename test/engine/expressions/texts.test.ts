import { Dictionary, Int32, makeData, Utf8, Vector } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { CounterRandom, uniform } from '../../../engine/random.ts';
import { batchOf, type Cell, column, evaluated, selected } from './evaluated.ts';

const words = ['Drama', '  Über ', '', null, '😀z', 'a%b_c'];
const codes = [0, 1, 2, 0, 3, 4, 5, 5, 0];

/** The words as a dictionary of Arrow, whose third row is null by its own. */
const dictionary = makeData({
  type: new Dictionary(new Utf8(), new Int32()),
  length: codes.length,
  nullCount: 1,
  nullBitmap: Uint8Array.of(0b1111_1011, 1),
  data: Int32Array.from(codes),
  dictionary: new Vector([column('utf8', words)]) as Vector<Utf8>,
});
const byCode = (cells: readonly Cell[], ofNull: Cell = null) =>
  codes.map((code, row) => (row === 2 ? ofNull : cells[code]));

const plain = batchOf({ t: column('utf8', words), n: column('int32', [1, 2, 0, 3, -1, 5]) });
const coded = batchOf({ t: dictionary });

describe.each([
  ['lower(t)', ['drama', '  über ', '', null, '😀z', 'a%b_c']],
  ['upper(t)', ['DRAMA', '  ÜBER ', '', null, '😀Z', 'A%B_C']],
  ['trim(t)', ['Drama', 'Über', '', null, '😀z', 'a%b_c']],
  ['length(t)', [5n, 7n, 0n, null, 2n, 5n]],
  ["concat(t, '!')", ['Drama!', '  Über !', '!', null, '😀z!', 'a%b_c!']],
  ['t || null', [null, null, null, null, null, null]],
  ['substring(t, 2, 3)', ['ram', ' Üb', '', null, 'z', '%b_']],
  ['substring(t, -2)', ['ma', 'r ', '', null, '😀z', '_c']],
  ['substring(t, -9, 5)', ['D', '  Ü', '', null, '', 'a']],
  ['substring(t, 0, 1)', ['D', ' ', '', null, '😀', 'a']],
  ["replace(t, 'a', '$&')", ['Dr$&m$&', '  Über ', '', null, '😀z', '$&%b_c']],
  ["contains(t, 'ram')", [true, false, false, null, false, false]],
  ["starts_with(t, 'D')", [true, false, false, null, false, false]],
  ["ends_with(t, '')", [true, true, true, null, true, true]],
  ["t like 'a%'", [false, false, false, null, false, true]],
  [String.raw`t like 'a\%b\_c'`, [false, false, false, null, false, true]],
  ["t like '_z'", [false, false, false, null, true, false]],
  ["t not like '%r%'", [false, false, true, null, true, true]],
  ["t ~ '^[a-zA-Z]+$'", [true, false, false, null, false, false]],
  ["t = 'Drama'", [true, false, false, null, false, false]],
  ["t >= 'b'", [false, false, false, null, true, false]],
  ["t in ('', 'Drama')", [true, false, true, null, false, false]],
  ["coalesce(t, '-')", ['Drama', '  Über ', '', '-', '😀z', 'a%b_c']],
  ["greatest(t, 'E')", ['E', 'E', 'E', 'E', '😀z', 'a%b_c']],
  ['t is null', [false, false, false, true, false, false]],
  ["regexpExtract(t, '([a-z])([a-z_]*)')", ['rama', 'ber', '', null, 'z', 'a']],
  ["regexpExtract(t, '([a-z])(m|_)?', 2)", ['', '', '', null, '', '']],
  ["regexpReplace(t, '([a-z])(.)', '$2\\$$1')", ['Da$ra$m', '  Üe$b $r', '', null, '😀z', '%$a_$bc']],
  ["regexpReplace(t, '', '-')", ['-D-r-a-m-a-', '- - -Ü-b-e-r- -', '-', null, '-😀-z-', '-a-%-b-_-c-']],
  ["splitPart(t, 'b', -1)", ['Drama', 'er ', '', null, '😀z', '_c']],
  ["splitPart(t, 'b', 3)", ['', '', '', null, '', '']],
])('%s', (text, expected) => {
  it('of texts', () => expect(evaluated(text, plain)).toEqual(expected));
  it('of a dictionary', () => expect(evaluated(text, coded)).toEqual(byCode(expected, expected[3])));
});

it('JSON is read by a path', () => {
  const texts = [
    '{"a":[{"b c":"x"},1.50,12345678901234567890]}',
    '{"a":null,"__proto__":{"a":[2]}}',
    '[1]',
    null,
    'x',
  ];
  const batch = batchOf({ t: column('utf8', texts) });
  const at = (path: string) => evaluated(`jsonText(t, '${path}', 'null')`, batch);
  expect(at('$.a[0]."b c"')).toEqual(['x', null, null, null, null]);
  expect(at('a[1]')).toEqual(['1.50', null, null, null, null]);
  expect(at('a[2]')).toEqual(['12345678901234567890', null, null, null, null]);
  expect(at('$[0]')).toEqual([null, null, '1', null, null]);
  expect(at('$.a')).toEqual(['[{"b c":"x"},1.50,12345678901234567890]', null, null, null, null]);
  expect(at('constructor')).toEqual([null, null, null, null, null]);
  expect(() => evaluated("jsonText(t, '$.a')", batch)).toThrow(/'x' is not JSON/);
  expect(() => evaluated("jsonText(t, '$..a')", batch)).toThrow(/no path|not a path of JSON/);
  expect(() => evaluated("regexpExtract(t, '(a)', 2)", batch)).toThrow(/has no group 2/);
  expect(() => evaluated("regexpReplace(t, 'a', '$1')", batch)).toThrow(/has no group 1/);
});

it('functions of two columns go by row', () => {
  expect(evaluated('substring(t, n)', plain)).toEqual(['Drama', ' Über ', '', null, 'z', 'c']);
  expect(evaluated('concat(t, t)', coded).slice(0, 2)).toEqual(['DramaDrama', '  Über   Über ']);
});

describe('like', () => {
  const matches = (text: string, pattern: string) =>
    evaluated(`t like '${pattern}'`, batchOf({ t: column('utf8', [text]) }))[0];

  it('equals a regular expression on random texts and patterns', () => {
    const random = new CounterRandom(7);
    let drawn = 0;
    const below = (bound: number) => Math.floor(bound * uniform(random.u32(drawn++)));
    const draw = (from: readonly string[], most: number) =>
      Array.from({ length: below(most) }, () => from[below(from.length)]).join('');
    for (let i = 0; i < 600; i++) {
      const text = draw(['a', 'b', '😀', '\n', '%', '_', '.'], 8);
      const pattern = draw(['a', 'b', '😀', '%', '%', '_', '_', '.', String.raw`\%`, String.raw`\_`], 8);
      const source = pattern
        .replaceAll('.', String.raw`\.`)
        .replaceAll(/(?<!\\)%/g, '.*')
        .replaceAll(/(?<!\\)_/g, '.')
        .replaceAll(/\\([%_])/g, '$1');
      expect([text, pattern, matches(text, pattern)]).toEqual([
        text,
        pattern,
        new RegExp(`^${source}$`, 'su').test(text),
      ]);
    }
  });

  it('takes linear time for any number of %', () => {
    expect(matches('a'.repeat(20_000), `${'%a'.repeat(50)}%b`)).toBe(false);
    expect(matches('ab'.repeat(20_000), `${'%_a'.repeat(50)}%c`)).toBe(false);
  });
});

it('texts are in the order of their UTF-8, also beyond U+FFFF', () => {
  const order = batchOf({ t: column('utf8', ['\uFF5E', '😀', 'a', 'ab']) });
  expect(evaluated("t < '😀'", order)).toEqual([true, false, true, true]);
  expect(evaluated("t < 'ab'", order)).toEqual([false, false, true, false]);
});

it('a regular expression takes linear time, and one that could not is refused', () => {
  const texts = batchOf({ t: column('utf8', [`${'a'.repeat(40)}b`, 'a'.repeat(40), '😀 A']) });
  expect(evaluated("t ~ '(a+)+$'", texts)).toEqual([false, true, false]);
  expect(evaluated("t ~ '^(a|aa)+$'", texts)).toEqual([false, true, false]);
  expect(evaluated(String.raw`t ~ '^\u{1F600} \u0041$'`, texts)).toEqual([false, false, true]);
  for (const pattern of [String.raw`(a)\1`, '(?=a)', '(?<!a)b'])
    expect(() => selected(`t ~ '${pattern}'`, texts)).toThrow('RE2 has no look-around');
});

it('a bad regular expression is an error before any row, and so is one that is no constant', () => {
  expect(() => selected("t ~ '('", plain)).toThrow("'(' is not a regular expression of RE2");
  expect(() => selected('t ~ t', plain)).toThrow(
    '"t ~ t" does not fit text ~ \'constant\': t is utf8, t is utf8',
  );
});
