/** Colours of the map of items by genre. */
import { parseHTML } from 'linkedom';
import { describe, expect, it } from 'vitest';
import type { ItemMap } from '../../../api/reports/item-map.ts';
import { style } from '../../../cli/page/page.ts';
import { itemMapSection } from '../../../cli/page/sections/item-map.ts';
import { ItemNames } from '../../../index.ts';

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
