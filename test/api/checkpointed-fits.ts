/** Two sessions, and fits that are cancelled and resumed: for the tests of checkpoints. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import {
  ALS,
  type AlsOptions,
  type FitOptions,
  type Model,
  Session,
  SGD,
  type SgdOptions,
} from '../../index.ts';
import { plantedRatings } from '../support/planted.ts';
import { ratingBatches, type Triple } from '../support/ratings.ts';

const above = mkdtempSync(join(tmpdir(), 'factorflow-resume-'));
const planted = plantedRatings(7, 150, 90, 5000);
export const rows = planted.slice(600);
export const held = planted.slice(0, 600);
export let one: Session;
export let two: Session;

beforeAll(async () => {
  [one, two] = [
    await Session.create({ workers: 1, device: 'cpu' }),
    await Session.create({ workers: 2, device: 'cpu' }),
  ];
});

afterAll(async () => {
  await Promise.all([one.close(), two.close()]);
  rmSync(above, { recursive: true });
});

export let checkpointDir: string;
let folders = 0;

beforeEach(() => {
  checkpointDir = join(above, String(folders++));
});

export interface Run extends FitOptions {
  readonly session?: Session;
  readonly ratings?: readonly Triple[];
  readonly tested?: readonly Triple[] | null;
}

export function fit(
  trainer: ALS | SGD,
  { session = two, ratings = rows, tested = held, ...options }: Run = {},
): Promise<Model> {
  return trainer.fit(session.from(ratingBatches(ratings)), {
    ...(tested ? { validation: session.from(ratingBatches(tested)) } : {}),
    ...options,
  });
}

/** Cancels a run after an iteration. */
export async function cancelled(trainer: ALS | SGD, at: number, options: Run = {}): Promise<unknown> {
  const controller = new AbortController();
  return fit(trainer, {
    checkpointDir,
    checkpointInterval: 2,
    ...options,
    signal: controller.signal,
    onEvent: (event) => void (event.type === 'iteration' && event.iteration === at && controller.abort()),
  }).then(
    () => undefined,
    (error: unknown) => error,
  );
}

export function expectSame(got: Model, expected: Model): void {
  expect(
    [got.userFactors, got.itemFactors].map((batch) => batch.data.children[1].children[0].values),
  ).toEqual(
    [expected.userFactors, expected.itemFactors].map((batch) => batch.data.children[1].children[0].values),
  );
  // The metadata have all iterations without their seconds.
  expect(JSON.stringify(got.metadata)).toBe(JSON.stringify(expected.metadata));
}

export const als = (more: AlsOptions = {}) => new ALS({ rank: 6, maxIter: 9, seed: 3, ...more });

export const sgd = (more: SgdOptions = {}) =>
  new SGD({ rank: 6, maxIter: 9, seed: 3, schedule: 'wavefront', ...more });
