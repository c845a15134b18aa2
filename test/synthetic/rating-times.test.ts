import { expect, it } from 'vitest';
import { scalePreset } from '../../synthetic/preset.ts';
import { findPreset } from '../../synthetic/presets.ts';
import { generateRatings, type GenerateOptions } from '../../synthetic/ratings/rating-generator.ts';
import { buildRatingTables } from '../../synthetic/ratings/rating-tables.ts';

const tables = buildRatingTables(scalePreset(findPreset('movielens20m'), 0.001), 7);

/** The columns of the training part, row by row; times by user. */
function generated(options: GenerateOptions) {
  const rows: string[] = [];
  const times = new Map<number, number[]>();
  for (const { part, batch } of generateRatings(tables, options)) {
    if (part !== 'train') continue;
    for (const { user, item, rating, timestamp } of batch) {
      rows.push(`${user} ${item} ${rating}`);
      times.set(user, [...(times.get(user) ?? []), Number(timestamp)]);
    }
  }
  return { rows, times };
}

it('ratings have times on demand, which ascend with a user and change nothing else', () => {
  const { rows, times } = generated({ timestamps: true });
  const all = [...times.values()].flat();
  expect(times).toEqual(generated({ timestamps: true, parts: ['train'], batchSize: 100 }).times);
  expect(Math.min(...all)).toBeGreaterThan(Date.UTC(2014, 11) / 1000);
  expect(Math.max(...all)).toBeLessThan(Date.UTC(2025, 0) / 1000);
  expect(new Set(all).size).toBeGreaterThan(0.9 * all.length);
  for (const own of times.values()) expect(own).toEqual(own.toSorted((a, b) => a - b));
  expect(rows).toEqual(generated({}).rows);
});
