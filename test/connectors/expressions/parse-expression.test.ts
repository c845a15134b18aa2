import { describe, expect, it, test } from 'vitest';
import { parseExpression } from '../../../connectors/expressions/parse-expression.ts';
import { UsageError } from '../../../engine/errors.ts';
import { type Call, call, depthOf, literal } from '../../../engine/expressions/expression.ts';
import { print } from '../../../engine/expressions/print.ts';
import { CounterRandom } from '../../../engine/random.ts';
import { kinds, RandomExpressions } from '../../engine/expressions/random-expressions.ts';

/** A text, and how it is printed: names keep their case, parentheses are the fewest. */
test.each([
  ["rating >= 3.5 AND ts < '2024-01-01'", "rating >= 3.5 and ts < '2024-01-01'"],
  [
    'user = 5 or not (item in (1, -2)) and userId IS NOT NULL',
    'user = 5 or not item in (1, -2) and userId is not null',
  ],
  ['a not in (1)', 'not a in (1)'],
  ['a not between 1 and 2', 'not (a >= 1 and a <= 2)'],
  ["`a b` like 'b%' and \"c\"\"d\" ~ 'x' and e rlike 'f'", `"a b" like 'b%' and "c""d" ~ 'x' and e ~ 'f'`],
  ['"null" is null', '"null" is null'],
  ['"a*b" * `*` > 3', '"a*b" * "*" > 3'],
  ['case a when 1 then 2 end', 'case when a = 1 then 2 end'],
  ["if(a > 1, 'x', 'y')", "case when a > 1 then 'x' else 'y' end"],
  ['cast(x as BIGINT) + try_cast((y + 1) as double)', 'cast(x as int64) + try_cast(y + 1 as float64)'],
  ['x::int', 'cast(x as int32)'],
  ["date '2020-01-01' < timestamp", "date '2020-01-01' < timestamp"],
  ["lower(a) || 'it''s'", "concat(lower(a), 'it''s')"],
  ['-a - -5 - (b - c) * (d + e) / f', '-a - -5 - (b - c) * (d + e) / f'],
  ['-(a + b) <> -c', '-(a + b) != -c'],
  ['9223372036854775807 = -9223372036854775808', '9223372036854775807 = -9223372036854775808'],
  ['1e3 + 1.5E-3 + 2.0', '1000.0 + 0.0015 + 2.0'],
  ['a <=> null', 'a <=> null'],
  ['IS_NAN(a) or startswith(b, c) or Starts_With(b, c)', 'isNaN(a) or startsWith(b, c) or startsWith(b, c)'],
  ["date_trunc('month', ts)", "truncate(ts, 'month')"],
  ['(a and b) and (c or d)', 'a and b and (c or d)'],
  ['(a > 1) is null = b', '((a > 1) is null) = b'],
  ['(a = b) is not null', '(a = b) is not null'],
  ['Größe > 1', '"Größe" > 1'],
])('%s', (text, printed) => {
  const tree = parseExpression(text);
  expect(print(tree)).toBe(printed);
  expect(parseExpression(printed)).toEqual(tree);
});

test.each([
  ['', 'it ends too early'],
  ['rating >= ', '"rating >= " is not an expression: it ends too early'],
  ['rating = = 3', 'unexpected ='],
  ['rating 3', 'unexpected 3'],
  ["title = 'x", 'it ends too early, or a quote is open'],
  ['a; b', 'unexpected ;'],
  ['12abc > 1', 'unexpected abc'],
  ['count(*)', '* is not supported'],
  ['a ^ 2', '(a ^ (2)) is not supported'],
  ['a is true', '(a IS TRUE) is not supported'],
  ['cast(a as flot)', 'there is no type flot. Did you mean float? The types are: null, bool'],
])('%j is refused', (text, message) => {
  expect(() => parseExpression(text)).toThrow(UsageError);
  expect(() => parseExpression(text)).toThrow(message);
});

it('what is printed is read as the same tree, of random expressions', () => {
  const seed = new CounterRandom(5);
  let draws = 0;
  const random = new RandomExpressions(() => seed.uniform(draws++));
  for (let n = 0; n < 300; n++) {
    const printed = print(parseExpression(random.draw(kinds[n % kinds.length], n % 5)[0]));
    expect(print(parseExpression(printed))).toBe(printed);
  }
});

describe('a long list of constants', () => {
  const constants = [
    '1',
    '-2',
    '3.5',
    '.5',
    '-0.25',
    '1e3',
    '12345678901234567890',
    "'it''s'",
    "'a, (b'",
    "''",
  ];

  it('is read as a short one is', () => {
    for (const constant of constants) {
      const short = parseExpression(`x in (${constant})`) as Call;
      const long = parseExpression(`x IN( ${Array(20).fill(constant).join(' ,')} ) and y = 1`) as Call;
      const [x, value] = short.args;
      expect(long.args[0]).toEqual({ ...short, args: [x, ...Array(20).fill(value)] });
    }
  });

  it('takes linear time and memory', () => {
    const list = Array.from({ length: 20_000 }, (_, i) => i).join(', ');
    const parsed = parseExpression(`not x in (${list}) or x not in (${list})`);
    expect(JSON.stringify(parsed).split('literal').length - 1).toBe(40_000);
  });

  it('may not be written by its mark', () => {
    expect(() => parseExpression('x in ("constants as written"(3))')).toThrow('not supported');
  });
});

describe('many terms', () => {
  const terms = Array.from({ length: 20_000 }, (_, i) => i);

  it.each(['or', 'and'])('of %s are a balanced tree in their order, added at either end', (name) => {
    const one = (i: number) => call('=', { kind: 'column', name: 'a' }, literal(i));
    const text = terms.map((i) => `a = ${i}`).join(` ${name} `);
    const after = terms.map(one).reduce((all, term) => call(name, all, term));
    const before = terms.map(one).reduceRight((all, term) => call(name, term, all));
    for (const made of [after, before]) {
      expect(print(made)).toBe(text);
      expect(depthOf(made)).toBeLessThan(20);
    }
  });

  it('are read from text as they are made by calls', () => {
    const text = terms.slice(0, 1000).join(' = a or ') + ' = a';
    const parsed = parseExpression(text);
    expect(print(parsed)).toBe(text);
    expect(depthOf(parsed)).toBeLessThan(20);
  });
});

describe('an expression of 500 levels', () => {
  const nested = (levels: number): Record<string, string> => {
    const n = levels - 1;
    return {
      not: `${'not '.repeat(n)}b`,
      function: `${'abs('.repeat(n)}a${')'.repeat(n)}`,
      sum: Array(levels).fill('a').join(' + '),
      conditions: `${'case when '.repeat(n)}b${' then true end'.repeat(n)}`,
      list: `${'a in ('.repeat(n)}1${')'.repeat(n)}`,
    };
  };

  it.each(Object.keys(nested(1)))('is the deepest: %s', (name) => {
    expect(depthOf(parseExpression(nested(500)[name]))).toBe(500);
    const read = () => parseExpression(nested(501)[name]);
    expect(read).toThrow(UsageError);
    expect(read).toThrow('nested more than 500 levels deep');
  });

  it('may have any number of parentheses, which are no levels', () => {
    expect(print(parseExpression(`${'('.repeat(1000)}a${')'.repeat(1000)}`))).toBe('a');
  });
});
