import { testRandom, type Triple } from './ratings.ts';

/** Ratings around 3 of a planted model of the given rank with biases and noise, without repeated pairs. */
export function plantedRatings(
  seed: number,
  users: number,
  items: number,
  count: number,
  { rank = 4, noise = 0.3 } = {},
): Triple[] {
  const random = testRandom(seed);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const vectors = (rows: number) =>
    Array.from({ length: rows }, () => Array.from({ length: rank + 1 }, () => 0.5 * normal()));
  const [x, theta] = [vectors(users), vectors(items)];
  const seen = new Map<number, Triple>();
  for (let i = 0; i < count; i++) {
    const [user, item] = [Math.floor(random() * users), Math.floor(random() ** 1.5 * items)];
    const product = x[user].slice(1).reduce((sum, value, k) => sum + value * theta[item][k + 1], 0);
    seen.set(user * items + item, {
      user,
      item,
      rating: 3 + x[user][0] + theta[item][0] + product + noise * normal(),
    });
  }
  return [...seen.values()];
}
