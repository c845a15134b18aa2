import { CounterRandom } from '../../engine/random.ts';

/** Uniform numbers in [0, 1) of a test file; FACTORFLOW_SEED draws others. */
export function drawnNumbers(): () => number {
  const seed = new CounterRandom(Number(process.env.FACTORFLOW_SEED ?? 1));
  let draws = 0;
  return () => seed.uniform(draws++);
}
