/** Factors that do not fit in the memory budget are kept in files, and give the same model. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { baseBytes } from '../../../operators/planner/memory-budget.ts';
import { SPILL } from '../../../engine/plan/place.ts';
import { ALS, type AlsOptions, type FitOptions, Session } from '../../../index.ts';
import { ratingBatches, testRandom, type Triple } from '../../support/ratings.ts';

const folder = mkdtempSync(join(tmpdir(), 'factorflow-factors-in-files-'));
afterAll(() => rmSync(folder, { recursive: true }));
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

describe('factors beyond the memory budget', () => {
  it('are trained and saved from files, which are removed', async () => {
    const loss = async (session: Session, model?: string) => {
      const trained = await trainer().fit(session.from(ratingBatches(rows, 50_000)));
      if (model !== undefined) await trained.save(model);
      return {
        plan: trained.training?.plan,
        loss: trained.training?.iterations.at(-1)?.loss ?? NaN,
        trained,
      };
    };
    await using large = await Session.create({ device: 'cpu', workers: 1 });
    const whole = await loss(large);
    const saved = join(folder, 'model');
    {
      await using small = await Session.create({ device: 'cpu', workers: 1, spillDir, memoryBudget });
      const parts = await loss(small, saved);
      expect(parts.plan?.choices.grid).toMatchObject({ users: { factors: 'spill', fixed: 'parts' } });
      expect(parts.plan?.memory[SPILL]).toBeGreaterThan(4 * 64 * users);
      expect(parts.loss / whole.loss).toBeCloseTo(1, 5);
    }
    expect(existsSync(spillDir)).toBe(false);
    const { userFactors } = await large.loadModel(saved);
    const values = ({ data }: typeof userFactors) => data.children[1].children[0].values as Float32Array;
    const [left, right] = [values(userFactors), values(whole.trained.userFactors)];
    expect(left.length).toBe(64 * users);
    const difference = left.reduce((most, value, i) => Math.max(most, Math.abs(value - right[i])), 0);
    expect(difference).toBeLessThan(1e-3);
  }, 240_000);

  it('are written to checkpoints from their files, and read from them', async () => {
    const checkpointDir = join(folder, 'checkpoints');
    const fit = async (maxIter: number, options: FitOptions = {}) => {
      await using session = await Session.create({ device: 'cpu', workers: 1, spillDir, memoryBudget });
      const trained = await trainer({ maxIter }).fit(session.from(ratingBatches(rows, 50_000)), options);
      expect(trained.training?.plan.choices.grid).toMatchObject({ users: { factors: 'spill' } });
      const { training, userFactors, itemFactors } = trained;
      const factors = [userFactors, itemFactors].map(({ data }) =>
        Buffer.from((data.children[1].children[0].values as Float32Array).slice().buffer),
      );
      return { training, factors };
    };
    const whole = await fit(2);
    await fit(1, { checkpointDir, checkpointInterval: 1 });
    expect(readdirSync(checkpointDir)).toEqual(['checkpoint-00000001']);
    const resumed = await fit(2, { checkpointDir, checkpointInterval: 1, resume: true });
    expect(resumed.training?.resumedFrom?.iteration).toBe(1);
    expect(resumed.factors.map((bytes, side) => bytes.equals(whole.factors[side]))).toEqual([true, true]);
    // Ended already: the model is read from the checkpoint.
    const ended = await fit(2, { checkpointDir, resume: true });
    expect(ended.factors.map((bytes, side) => bytes.equals(whole.factors[side]))).toEqual([true, true]);
    expect(existsSync(spillDir)).toBe(false);
  }, 240_000);
});
