import { expect } from 'vitest';
import type { PageRating, PageTraining } from '../../browser/index.ts';
import type { Model } from '../../index.ts';

/**
 * A page's training had the course of Node's, and its model recommends the same items to a visitor with the first
 * of these ratings. Closes both models.
 */
export async function expectSameTraining(
  page: PageTraining,
  model: Model,
  train: readonly PageRating[],
): Promise<void> {
  const course = (iterations: readonly { readonly seconds: number }[] = []) =>
    iterations.map(({ seconds: _seconds, ...iteration }) => iteration);
  expect(course(page.iterations)).toEqual(course(model.training?.iterations));
  expect([page.bestIteration, page.coldPairs]).toEqual([
    model.training?.bestIteration,
    model.training?.coldPairs,
  ]);
  expect(page.iterations.at(-1)?.testRmse).toBeGreaterThan(0);
  const visitor = { ratings: train.slice(0, 6).map(({ item, rating }) => ({ item, rating })) };
  expect(await page.model.recommend(visitor, 10)).toEqual(await model.recommend(visitor, 10));
  const [{ item }] = train;
  expect(await page.model.similar(item, 10)).toEqual(await model.similar(item, 10));
  expect(page.model.itemCounts).toEqual(model.itemCounts);
  await page.model.close();
  await model.close();
}
