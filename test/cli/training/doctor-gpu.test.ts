/** doctor with flags, on the software adapter of the tests. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type PhysicalPlan, stageNamed } from '../../../engine/plan/physical-plan.ts';
import { checkKernelsOf } from '../../../cli/doctor/check-kernels.ts';
import { DeviceLostError } from '../../../engine/errors.ts';
import { noEvents } from '../../../engine/events.ts';
import type { Task } from '../../../engine/task.ts';
import { noGpu } from '../../support/gpu/open-gpu.ts';
import { randomRatings } from '../../support/ratings.ts';
import { fails, objectOf, start, temporaryFolder } from '../run-cli.ts';

const folder = temporaryFolder();

describe('doctor --check-kernels', () => {
  const context = { signal: new AbortController().signal, onEvent: noEvents };
  const checks = [{ name: 'one', variant: 'a' }, { name: 'one', variant: 'b' }, { name: 'other', variant: 'a' }];
  const gpu = (outcome: (check: number) => { readonly error: number; readonly limit: number }) => ({
    info: { place: 'gpu:0', kind: 'gpu', parallelism: 1, inOrder: true, wholePasses: true, ownMemory: true, capacityBytes: null, strideStep: 16, description: 'Card; f16' } as const,
    run: async ({ params }: Task) => ({ metrics: { rows: 0, bytesUp: 0, bytesDown: 0, milliseconds: 0 }, values: params.check === undefined ? { checks } : outcome(params.check as number) }),
  });

  it('has a line for each kernel with the error nearest to its limit', async () => {
    const { text, exitCode, json } = await checkKernelsOf(gpu((check) => ({ error: check * 1e-6, limit: 1e-4 })), context);
    expect(text).toBe('  Card; f16\n  one      2 checks, all good  largest error 1.0e-6 of 1.0e-4\n  other    1 checks, all good  largest error 2.0e-6 of 1.0e-4');
    expect(exitCode).toBeUndefined();
    expect(json).toMatchObject({ command: 'doctor', adapter: 'Card; f16', checks: [{ kernel: 'one', variant: 'a', error: 0, limit: 1e-4, failed: false }, {}, {}] });
  });

  it('names failing checks, and the exit code is 5', async () => {
    const { text, exitCode, json } = await checkKernelsOf(
      gpu((check) => {
        if (check === 2) throw new Error('kernel other: line 7: no such type\nmore');
        return { error: check === 1 ? NaN : 1e-3, limit: 1e-4 };
      }),
      context,
    );
    expect(exitCode).toBe(5);
    expect(text).toMatch(/one +2 checks, 2 FAILED\n +a: error 1\.0e-3, at most 1\.0e-4\n +b: error not finite, at most 1\.0e-4\n +other +1 checks, 1 FAILED\n +a: kernel other: line 7: no such type$/);
    expect(JSON.parse(JSON.stringify(json)).checks.map((check: { failed: boolean }) => check.failed)).toEqual([true, true, true]);
  });

  it('ends with the device', async () => {
    const lost = gpu(() => {
      throw new DeviceLostError('gone');
    });
    await expect(checkKernelsOf(lost, context)).rejects.toBeInstanceOf(DeviceLostError);
  });
});

describe('doctor', () => {
  it.each<[string[], RegExp]>([
    [['--rank', '8'], /--rank acts only with --tune/],
    [['--tune', '--check-kernels'], /exclude each other/],
    [['--tune', '--rank', '8,0'], /--rank must be whole numbers from 1 to 512/],
    [['some.parquet'], /unknown argument "some\.parquet"\. Give ratings with --tune/],
  ])('refuses %j', async (flags, pattern) => {
    await fails(2, pattern, 'doctor', ...flags);
  });
});

describe.skipIf(noGpu)('doctor --tune', () => {
  it('reports the variants, and training takes the fastest from then on', async () => {
    const env = { FACTORFLOW_CACHE_DIR: mkdtempSync(join(tmpdir(), 'factorflow-cache-')) };
    const file = join(folder, 'few.csv');
    writeFileSync(file, `user,item,rating\n${randomRatings(5, 20, 15, 150).map(({ user, item, rating }) => `${user},${item},${rating}`).join('\n')}\n`);
    const tuned = await start(['doctor', '--tune', '--rank', '4', file, '--quiet', '--json'], { env }).outcome;
    expect(tuned.code).toBe(0);
    const { adapter, tunings, data } = objectOf(tuned.stdout) as { adapter: string; data: object; tunings: { side: string; variant: string; reason: string; times: object[] }[] };
    expect(adapter).toMatch(/^swiftshader.*computes on the processor/);
    expect(data).toMatchObject({ users: 20, items: 15, ratings: expect.any(Number) });
    expect(tunings.map(({ side }) => side)).toEqual(['users', 'items']);
    const trained = await start(['train', file, '--rank', '4', '--max-iter', '1', '--device', 'gpu', '--model-dir', join(folder, 'model'), '--quiet', '--json'], { env }).outcome;
    expect(trained.code).toBe(0);
    const plan = await start(['plan', file, '--rank', '4', '--device', 'gpu', '--json', '--quiet'], { env }).outcome;
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
    const { code, stdout } = await start(['doctor', '--tune', '--rank', '2', file, '--quiet'], { env: { FACTORFLOW_CACHE_DIR: occupied } }).outcome;
    expect(code).toBe(0);
    expect(stdout).toMatch(/rank 2, users: 2 rows, 3 ratings, by the GPU's clock\n( +\S+ .*\n)* +\S+ +[\d.]+ ms +[\d.]+ G ratings\/s  chosen\n/);
    expect(stdout).toMatch(/could not be kept in .*FACTORFLOW_CACHE_DIR names another folder/);
  });
});
