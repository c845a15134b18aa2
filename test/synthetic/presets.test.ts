/**
 * The promises of each preset on part of its users: few enough for a test, many enough for its statistics.
 */
import { describe, expect, it } from 'vitest';
import { buildRatingTables, degreeSequence } from '../../synthetic/ratings/rating-tables.ts';
import { summarizeDegrees } from '../../synthetic/dataset/dataset-description.ts';
import { expectedLevel } from '../../synthetic/ratings/planted-model.ts';
import { scalePreset } from '../../synthetic/preset.ts';
import { findPreset, presetNames } from '../../synthetic/presets.ts';
import { generateRatings } from '../../synthetic/ratings/rating-generator.ts';
import { RatingStatistics } from '../../synthetic/ratings/rating-statistics.ts';
import { everyNth } from '../support/deep.ts';
import { userRanges } from '../../synthetic/dataset/generate-dataset.ts';
import { createHash } from 'node:crypto';

/**
 * [mean, median, maximum] of both parts together, and bands of the best predictor's RMSE and of the ratings'
 * deviation.
 */
const promised: Readonly<
  Record<string, { users: readonly number[]; best: readonly number[]; deviation: readonly number[] }>
> = {
  movielens20m: { users: [144.41, 68, 9200], best: [0.685, 0.705], deviation: [0.98, 1.04] },
  netflix: { users: [209.25, 92.5, 15_200], best: [0.76, 0.785], deviation: [1.04, 1.11] },
  yahoomusic: { users: [256.55, 75, 119_400], best: [17.6, 19], deviation: [27, 31] },
  hugewiki: { users: [61.92, 37, 4_850], best: [0.42, 0.44], deviation: [0.6, 0.85] },
  movielens10m: { users: [139.73, 69, 7_290], best: [0.685, 0.705], deviation: [0.98, 1.04] },
  yahoor1: { users: [59.73, 24, 19_800], best: [17.6, 19], deviation: [27, 31] },
  yahoor4: { users: [29.02, 19, 1_160], best: [0.75, 0.8], deviation: [0.95, 1.1] },
  delicious: { users: [5, 2.5, 1_320], best: [0.74, 0.8], deviation: [0.95, 1.15] },
};

const within = (value: number, [low, high]: readonly number[]) => {
  expect(value).toBeGreaterThan(low);
  expect(value).toBeLessThan(high);
};

describe('every preset', () => {
  it('has its promises tested here', () => {
    expect(Object.keys(promised).sort()).toEqual([...presetNames].sort());
  });

  // 50 million degrees take seconds; a 25th of them has the same law, with a lower end of the tail.
  it.each(everyNth(presetNames, 3, 1))('%s: users rate as much as they should', (name) => {
    const preset =
      name === 'hugewiki'
        ? { ...findPreset(name), users: 2_003_304, train: 122_792_719, test: 1_253_116 }
        : findPreset(name);
    const degrees = degreeSequence(preset.users, preset.train + preset.test, preset.degrees);
    const { mean, median, maximum } = summarizeDegrees(degrees);
    const [meanGoal, medianGoal, maximumGoal] = promised[name].users;
    expect(mean).toBeCloseTo(meanGoal, 1);
    expect(Math.abs(median - medianGoal)).toBeLessThan(1);
    expect(Math.abs(maximum / maximumGoal - 1)).toBeLessThan(0.1);
    expect(degrees[0]).toBe(preset.degrees.minimum);
  });

  it.each(everyNth(presetNames, 3))(
    '%s: ratings spread as they should, and leave the error they should',
    (name) => {
      const base = findPreset(name);
      const preset = scalePreset(base, 60_000 / (base.train + base.test));
      const tables = buildRatingTables(preset, 1);
      const statistics = new RatingStatistics(preset);
      for (const _ of generateRatings(tables, { statistics })) continue;
      // The preset with the fewest test ratings here, yahoomusic, has 900.
      const [low, high] = promised[name].best;
      within(statistics.bestTestRmse, [low * 0.95, high * 1.05]);
      within(statistics.ratings.deviation, [
        promised[name].deviation[0] * 0.95,
        promised[name].deviation[1] * 1.05,
      ]);
      const items = summarizeDegrees(statistics.itemDegrees);
      expect(items.maximum).toBeGreaterThan(3 * items.mean);
      expect(items.median).toBeLessThan(items.mean);
    },
  );
});

describe('netflix', () => {
  it('has the items of the Netflix Prize: some rated by all users, most by few', () => {
    const preset = findPreset('netflix');
    const tables = buildRatingTables(preset, 1);
    const users = { first: 0, end: 4000 };
    const statistics = new RatingStatistics(preset);
    for (const _ of generateRatings(tables, { statistics, users })) continue;
    const share = preset.users / users.end;
    const { mean, maximum } = summarizeDegrees(statistics.itemDegrees);
    within(maximum * share, [195_000, 225_000]);
    // In a sample, where items have only a few ratings, the mean is more informative than the median.
    within(mean * share, [4_800, 6_500]);
    within(statistics.bestTestRmse, [0.75, 0.79]);
  });

  it('has exactly the ratings of its two parts', () => {
    const { train, test } = findPreset('netflix');
    expect([train, test]).toEqual([99_072_112, 1_408_395]);
  });
});

describe('the best predictor of fine scales', () => {
  it('sums the levels as if one by one', () => {
    const scale = { minimum: 1, maximum: 100, step: 1 };
    for (const noise of [4, 20, 60]) {
      for (const signal of [-80, 0.5, 1, 37.2, 50, 99, 100.5, 240]) {
        // 99 thresholds, each split in a scale that is coarse for its noise: the same sum without the
        // shortcut.
        let sum = 0;
        for (let level = 0; level < 99; level++)
          sum += expectedLevel((signal - 1.5 - level) / noise, 1, { minimum: -0.5, maximum: 0.5, step: 1 });
        expect(Math.abs(expectedLevel(signal, noise, scale) - sum)).toBeLessThan(1e-6);
      }
    }
  });
});

describe('ranges of users', () => {
  it('follow from the size alone, and cover each user once', () => {
    for (const name of presetNames) {
      const preset = findPreset(name);
      const ranges = userRanges(preset);
      expect(ranges[0].first).toBe(0);
      expect(ranges.at(-1)?.end).toBe(preset.users);
      for (let i = 1; i < ranges.length; i++) expect(ranges[i].first).toBe(ranges[i - 1].end);
    }
    expect(userRanges(findPreset('netflix'))).toHaveLength(24);
    expect(userRanges(findPreset('movielens20m'))).toHaveLength(8);
    expect(userRanges(findPreset('yahoor4'))).toHaveLength(1);
    expect(userRanges(scalePreset(findPreset('netflix'), 1e-6))).toHaveLength(1);
  });
});

/**
 * The presets at about 20,000 ratings with seed 7: rows, and the beginning of the SHA-256 of all columns.
 * Data sets that people keep depend on these bits.
 */
const golden: readonly (readonly [string, number, string])[] = [
  ['movielens20m', 19929, '49fbf1c01b28275f'],
  ['netflix', 20088, 'e6fe11522873c2a5'],
  ['yahoomusic', 20011, '1ebfdef281af1d59'],
  ['hugewiki', 20000, '0c2e15648a7e005b'],
  ['movielens10m', 19981, 'fedfbdf478f6837a'],
  ['yahoor1', 20009, '56e7dc49c106f2b2'],
  ['yahoor4', 19997, 'ca8cd092d5dc6dce'],
  ['delicious', 19999, '9bcc169ac2011d42'],
];

describe('the rows of a preset and seed are those of the first release', () => {
  it.each(golden)('%s', (name, rows, digest) => {
    const preset = findPreset(name);
    const shape = scalePreset(preset, Math.min(1, 20_000 / (preset.train + preset.test)));
    const hash = createHash('sha256');
    let count = 0;
    for (const { part, batch } of generateRatings(buildRatingTables(shape, 7))) {
      count += batch.numRows;
      hash.update(part);
      for (const { values } of batch.data.children)
        hash.update(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
    }
    expect([count, hash.digest('hex').slice(0, 16)]).toEqual([rows, digest]);
  });
});
