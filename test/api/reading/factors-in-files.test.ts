/** Factors that do not fit in the memory budget are kept in files, and give the same model. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { baseBytes } from '../../../operators/planner/memory-budget.ts';
import { SPILL } from '../../../engine/plan/place.ts';
import { ALS, type AlsOptions, type FitOptions, type Model, Session } from '../../../index.ts';
import { ratingBatches, testRandom, type Triple } from '../../support/ratings.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const spillDir = join(folder, 'spill');

const [users, items] = [60_000, 6000];
const random = testRandom(7);
const rows = Array.from({ length: 75_000 }, (_, k): Triple => ({
  user: k < users ? k : Math.floor(random() ** 2 * users),
  item: k < items ? k : Math.floor(random() ** 2 * items),
  rating: Math.round(random() * 8 + 2) / 2,
}));

/** The users' factors take 15 MB in one version. */
const trainer = (options: AlsOptions = {}) =>
  new ALS({ rank: 64, maxIter: 1, seed: 3, biases: false, solver: 'cg', cgSteps: 2, ...options });
const memoryBudget = baseBytes(1) + 25 * 2 ** 20;

const bytesOf = (model: Model) =>
  [model.userFactors, model.itemFactors].map(({ data }) =>
    Buffer.from((data.children[1].children[0].values as Float32Array).slice().buffer),
  );

describe('factors beyond the memory budget', () => {
  it('are trained and saved from files, which are removed, and go on from a checkpoint', async () => {
    const fit = async (maxIter: number, options: FitOptions = {}, save?: string) => {
      await using session = await Session.create({ device: 'cpu', workers: 1, spillDir, memoryBudget });
      const model = await trainer({ maxIter }).fit(session.from(ratingBatches(rows, 50_000)), options);
      const { plan } = model.training!;
      expect(plan.choices.grid).toMatchObject({ users: { factors: 'spill', fixed: 'parts' } });
      expect(plan.memory[SPILL]).toBeGreaterThan(4 * 64 * users);
      if (save !== undefined) await model.save(save);
      return { training: model.training!, factors: bytesOf(model) };
    };
    const saved = join(folder, 'model');
    const parts = await fit(2, {}, saved);
    expect(existsSync(spillDir)).toBe(false);

    await using large = await Session.create({ device: 'cpu', workers: 1 });
    const whole = await trainer({ maxIter: 2 }).fit(large.from(ratingBatches(rows, 50_000)));
    const [loss, expected] = [parts.training, whole.training!].map(
      ({ iterations }) => iterations.at(-1)!.loss,
    );
    expect(loss / expected).toBeCloseTo(1, 5);
    const same = (factors: readonly Buffer[]) =>
      expect(factors.map((bytes, side) => bytes.equals(parts.factors[side]))).toEqual([true, true]);
    same(bytesOf(await large.loadModel(saved)));

    const checkpoints = { checkpointDir: join(folder, 'checkpoints'), checkpointInterval: 1 };
    await fit(1, checkpoints);
    expect(readdirSync(checkpoints.checkpointDir)).toEqual(['checkpoint-00000001']);
    const resumed = await fit(2, { ...checkpoints, resume: true });
    expect(resumed.training.resumedFrom?.iteration).toBe(1);
    same(resumed.factors);
    expect(existsSync(spillDir)).toBe(false);
  }, 240_000);
});
