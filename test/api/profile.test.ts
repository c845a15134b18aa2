import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ALS, Profile, Session, type SessionOptions, UsageError } from '../../index.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';

const folder = mkdtempSync(join(tmpdir(), 'factorflow-profile-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const rows = randomRatings(31, 200, 100, 4000);

describe('a profile', () => {
  it('names the phases of training, saving, loading and recommending, which add up to the wall time', async () => {
    const started = performance.now();
    const profile = new Profile();
    const session = await Session.create({ device: 'cpu', workers: 2, profile });
    const ratings = session.from(ratingBatches(rows, 100));
    const model = await new ALS({ rank: 3, maxIter: 4 }).fit(ratings, { validation: ratings });
    await model.save(join(folder, 'model'));
    const loaded = await session.loadModel(join(folder, 'model'));
    await loaded.recommendForAllUsers(3, { exclude: ratings }).write.csv(join(folder, 'lists.csv'));
    {
      using _ = profile.begin('my own');
      await session.close();
    }
    const { seconds, phases } = profile.report();
    const wall = (performance.now() - started) / 1000;
    const names = phases.map(({ phase }) => phase);
    expect(names.slice(0, 2)).toEqual(['start-up', 'open devices']);
    expect(names).toEqual(
      expect.arrayContaining([
        'read',
        'select-ratings',
        'number',
        'sort',
        'test set',
        'plan',
        'start',
        'iterations',
        'measure',
        'save',
        'load model',
        'recommend',
        'write',
        'my own',
        'end',
      ]),
    );
    expect(names.at(-1)).toBe('unaccounted');
    expect(phases.find(({ phase }) => phase === 'iterations')?.times).toBe(4);
    expect(seconds).toBeLessThanOrEqual(wall);
    expect(phases.reduce((sum, { seconds: own }) => sum + own, 0)).toBeCloseTo(seconds, 9);
    for (const phase of phases)
      expect(
        Math.min(phase.seconds, phase.cpuSeconds, phase.bytesUp, phase.bytesDown),
      ).toBeGreaterThanOrEqual(0);
  });

  it('is refused where it is none', async () => {
    const creating = Session.create({ profile: true } as unknown as SessionOptions);
    await expect(creating).rejects.toBeInstanceOf(UsageError);
    await expect(creating).rejects.toThrow('profile must be a Profile, got true');
  });
});
