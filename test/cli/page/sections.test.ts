/** The first line of reports. */
import { describe, expect, it } from 'vitest';
import { errorVerdict, planVerdict, rankingVerdict, searchVerdict } from '../../../cli/report/verdict.ts';
import { type Trial, type RankingEvaluation, ItemNames } from '../../../index.ts';
import { rankingSection } from '../../../cli/page/sections/ranking.ts';
import { ownScale } from '../../../cli/page/sections/training.ts';
import { freePlaces, itemMapSection } from '../../../cli/page/sections/item-map.ts';
import { parseHTML } from 'linkedom';
import type { ItemMap } from '../../../api/reports/item-map.ts';
import { style } from '../../../cli/page/page.ts';

const baselines = (dampedMeans: number, mean: number) => ({
  dampedMeans: { rmse: dampedMeans, mae: 1 },
  mean: { rmse: mean, mae: 1 },
});

describe('the verdict on errors', () => {
  it('names the part by which the model is better than means', () => {
    expect(
      errorVerdict(0.9, baselines(1, 1.2), { pairs: 2000, coldPairs: 0, kind: 'held-out ratings' }),
    ).toEqual({
      tone: 'good',
      text: '10.0 % better than means of users and items',
      detail: 'RMSE 0.9000; the mean 1.2000, damped means 1.0000; on 2,000 held-out ratings.',
    });
  });

  it('gives the number of known pairs next to all of them', () => {
    const measured = { pairs: 10_084, coldPairs: 8794, kind: 'held-out ratings' } as const;
    expect(errorVerdict(0.9, baselines(1, 1.2), measured).detail).toMatch(
      /; on 1,290 of 10,084 held-out ratings\.$/,
    );
    expect(errorVerdict(0.9, undefined, measured).detail).toBe('1,290 of 10,084 pairs.');
  });

  it('says that the model is worse, or no better', () => {
    expect(
      errorVerdict(1.1, baselines(1, 1.2), { pairs: 10, coldPairs: 0, kind: 'held-out ratings' }),
    ).toMatchObject({ tone: 'bad', text: '10.0 % worse than means of users and items' });
    expect(
      errorVerdict(1.0001, baselines(1, 1.2), { pairs: 10, coldPairs: 0, kind: 'held-out ratings' }),
    ).toMatchObject({ tone: 'bad', text: 'No better than means of users and items' });
  });

  it('compares with the better one of the means', () => {
    expect(
      errorVerdict(1.1, baselines(1.3, 1), { pairs: 10, coldPairs: 0, kind: 'held-out ratings' }).text,
    ).toBe('10.0 % worse than the mean rating');
  });

  it('compares with nothing where means are absent or without error', () => {
    for (const means of [undefined, baselines(0, 0)])
      expect(errorVerdict(0.5, means, { pairs: 3, coldPairs: 0, kind: 'held-out ratings' })).toMatchObject({
        tone: 'plain',
        text: 'RMSE 0.5000 on held-out ratings',
      });
  });
});

describe('the verdict on rankings', () => {
  const metrics = { 'recall@10': 0.3, 'ndcg@10': 0.2 };

  it('compares NDCG with popularity', () => {
    expect(rankingVerdict(metrics, { 'recall@10': 0.1, 'ndcg@10': 0.1 }, 1500)).toEqual({
      tone: 'good',
      text: '2.00 times as good as popularity',
      detail: 'ndcg@10 0.2000; the most popular items for everyone 0.1000; over 1,500 users.',
    });
    expect(rankingVerdict(metrics, { 'recall@10': 0.1, 'ndcg@10': 0.4 }, 2)).toMatchObject({
      tone: 'bad',
      text: 'Worse than popularity: 0.50 times as good',
    });
    expect(rankingVerdict(metrics, metrics, 2)).toMatchObject({
      tone: 'bad',
      text: 'No better than popularity',
    });
    expect(rankingVerdict(metrics, { 'ndcg@10': 0 }, 2).text).toBe('Better than popularity');
    expect(rankingVerdict(metrics, { 'ndcg@10': 0.01 }, 2).text).toBe('20.0 times as good as popularity');
  });

  it('compares with nothing without popularity or users', () => {
    expect(rankingVerdict(metrics, undefined, 2)).toMatchObject({ tone: 'plain', text: 'ndcg@10 0.2000' });
    expect(rankingVerdict({}, {}, 0).text).toContain('no user is left');
    expect(rankingVerdict({ 'ndcg@10': Number.NaN }, {}, 0).text).toContain('no user is left');
  });
});

describe('the verdict on a search and a plan', () => {
  it('names the best trial', () => {
    const best = {
      number: 3,
      params: { rank: 8 },
      value: 0.9,
      iterations: 10,
      seconds: 1,
      baselines: baselines(1, 1.2),
    } as unknown as Trial;
    expect(searchVerdict(best, 12, 'rmse')).toEqual({
      tone: 'good',
      text: 'Trial 3 is the best of 12: rmse 0.9000',
      detail: '10.0 % better than means of users and items (1.0000).',
    });
    expect(searchVerdict(best, 12, 'ndcg@20').tone).toBe('plain');
    const ranking = {
      metrics: { 'ndcg@10': 0.1 },
      popularity: { 'ndcg@10': 0.2 },
      users: 30,
    } as unknown as NonNullable<Trial['ranking']>;
    expect(searchVerdict({ ...best, ranking }, 12, 'ndcg@20')).toMatchObject({
      tone: 'bad',
      detail: expect.stringMatching(
        /^Worse than popularity: 0\.50 times as good: ndcg@10 0\.1000; .* over 30 users\.$/,
      ),
    });
  });

  it('names the memory of each place', () => {
    expect(planVerdict({ host: 2048, cpu: 1024 }).text).toBe(
      'It fits: at most 2.0 KiB at host, 1.0 KiB at cpu',
    );
  });
});

const counts = {
  pairs: 4,
  coldUsers: 0,
  coldItems: 0,
  coldPairs: 0,
  leakedPairs: 0,
  repeatedPairs: 0,
  irrelevantPairs: 0,
  unknownExcluded: 0,
};
const found = (metrics: Record<string, number>, users: number): RankingEvaluation => ({
  ...counts,
  metrics,
  intervals: {},
  baselines: {},
  users,
  availableUsers: users,
  warnings: [],
});

describe('rankings of a page', () => {
  it('have no numbers where no user is left to rank', () => {
    const { text, charts, tables } = rankingSection(found({ 'ndcg@10': Number.NaN }, 0));
    expect([text, charts, tables]).toEqual([
      'No user is left to rank, so there are no metrics.',
      undefined,
      undefined,
    ]);
  });

  it('say that a metric has no value', () => {
    const { tables } = rankingSection(found({ 'ndcg@10': 0.5, auc: Number.NaN }, 2));
    expect(tables?.[0].rows).toEqual([
      ['ndcg@10', '0.5000', ''],
      ['auc', 'none', ''],
    ]);
  });
});

describe('a scale of its own', () => {
  it('leaves out a first value and rules that would flatten the others', () => {
    const { domain, has } = ownScale(
      [9, 0.9, 0.88, 0.87],
      [
        { name: 'the mean', value: 1.4 },
        { name: 'damped means', value: 0.92 },
      ],
    );
    expect(has(9)).toBe(false);
    expect(has(1.4)).toBe(false);
    expect([0.9, 0.88, 0.87, 0.92].map(has)).toEqual([true, true, true, true]);
    expect(domain[0]).toBeGreaterThan(0.8);
    expect(domain[1]).toBeLessThan(1);
  });

  it('has all of a few values, and a first one near the others', () => {
    expect([9, 0.9, 0.88].map(ownScale([9, 0.9, 0.88]).has)).toEqual([true, true, true]);
    expect(ownScale([0.95, 0.9, 0.88, 0.87]).has(0.95)).toBe(true);
  });

  it('shows differences of a thousandth as small', () => {
    const [least, most] = ownScale([1.0001, 1.0002, 1.0001, 1.0003]).domain;
    expect(most - least).toBeGreaterThan(0.009);
  });

  it.each([[[3]], [[0, 0, 0, 0]], [[0, 5e-324]], [[-2, -1]]])(
    'has a range for %j that a chart can divide',
    (values) => {
      const {
        domain: [least, most],
        has,
      } = ownScale(values);
      expect(most - least).toBeGreaterThan(1e-9);
      expect(values.every(has)).toBe(true);
    },
  );
});

const size = { width: 400, height: 300 };

describe('labels', () => {
  it('of earlier points take the room', () => {
    expect([
      ...freePlaces(
        [
          { left: 10, top: 50, letters: 12 },
          { left: 12, top: 52, letters: 12 },
          { left: 12, top: 70, letters: 12 },
        ],
        size,
      ),
    ]).toEqual([0, 2]);
  });

  it('extend to the left in the right half', () => {
    expect([
      ...freePlaces(
        [
          { left: 99, top: 50, letters: 20 },
          { left: 75, top: 50, letters: 3 },
        ],
        size,
      ),
    ]).toEqual([0]);
    expect([
      ...freePlaces(
        [
          { left: 49, top: 50, letters: 10 },
          { left: 51, top: 50, letters: 10 },
        ],
        size,
      ),
    ]).toEqual([0, 1]);
  });

  it('that do not fit are left out', () => {
    expect([
      ...freePlaces(
        [
          { left: 5, top: 50, letters: 80 },
          { left: 95, top: 50, letters: 80 },
        ],
        size,
      ),
    ]).toEqual([]);
    expect([...freePlaces([], size)]).toEqual([]);
  });
});

/** A map of `count` items, whose item k has the k-th genre. */
function mapOf(genres: readonly (string | null)[]) {
  const items = genres.map((_, item) => ({ item, x: item, y: item % 3, ratings: genres.length - item }));
  const map: ItemMap = { items, share: 1 };
  const names = new ItemNames(genres.map((genre, item) => [item, `Item ${item}`, genre] as const));
  const section = itemMapSection(map, items.length, names);
  const { document } = parseHTML(`<html><body>${section.drawing?.()?.outerHTML}</body></html>`);
  const dots = [...document.querySelectorAll('.map i')].toReversed();
  return {
    text: section.text,
    html: document.body.innerHTML,
    legend: [...document.querySelectorAll('.key')].map((key) => key.textContent),
    kinds: dots.map((dot) => /kind-\w+/.exec(dot.className)?.[0]),
    tips: dots.map((dot) => dot.getAttribute('data-tip')),
  };
}

const repeated = (genre: string | null, times: number) => Array.from({ length: times }, () => genre);

describe('the map of items', () => {
  it('has a colour for each of the seven most frequent genres, and grey for others and none', () => {
    const genres = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'].flatMap((genre, at) =>
      repeated(genre, 12 - at),
    );
    const map = mapOf([...genres, ...repeated(null, 3)]);
    expect(map.legend).toEqual(['a 12', 'b 11', 'c 10', 'd 9', 'e 8', 'f 7', 'g 6', 'other or none 12']);
    expect(map.kinds[0]).toBe('kind-0');
    expect(map.kinds.at(-4)).toBe('kind-none');
    expect(map.kinds.at(-1)).toBe('kind-none');
    expect(new Set(map.kinds).size).toBe(8);
    expect(map.tips[0]).toBe('Item 0\na\n75 ratings');
    expect(map.tips.at(-1)).toBe('Item 74\n1 rating');
    expect(map.text).toContain('Larger dots have more ratings.');
  });

  it('counts each item once, by its first genre', () => {
    expect(mapOf(['Drama|War', 'War|Drama', 'Drama, War', 'Drama']).legend).toEqual(['Drama 3', 'War 1']);
    expect(mapOf(['7', '7', '8', '8', null]).legend).toEqual(['7 2', '8 2', 'none 1']);
  });

  it('holds genres with markup as text', () => {
    const map = mapOf([...repeated('<img src=x onerror=alert(1)>', 3), ...repeated('"><b>&', 2)]);
    expect(map.legend).toEqual(['<img src=x onerror=alert(1)> 3', '"><b>& 2']);
    expect(map.tips[0]).toBe('Item 0\n<img src=x onerror=alert(1)>\n5 ratings');
    expect(parseHTML(map.html).document.querySelectorAll('img, b')).toHaveLength(0);
    expect(map.html.replaceAll(/ data-tip="[^"]*"/g, '')).not.toMatch(/<img|<b>/);
  });

  it.each([
    ['without genres', repeated(null, 10), ''],
    ['with one genre', repeated('Drama', 10), ''],
    [
      'with free text',
      Array.from({ length: 2000 }, (_, at) => `about ${at % 1001}`),
      '1,001 genres of 2,000 items are too many for colours.',
    ],
  ])('shows numbers of ratings %s', (_, genres, text) => {
    const map = mapOf(genres);
    expect(map.kinds.every((kind) => kind === undefined)).toBe(true);
    expect(map.legend.length).toBeGreaterThan(1);
    expect(map.text).toContain(text);
    expect(map.text).not.toContain('Larger dots');
  });
});

describe('colours of genres', () => {
  /**
   * Colours as they are seen, and without one kind of cone: rows for red, green and blue in linear light
   * (Machado et al., 2009).
   */
  const sights: Readonly<Record<string, readonly (readonly number[])[]>> = {
    full: [
      [1, 0, 0],
      [0, 1, 0],
      [0, 0, 1],
    ],
    protanopia: [
      [0.152286, 1.052583, -0.204868],
      [0.114503, 0.786281, 0.099216],
      [-0.003882, -0.048116, 1.051998],
    ],
    deuteranopia: [
      [0.367322, 0.860646, -0.227968],
      [0.280085, 0.672501, 0.047413],
      [-0.01182, 0.04294, 0.968881],
    ],
    tritanopia: [
      [1.255528, -0.076749, -0.178779],
      [-0.078411, 0.930809, 0.147602],
      [0.004733, 0.691367, 0.3039],
    ],
  };
  const product = (matrix: readonly (readonly number[])[], vector: readonly number[]) =>
    matrix.map((row) => row.reduce((sum, one, at) => sum + one * vector[at], 0));
  const linear = (colour: string) =>
    [1, 3, 5]
      .map((at) => (Number.parseInt(colour.slice(at, at + 2), 16) / 255 + 0.055) / 1.055)
      .map((part) => part ** 2.4);
  /** OKLab, a colour space with perceptually equal distances. */
  const oklab = (light: readonly number[]) => {
    const cones = product(
      [
        [0.41222, 0.53633, 0.05145],
        [0.2119, 0.6807, 0.1074],
        [0.0883, 0.28172, 0.62998],
      ],
      light.map((part) => Math.min(1, Math.max(0, part))),
    );
    return product(
      [
        [0.21045, 0.79362, -0.00407],
        [1.978, -2.42859, 0.45059],
        [0.0259, 0.78277, -0.80868],
      ],
      cones.map(Math.cbrt),
    );
  };
  const [light, dark] = ['0', '1', '2', '3', '4', '5', '6', 'none']
    .map((kind) =>
      [...style.matchAll(new RegExp(`--kind-${kind}: (#[0-9a-f]{6});`, 'g'))].map(([, colour]) => colour),
    )
    .reduce<[string[], string[]]>(
      ([all, others], [one, other]) => [
        [...all, one],
        [...others, other],
      ],
      [[], []],
    );

  it.each(Object.keys(sights))('differ by light and dark to readers with %s sight', (sight) => {
    for (const colours of [light, dark]) {
      const seen = colours.map((colour) => oklab(product(sights[sight], linear(colour))));
      const distances = seen.flatMap((one, at) =>
        seen.slice(at + 1).map((other) => Math.hypot(...one.map((part, axis) => part - other[axis]))),
      );
      expect(distances).toHaveLength(28);
      expect(Math.min(...distances)).toBeGreaterThan(0.1);
    }
  });
});
