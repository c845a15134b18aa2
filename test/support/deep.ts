/**
 * `npm test` takes samples of large sets of cases, and `npm run test:deep` takes all of them. The deep run has the
 * test files that import this file or gpu/run-checks.ts: processes.ts finds them.
 */
import { mix32 } from '../../engine/random.ts';

/** True in `npm run test:deep`. */
export const isDeep = process.env.FACTORFLOW_TEST_DEEP === 'true';

type Value = string | number | boolean;
/** What a case is made of, for example { kernel: 'gram', rank: 'a multiple of 16', biases: true }. */
export type Factors = Readonly<Record<string, Value>>;

/**
 * Cases in which every pair of values of two factors that any case has occurs at least once; all cases in the deep
 * run. Few values per factor make a small sample: take classes of ranks, not ranks.
 */
export const byPairs = <Case>(cases: readonly Case[], factorsOf: (item: Case) => Factors): Case[] =>
  covering(cases, (item) => {
    const values = valuesOf(factorsOf(item));
    return values.flatMap((value, at) => [
      value,
      ...values.slice(at + 1).map((other) => `${value} ${other}`),
    ]);
  });

/**
 * Cases in which every value of every factor occurs at least once, or the `most` that have the most of them; all cases
 * in the deep run.
 */
export const byValues = <Case>(
  cases: readonly Case[],
  factorsOf: (item: Case) => Factors,
  most = Infinity,
): Case[] => covering(cases, (item) => valuesOf(factorsOf(item)), most);

const valuesOf = (factors: Factors): string[] =>
  Object.entries(factors).map(([name, value]) => `${name}=${value}`);

/** Cases that cover all texts: the next one has the most new texts, and random numbers decide between equals. */
function covering<Case>(
  cases: readonly Case[],
  textsOf: (item: Case) => readonly string[],
  most = Infinity,
): Case[] {
  if (isDeep) return [...cases];
  const missing = cases.map((item) => new Set(textsOf(item)));
  const taken = new Set<number>();
  for (;;) {
    const next = cases
      .map((_, at) => at)
      .reduce((a, b) =>
        missing[b].size > missing[a].size ||
        (missing[b].size === missing[a].size && mix32(1, b) > mix32(1, a))
          ? b
          : a,
      );
    if (missing[next].size === 0 || taken.size === most) return cases.filter((_, at) => taken.has(at));
    taken.add(next);
    const covered = [...missing[next]];
    for (const texts of missing) for (const text of covered) texts.delete(text);
  }
}

/** All combinations of the factors' values: `product({ rank: [1, 9], biases: [true, false] })` has four. */
export function product<Sets extends Readonly<Record<string, readonly Value[]>>>(
  sets: Sets,
): { [Name in keyof Sets]: Sets[Name][number] }[] {
  return Object.entries(sets).reduce<Record<string, Value>[]>(
    (made, [name, values]) => made.flatMap((item) => values.map((value) => ({ ...item, [name]: value }))),
    [{}],
  ) as { [Name in keyof Sets]: Sets[Name][number] }[];
}

/** All cases in the deep run; in `npm test` every `step`-th, starting at `from`, and at least one. */
export const everyNth = <Case>(cases: readonly Case[], step: number, from = 0): readonly Case[] =>
  isDeep ? cases : cases.filter((_, at) => at % step === from % Math.min(step, cases.length));

/** How many random cases a test draws: in `npm test` a third. */
export const sampleSize = (count: number): number => (isDeep ? count : Math.ceil(count / 3));
