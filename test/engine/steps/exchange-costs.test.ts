import { describe, expect, it } from 'vitest';
import type { Place } from '../../../engine/plan/place.ts';
import { exchangeCost, bytesByLink, type Links } from '../../../engine/run/exchanges/cost.ts';

const gpus = (count: number): Place[] => Array.from({ length: count }, (_, n) => `gpu:${n}`);

/** Devices in groups: `near` inside a group, `far` across. */
function links(groups: number, each: number, [near, far]: readonly [number, number], duplex = true): Links {
  const places = gpus(groups * each);
  return {
    places,
    duplex,
    bytesPerSecond: places.map((_, from) =>
      places.map((__, to) => (Math.floor(from / each) === Math.floor(to / each) ? near : far)),
    ),
  };
}

describe('bytes and seconds of an exchange', () => {
  const flat = links(2, 2, [8, 8]);
  const near = links(2, 2, [8, 2]);
  const groupsOf = (places: readonly Place[], each: number) => [places.slice(0, each), places.slice(each)];
  const cost = (
    how: 'all-gather' | 'reduce-to-one' | 'reduce-scatter',
    over: Links,
    bytes: number,
    groups?: readonly (readonly Place[])[],
  ) => exchangeCost({ how, bytes, places: over.places, ...(groups ? { groups } : {}) }, over);

  it('are those of cuMF, Figure 5, on 2 x 2 devices', () => {
    // One device takes three times 64 bytes at 8 a second; with its share each of four takes three times 16.
    expect(cost('reduce-to-one', flat, 64).seconds).toBe(24);
    expect(cost('reduce-scatter', flat, 64).seconds).toBe(6);
    // Of its three 16 bytes, two cross at 2 a second.
    expect(cost('reduce-scatter', near, 64).seconds).toBe(2 + 16);
    // Two near ones, then one that crosses.
    const two = cost('reduce-scatter', near, 64, groupsOf(near.places, 2));
    expect(two.seconds).toBe(4 + 8);
    expect(two.transfers.filter(({ phase }) => phase === 0)).toHaveLength(8);
    expect(bytesByLink(two.transfers)).toEqual({
      'gpu:1 > gpu:0': 32,
      'gpu:3 > gpu:2': 32,
      'gpu:2 > gpu:0': 16,
      'gpu:0 > gpu:1': 32,
      'gpu:2 > gpu:3': 32,
      'gpu:3 > gpu:1': 16,
      'gpu:0 > gpu:2': 16,
      'gpu:1 > gpu:3': 16,
    });
  });

  it('grow with what crosses on 2 x 4 devices', () => {
    const eight = links(2, 4, [8, 2]);
    // Slices of 8 bytes: three near and four that cross; in two phases three near for each of two groups and
    // one that crosses.
    expect(cost('reduce-scatter', eight, 64).seconds).toBe(3 + 16);
    expect(cost('reduce-scatter', eight, 64, groupsOf(eight.places, 4)).seconds).toBe(6 + 4);
    expect(cost('reduce-to-one', eight, 64).seconds).toBe(3 * 8 + 4 * 32);
  });

  it('count both ways where one thread does both', () => {
    const [duplex, half] = [true, false].map((both) => links(1, 2, [8, 8], both));
    expect(cost('all-gather', duplex, 64).seconds).toBe(4);
    expect(cost('all-gather', half, 64).seconds).toBe(8);
    expect(bytesByLink(cost('all-gather', half, 64).transfers)).toEqual({
      'gpu:0 > gpu:1': 32,
      'gpu:1 > gpu:0': 32,
    });
  });

  it('names a link that is not known', () => {
    expect(() => exchangeCost({ how: 'all-gather', bytes: 8, places: gpus(3) }, flat)).not.toThrow();
    expect(() => exchangeCost({ how: 'all-gather', bytes: 8, places: ['gpu:0', 'gpu:9'] }, flat)).toThrow(
      'no link is known from gpu:0 to gpu:9',
    );
  });
});
