/** Plans for devices that this machine does not have, and partitions that do not fit. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../engine/json.ts';
import { factorflow, fails, objectOf, ratings, temporaryFolder } from '../run-cli.ts';

const folder = temporaryFolder();
const hugewiki = [
  '--users',
  '50082603',
  '--items',
  '39780',
  '--ratings',
  '3101144313',
  '--rank',
  '100',
  '--no-biases',
];

async function planned(...args: readonly string[]): Promise<JsonObject> {
  const { stdout, stderr, code } = await factorflow('plan', ...args, '--json', '--quiet');
  expect([code, stderr]).toEqual([0, '']);
  return (objectOf(stdout) as { plan: JsonObject }).plan;
}

describe('train --partition-users', () => {
  it('tells p, q, places and tasks in its JSON', async () => {
    const { stdout, stderr } = await factorflow(
      'train',
      ratings,
      '--rank',
      '4',
      '--max-iter',
      '1',
      '--device',
      'cpu',
      '--fake-devices',
      '2',
      '--partition-users',
      '2,2',
      '--partition-items',
      '2,2',
      '--model-dir',
      join(folder, 'model'),
      '--json',
      '--quiet',
    );
    expect(stderr).toBe('');
    const side = { p: 2, q: 2, places: ['cpu', 'cpu:1'], tasks: expect.any(Number) };
    expect(objectOf(stdout)).toMatchObject({ partitions: { users: side, items: side } });
  });
});

describe('plan --devices', () => {
  it('chooses p and q, estimates the time, and lists what was rejected', async () => {
    const plan = await planned(...hugewiki, '--devices', '4x80GB');
    expect(plan.choices).toMatchObject({ grid: { users: { fixed: 'parts' }, items: { fixed: 'whole' } } });
    expect(plan.estimate).toMatchObject({ rates: expect.stringContaining('card of 80 GB') });
    const rejected = plan.rejected as { name: string; reason: string }[];
    expect(rejected.some(({ name }) => name.endsWith('items by matrix-free CG that exchanges vectors'))).toBe(
      true,
    );
    expect(rejected.every(({ reason }) => reason !== '')).toBe(true);
    const rounds = plan.round as { name: string; at: string[]; tasks?: number; partitions?: JsonObject }[];
    const update = rounds.find(({ name }) => name === 'update-users');
    expect(update).toMatchObject({ partitions: { p: 1, q: update?.at.length }, tasks: 1 });
    expect(new Set(update?.at)).toEqual(new Set(['gpu:0', 'gpu:1', 'gpu:2', 'gpu:3']));
  });

  it.each([
    ['4x12GB', ['--memory-budget', '512GB']],
    ['4x80GB', []],
  ])('takes the folder for files, which it does not make: %s', async (devices, budget) => {
    const spillDir = join(folder, 'spill', devices);
    const sized = [...hugewiki, '--devices', devices, ...budget];
    expect(await planned(...sized, '--spill-dir', spillDir)).toEqual(await planned(...sized));
    expect(existsSync(spillDir)).toBe(false);
  });

  it('takes it for devices of this machine as well', async () => {
    const spillDir = join(folder, 'spill');
    const plan = await planned(
      '--users',
      '1000',
      '--items',
      '500',
      '--ratings',
      '10000',
      '--device',
      'cpu',
      '--spill-dir',
      spillDir,
    );
    expect(plan.algorithm).toBe('als');
    expect(existsSync(spillDir)).toBe(false);
  });

  it('takes the parts that are asked for', async () => {
    const plan = await planned(...hugewiki, '--devices', '141GB', '--partition-users', '1,32');
    expect(plan.choices).toMatchObject({ grid: { users: { q: 32 } } });
  });

  it('solves from vertical parts by vectors where it is asked to', async () => {
    const plan = await planned(...hugewiki, '--devices', '2x141GB', '--partition-sums', 'vectors');
    expect(plan.choices).toMatchObject({ grid: { users: { fixed: 'parts' }, items: { sums: 'vectors' } } });
    const rounds = plan.round as { name: string; exchange?: string }[];
    expect(rounds.flatMap(({ name, exchange }) => (exchange === undefined ? [] : [name]))).toEqual([
      'spread-items',
      'reduce-residuals-items',
      'spread-directions-items',
      'reduce-products-items',
      'gather-items',
    ]);
  });

  it.each([
    ['2x2x80GB', 4, 2],
    ['2x4x80GB', 8, 4],
  ])('adds sums up inside sockets first where that is faster: %s', async (devices, count, each) => {
    const reduceOf = async (...args: readonly string[]) => {
      const plan = await planned(...hugewiki, ...args);
      const reduce = (
        plan.round as { name: string; exchange: string; reasons?: string[]; work: { groups?: string[][] } }[]
      ).find(({ name }) => name === 'reduce-items');
      return { reduce, seconds: (plan.estimate as { exchange: number }).exchange };
    };
    const places = Array.from({ length: count }, (_, n) => `gpu:${n}`);
    const sockets = await reduceOf('--devices', devices);
    expect(sockets.reduce).toMatchObject({
      work: { groups: [places.slice(0, each), places.slice(each)] },
      exchange: expect.stringContaining('in two phases'),
      reasons: [
        expect.stringMatching(
          /^partial sums are added inside gpu:0 gpu:1.* before they are sent between the groups: about [\d.]+ ms, and [\d.]+ ms in one phase$/,
        ),
      ],
    });
    const flat = await reduceOf('--devices', `${count}x80GB`);
    expect(flat.reduce?.work.groups).toBeUndefined();
    expect(flat.seconds).toBeLessThan(sockets.seconds);
    const asked = await reduceOf('--devices', `${count}x80GB`, '--partition-groups', `${each},${each}`);
    expect(asked.reduce?.work.groups).toEqual(sockets.reduce?.work.groups);
  });

  it('of unequal memory go by the least', async () => {
    const places = (await planned(...hugewiki, '--devices', '80GB,20GB')).memory as Record<string, number>;
    expect(places['gpu:1']).toBeLessThan(20e9);
  });

  it.each<[string, readonly string[], number, RegExp]>([
    [
      'parts that do not fit',
      ['--devices', '12GB', '--partition-users', '1,1'],
      4,
      /no grid fits: needs about 88\.\d GiB at gpu:0, which has 11\.2 GiB; with other parts a device needs \d\.\d GiB \(\d+ bytes\), with X in 16 parts at the host.*Leave the partitions to the planner/,
    ],
    [
      'more parts than rows',
      ['--devices', '141GB', '--partition-items', '1,100000'],
      2,
      /--partition-items 1,100000 has 100,000 parts of 39,780 items/,
    ],
    [
      'more vertical parts than items',
      ['--devices', '141GB', '--partition-users', '50000,2'],
      2,
      /--partition-users 50000,2 has 50,000 vertical parts of 39,780 items/,
    ],
    [
      'vectors with exact solves',
      ['--devices', '2x141GB', '--partition-sums', 'vectors', '--solver', 'cholesky'],
      2,
      /--partition-sums vectors cannot be used with exact solves, which need A/,
    ],
    [
      'vectors from one part',
      [
        '--devices',
        '2x141GB',
        '--partition-sums',
        'vectors',
        '--partition-users',
        '1,2',
        '--partition-items',
        '1,2',
      ],
      2,
      /--partition-sums vectors acts only if a side is solved from vertical parts, and both partitions have 1/,
    ],
    ['no memory', ['--devices', '4x'], 2, /--devices must be/],
    ['too many', ['--devices', '900x12GB'], 2, /--devices must be devices with their memory/],
    [
      'a device beside them',
      ['--devices', '12GB', '--device', 'cpu'],
      2,
      /--device cannot be used with --devices/,
    ],
  ])('refuses %s', async (_, args, code, message) => {
    await fails(code, message, 'plan', ...hugewiki, ...args);
  });

  it('refuses vectors where the solver solves exactly', async () => {
    await fails(
      2,
      /--partition-sums vectors needs conjugate gradients for all rows, and the solver is cholesky. Give solver cg/,
      'plan',
      '--users',
      '1000',
      '--items',
      '900',
      '--ratings',
      '10000',
      '--rank',
      '20',
      '--devices',
      '2x12GB',
      '--partition-sums',
      'vectors',
    );
  });
});
