import type { Triples } from './worker-parent.ts';

/**
 * Ratings by a planted signal over scattered ids, the same at each call: users 3, 10, 17, .. and items 1, 6,
 * 11, ...
 */
export function numberedRatings(count: number, { users = 120, items = 70, scale = 1 } = {}): Triples {
  let state = 12345;
  const next = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  const taste = (k: number) => Math.sin(k * 1.7) + Math.cos(k * 0.9);
  const seen = new Set<number>();
  const triples = { users: [] as number[], items: [] as number[], ratings: [] as number[] };
  while (triples.users.length < count) {
    const [u, v] = [Math.floor(next() * users), Math.floor(next() ** 2 * items)];
    if (seen.has(u * items + v)) continue;
    seen.add(u * items + v);
    triples.users.push(3 + 7 * u);
    triples.items.push(1 + 5 * v);
    triples.ratings.push(Math.fround(scale * (3 + taste(u) * taste(v) * 0.6 + 0.3 * (next() - 0.5))));
  }
  return triples;
}
