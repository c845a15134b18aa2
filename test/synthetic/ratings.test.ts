import { describe, expect, it } from 'vitest';
import { generatedRatings } from '../../api/training/tune-ratings.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { summarizeDegrees } from '../../synthetic/dataset/dataset-description.ts';
import {
  buildRatingTables,
  degreeOf,
  degreeSequence,
  type RatingTables,
  testDegreeOf,
  userDegrees,
} from '../../synthetic/ratings/rating-tables.ts';
import { expectedLevel, normalCdf, PlantedUser } from '../../synthetic/ratings/planted-model.ts';
import { type RatingPart, scalePreset } from '../../synthetic/preset.ts';
import { findPreset } from '../../synthetic/presets.ts';
import { generateRatings, type GenerateOptions } from '../../synthetic/ratings/rating-generator.ts';
import { RatingStatistics } from '../../synthetic/ratings/rating-statistics.ts';
import { buildAliasTable, ItemSampler } from '../../synthetic/ratings/item-sampler.ts';
import { purposes, RandomStream } from '../../synthetic/ratings/random-stream.ts';

const movielens = findPreset('movielens20m');
const hundredth = scalePreset(movielens, 0.01);
const small = scalePreset(movielens, 0.001);

interface Columns {
  readonly users: Int32Array;
  readonly items: Int32Array;
  readonly ratings: Float32Array;
}

/** All rows of one part, in the order generated. */
function collect(tables: RatingTables, part: RatingPart, options: GenerateOptions = {}): Columns {
  const chunks: { user: Int32Array; item: Int32Array; rating: Float32Array }[] = [];
  for (const generated of generateRatings(tables, options)) {
    if (generated.part !== part) continue;
    const { batch } = generated;
    chunks.push({
      user: batch.getChild('user')?.toArray(),
      item: batch.getChild('item')?.toArray(),
      rating: batch.getChild('rating')?.toArray(),
    });
  }
  return {
    users: Int32Array.from(chunks.flatMap((chunk) => [...chunk.user])),
    items: Int32Array.from(chunks.flatMap((chunk) => [...chunk.item])),
    ratings: Float32Array.from(chunks.flatMap((chunk) => [...chunk.rating])),
  };
}

function concat(parts: readonly Columns[]): Columns {
  return {
    users: Int32Array.from(parts.flatMap((part) => [...part.users])),
    items: Int32Array.from(parts.flatMap((part) => [...part.items])),
    ratings: Float32Array.from(parts.flatMap((part) => [...part.ratings])),
  };
}

function statisticsOf(tables: RatingTables, options: GenerateOptions = {}): RatingStatistics {
  const statistics = new RatingStatistics(tables.preset);
  for (const _ of generateRatings(tables, { ...options, statistics })) continue;
  return statistics;
}

describe('generated ratings', () => {
  const tables = buildRatingTables(small, 7);

  it('are the same for the same seed, and others for another', () => {
    const once = collect(tables, 'train');
    expect(collect(buildRatingTables(small, 7), 'train')).toEqual(once);
    const other = collect(buildRatingTables(small, 8), 'train');
    expect(other.items).not.toEqual(once.items);
    const highBits = collect(buildRatingTables(small, 7 + 2 ** 40), 'train');
    expect(highBits.items).not.toEqual(once.items);
  });

  it('do not depend on the cut into ranges, the size of batches or the parts asked for', () => {
    const cuts = [0, 1, 50, 51, small.users];
    for (const part of ['train', 'test'] as const) {
      const whole = collect(tables, part);
      const ranges = cuts.slice(1).map((end, i) => ({ first: cuts[i], end }));
      expect(concat(ranges.map((users) => collect(tables, part, { users })))).toEqual(whole);
      expect(collect(tables, part, { batchSize: 97 })).toEqual(whole);
      expect(collect(tables, part, { parts: [part] })).toEqual(whole);
    }
  });

  it('are counted alike by any cut, added in any order', () => {
    const whole = statisticsOf(tables);
    const sum = new RatingStatistics(small);
    for (const users of [
      { first: 60, end: small.users },
      { first: 0, end: 17 },
      { first: 17, end: 60 },
    ])
      sum.add(statisticsOf(tables, { users }).toPartition());
    expect(sum.bestTestRmse).toBe(whole.bestTestRmse);
    expect(sum.ratings).toEqual(whole.ratings);
    expect(sum.itemDegrees).toEqual(whole.itemDegrees);
  });

  it('meet the totals exactly and repeat no pair', () => {
    const train = collect(tables, 'train');
    const test = collect(tables, 'test');
    expect([train.users.length, test.users.length]).toEqual([small.train, small.test]);
    const { users, items } = concat([train, test]);
    const degrees = new Int32Array(small.users);
    for (const user of users) degrees[user]++;
    expect(userDegrees(tables)).toEqual(degrees);
    expect(new Set(users.map((user, row) => user * small.items + items[row])).size).toBe(
      small.train + small.test,
    );
    expect(items.every((item) => item >= 0 && item < small.items)).toBe(true);
  });

  it('lie on the scale and use all of it', () => {
    const { ratings } = collect(tables, 'train');
    expect([...new Set(ratings)].sort()).toEqual([0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5]);
  });

  it('split every user in proportion, for items of any popularity', () => {
    for (let user = 0; user < small.users; user++) {
      expect(Math.abs(testDegreeOf(tables, user) - degreeOf(tables, user) / 10)).toBeLessThan(1.001);
    }
    const larger = buildRatingTables(hundredth, 7);
    const { weights } = larger.items;
    const mean = ({ items }: Columns) => items.reduce((sum, item) => sum + weights[item], 0) / items.length;
    const ratio = mean(collect(larger, 'test')) / mean(collect(larger, 'train'));
    expect(Math.abs(ratio - 1)).toBeLessThan(0.05);
  });
});

it('tuning reads the training part of a preset, again and again', async () => {
  const source = generatedRatings('movielens20m', 0.001);
  const { signal } = new AbortController();
  const { items } = collect(buildRatingTables(small, 0), 'train');
  for (let time = 0; time < 2; time++) {
    const pulled: number[] = [];
    for await (const batch of await source.execute({ signal } as ExecutionContext))
      pulled.push(...batch.getChild('item')?.toArray());
    expect(Int32Array.from(pulled)).toEqual(items);
  }
});

it('tuning ends soon after it is cancelled, while ratings are generated', async () => {
  const controller = new AbortController();
  const stream = await generatedRatings('movielens20m', 0.02).execute(
    controller as unknown as ExecutionContext,
  );
  setImmediate(() => controller.abort());
  const pull = async () => {
    for await (const _ of stream) continue;
  };
  await expect(pull()).rejects.toThrow('read: cancelled');
});

describe('the shape of movielens20m', () => {
  it('holds at a hundredth', () => {
    const tables = buildRatingTables(hundredth, 1);
    const statistics = statisticsOf(tables);
    const users = summarizeDegrees(userDegrees(tables));
    const items = summarizeDegrees(statistics.itemDegrees);
    expect(users.minimum).toBe(20);
    expect(users.mean).toBeCloseTo(144.41, 1);
    expect(users.median).toBeGreaterThan(60);
    expect(users.median).toBeLessThan(90);
    expect(users.maximum).toBeGreaterThan(1000);
    expect(users.maximum).toBeLessThanOrEqual(hundredth.degrees.maximum);
    expect(items.maximum).toBeGreaterThan(10 * items.mean);
    expect(items.median).toBeLessThan(items.mean / 3);
    expect(statistics.ratings.mean).toBeCloseTo(3.5, 0);
    expect(statistics.ratings.deviation).toBeGreaterThan(0.95);
    expect(statistics.ratings.deviation).toBeLessThan(1.08);
    expect(statistics.bestTestRmse).toBeGreaterThan(0.68);
    expect(statistics.bestTestRmse).toBeLessThan(0.71);
  });

  it('hides degree and popularity from the ids', () => {
    const tables = buildRatingTables(hundredth, 1);
    for (const degrees of [userDegrees(tables), statisticsOf(tables).itemDegrees]) {
      const half = degrees.length >> 1;
      const sum = (part: Int32Array) => part.reduce((a, b) => a + b, 0);
      expect(sum(degrees.subarray(0, half)) / sum(degrees)).toBeGreaterThan(0.4);
      expect(sum(degrees.subarray(0, half)) / sum(degrees)).toBeLessThan(0.6);
    }
  });

  it('has degrees that sum to the total at full size', () => {
    const degrees = degreeSequence(movielens.users, 20_000_000, movielens.degrees);
    expect(degrees.reduce((a, b) => a + b, 0)).toBe(20_000_000);
    expect(degrees[0]).toBe(20);
    expect(degrees[movielens.users >> 1]).toBe(68);
    expect(degrees[movielens.users - 1]).toBeGreaterThan(8_000);
  });

  it.each([1e-9, 1e-4, 0.0005, 0.003, 0.5, 2.5])('can be made at scale %d', (scale) => {
    const preset = scalePreset(movielens, scale);
    expect(Math.abs((preset.train + preset.test) / preset.users - 144.41)).toBeLessThan(0.5);
    expect(
      degreeSequence(preset.users, preset.train + preset.test, preset.degrees).at(-1),
    ).toBeLessThanOrEqual(preset.items / 2);
    if (scale > 0.001) return;
    const statistics = statisticsOf(buildRatingTables(preset, 3));
    expect([statistics.train, statistics.test]).toEqual([preset.train, preset.test]);
  });

  it('refuses what cannot be', () => {
    expect(() => findPreset('movielens')).toThrow(/unknown preset "movielens".*movielens20m/);
    for (const scale of [0, -1, NaN, Infinity, 1e6])
      expect(() => scalePreset(movielens, scale)).toThrow(/scale/);
    for (const seed of [-1, 0.5, 2 ** 53]) expect(() => buildRatingTables(small, seed)).toThrow(/seed/);
    expect(() => degreeSequence(10, 100, movielens.degrees)).toThrow(/outside 20/);
  });
});

describe('the best predictor', () => {
  /** A generator of other origin than ours: Lehmer's minimal standard and a sum of twelve. */
  function lehmer(seed: number): () => number {
    let state = seed;
    return () => {
      let sum = -6;
      for (let k = 0; k < 12; k++) sum += (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
      return sum;
    };
  }

  it('knows the mean of rounded, clipped ratings', () => {
    const { scale, model } = movielens;
    const noise = lehmer(1);
    for (const signal of [-1, 0.4, 2.25, 3.6, 4.9, 7]) {
      const draws = 100_000;
      let sum = 0;
      for (let n = 0; n < draws; n++)
        sum += Math.min(
          9,
          Math.max(0, Math.round((signal + model.noise * noise() - scale.minimum) / scale.step)),
        );
      expect(Math.abs(sum / draws - expectedLevel(signal, model.noise, scale))).toBeLessThan(0.02);
    }
    expect(expectedLevel(3.1, 0, scale)).toBe(5);
  });

  it('reports the error that repeated draws of the noise have around their mean', () => {
    const { model } = hundredth;
    const tables = buildRatingTables(hundredth, 5);
    const statistics = statisticsOf(tables);
    const { users, items } = collect(tables, 'test');
    const planted = new PlantedUser(hundredth, 5, tables.planted);
    const noise = lehmer(2);
    const draws = 40;
    let variance = 0;
    let user = -1;
    for (let row = 0; row < users.length; row++) {
      if (users[row] !== user) planted.aim((user = users[row]));
      const signal = planted.signal(items[row]);
      let sum = 0;
      let squares = 0;
      for (let n = 0; n < draws; n++) {
        const rating = Math.min(5, Math.max(0.5, Math.round(2 * (signal + model.noise * noise())) / 2));
        sum += rating;
        squares += rating * rating;
      }
      variance += (squares - (sum * sum) / draws) / (draws - 1);
    }
    expect(Math.abs(statistics.bestTestRmse - Math.sqrt(variance / users.length))).toBeLessThan(0.012);
  });

  it('has a distribution function that integrates the density', () => {
    let integral = 0.5;
    const h = 1e-3;
    const density = (x: number) => Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
    for (let k = 0; k < 8000; k++) {
      const x = k * h;
      integral += (h / 6) * (density(x) + 4 * density(x + h / 2) + density(x + h));
      expect(Math.abs(normalCdf(x + h) - integral)).toBeLessThan(1e-12);
      expect(normalCdf(-x - h)).toBeCloseTo(1 - integral, 12);
    }
    expect([normalCdf(0), normalCdf(40), normalCdf(-40)]).toEqual([0.5, 1, 0]);
  });
});

describe('times', () => {
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
});

describe('the item sampler', () => {
  const weights = Float64Array.of(1, 2, 4, 8, 16, 32);
  const random = new RandomStream(1, purposes.itemsOfUser);

  /** P(each item is among the first `count` of successive draws without replacement). */
  function inclusion(
    count: number,
    taken: readonly number[] = [],
    probability = 1,
    into = new Float64Array(6),
  ): Float64Array {
    for (const item of taken) if (taken.length === count) into[item] += probability;
    if (taken.length === count) return into;
    const left = weights.reduce((sum, weight, item) => (taken.includes(item) ? sum : sum + weight), 0);
    weights.forEach((weight, item) => {
      if (!taken.includes(item)) inclusion(count, [...taken, item], (probability * weight) / left, into);
    });
    return into;
  }

  it.each([1, 3, 5])('takes %d of 6 by successive draws, although most requests end as a race', (count) => {
    const sampler = new ItemSampler({ weights, table: buildAliasTable(weights) });
    const drawn = new Int32Array(6);
    const hits = new Float64Array(6);
    const requests = 40_000;
    for (let request = 0; request < requests; request++) {
      sampler.sample(count, random.aim(request), drawn);
      for (const item of drawn.subarray(0, count)) hits[item]++;
    }
    const expected = inclusion(count);
    for (let item = 0; item < 6; item++)
      expect(Math.abs(hits[item] / requests - expected[item])).toBeLessThan(0.01);
  });

  it('ends when all of a steep catalogue is wanted', () => {
    const steep = Float64Array.from({ length: 3000 }, (_, rank) => (rank + 1) ** -4);
    const all = new Int32Array(3000);
    new ItemSampler({ weights: steep, table: buildAliasTable(steep) }).sample(3000, random.aim(0), all);
    expect(all.sort()).toEqual(Int32Array.from(steep, (_, item) => item));
  });
});
