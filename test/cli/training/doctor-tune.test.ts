import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type PhysicalPlan, stageNamed } from '../../../engine/plan/physical-plan.ts';
import { noGpu } from '../../support/gpu/open-gpu.ts';
import { randomRatings } from '../../support/ratings.ts';
import { objectOf, start, temporaryFolder } from '../run-cli.ts';

const folder = temporaryFolder();

describe.skipIf(noGpu)('doctor --tune', () => {
  it('reports the variants, and training takes the fastest from then on', async () => {
    const env = { FACTORFLOW_CACHE_DIR: mkdtempSync(join(tmpdir(), 'factorflow-cache-')) };
    const file = join(folder, 'few.csv');
    writeFileSync(
      file,
      `user,item,rating\n${randomRatings(5, 20, 15, 150)
        .map(({ user, item, rating }) => `${user},${item},${rating}`)
        .join('\n')}\n`,
    );
    const tuned = await start(['doctor', '--tune', '--rank', '4', file, '--quiet', '--json'], { env })
      .outcome;
    expect(tuned.code).toBe(0);
    const { adapter, tunings, data } = objectOf(tuned.stdout) as {
      adapter: string;
      data: object;
      tunings: { side: string; variant: string; reason: string; times: object[] }[];
    };
    expect(adapter).toMatch(/^swiftshader.*computes on the processor/);
    expect(data).toMatchObject({ users: 20, items: 15, ratings: expect.any(Number) });
    expect(tunings.map(({ side }) => side)).toEqual(['users', 'items']);
    const trained = await start(
      [
        'train',
        file,
        '--rank',
        '4',
        '--max-iter',
        '1',
        '--device',
        'gpu',
        '--model-dir',
        join(folder, 'model'),
        '--quiet',
        '--json',
      ],
      { env },
    ).outcome;
    expect(trained.code).toBe(0);
    const plan = await start(['plan', file, '--rank', '4', '--device', 'gpu', '--json', '--quiet'], { env })
      .outcome;
    const planned = objectOf(plan.stdout).plan as PhysicalPlan;
    for (const { side, variant, reason } of tunings) {
      expect(planned.choices[side]).toMatchObject({ variant });
      expect(stageNamed(planned, `update-${side}`).reasons?.join()).toContain(reason);
    }
  });

  it('prints the variants, and a cache that cannot be written is a note', async () => {
    const occupied = join(folder, 'occupied');
    writeFileSync(occupied, '');
    const file = join(folder, 'fewer.csv');
    writeFileSync(file, 'user,item,rating\n1,1,3\n1,2,4\n2,1,5\n');
    const { code, stdout } = await start(['doctor', '--tune', '--rank', '2', file, '--quiet'], {
      env: { FACTORFLOW_CACHE_DIR: occupied },
    }).outcome;
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /rank 2, users: 2 rows, 3 ratings, by the GPU's clock\n( +\S+ .*\n)* +\S+ +[\d.]+ ms +[\d.]+ G ratings\/s  chosen\n/,
    );
    expect(stdout).toMatch(/could not be kept in .*FACTORFLOW_CACHE_DIR names another folder/);
  });
});
