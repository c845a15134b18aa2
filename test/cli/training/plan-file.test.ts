import { readFileSync, truncateSync, writeFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../engine/json.ts';
import { everyNth } from '../../support/deep.ts';
import { argv, factorflow, fails, objectOf, ratings, writeParquet } from '../run-cli.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const common = ['--rank', '4', '--max-iter', '2', '--seed', '7', '--device', 'cpu'];
let repeated = '';
let files = 0;

async function planned(...args: readonly string[]): Promise<JsonObject> {
  const { stdout, stderr, code } = await factorflow('plan', ...args, '--json', '--quiet');
  expect([code, stderr]).toEqual([0, '']);
  return objectOf(stdout) as JsonObject;
}

function fileOf(content: unknown): string {
  const file = join(folder, `plan-${files++}.json`);
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  return file;
}

async function trained(model: string, ...args: readonly string[]): Promise<string[]> {
  const directory = join(folder, model);
  const { code, stderr } = await factorflow(
    ...argv`train ${args} --model-dir ${directory} --device cpu --quiet`,
  );
  expect([code, stderr]).toEqual([0, '']);
  return ['metadata/part-00000', 'userFactors/part-00000.parquet', 'itemFactors/part-00000.parquet'].map(
    (file) => readFileSync(join(directory, file), 'base64'),
  );
}

beforeAll(async () => {
  // Few held-out pairs are cold, which would be warned of.
  const frequent = (column: string, least: number) =>
    `${column} IN (SELECT ${column} FROM '${ratings}' GROUP BY 1 HAVING count(*) >= ${least})`;
  repeated = await writeParquet(
    join(folder, 'repeated.parquet'),
    `SELECT * FROM '${ratings}' WHERE ${frequent('"user"', 15)} AND ${frequent('item', 60)} LIMIT 5000`,
  );
  await writeParquet(
    repeated.replace('repeated', 'twice'),
    `SELECT * FROM '${repeated}' UNION ALL SELECT "user", item, rating + 1, timestamp FROM '${repeated}' WHERE item % 3 = 0`,
  );
  repeated = repeated.replace('repeated', 'twice');
});

describe('train --plan', () => {
  it.each<[string, readonly string[], readonly string[]]>(
    everyNth<[string, readonly string[], readonly string[]]>(
      [
        ['als', ['--solver', 'cholesky', '--reg-param', '0.3'], []],
        ['als-held-out', ['--biases', '--early-stop', '2'], ['--test-fraction', '0.1']],
        ['als-mean', ['--cg-steps', '3'], ['--on-duplicates', 'mean', '--test-fraction', '0.2']],
        [
          'sgd',
          ['--algorithm', 'sgd', '--biases', '--rate', 'bold', '--workers', '1'],
          ['--test-fraction', '0.1'],
        ],
        [
          'sgd-waves',
          argv`--algorithm sgd --schedule wavefront --workers 1 --reg-param-users 0.1 --reg-param-items
            0.2`,
          ['--on-duplicates', 'sum'],
        ],
      ],
      3,
    ),
  )(
    'gives the model of %s again, from what plan printed and from the plan in the model',
    async (name, flags, ofData) => {
      const line = await planned(repeated, ...common, ...flags, ...ofData);
      const workers = flags.includes('--workers') ? ['--workers', '1'] : [];
      const first = await trained(name, repeated, '--plan', fileOf(line), ...ofData, ...workers);
      expect(
        await trained(`${name}-2`, repeated, '--plan', join(folder, name), ...ofData, ...workers),
      ).toEqual(first);
      for (const part of name === 'als' ? ['metadata/part-00000'] : [])
        expect(
          await trained(
            `${name}-${part.length}`,
            repeated,
            '--plan',
            join(folder, name, part),
            ...ofData,
            ...workers,
          ),
        ).toEqual(first);
      expect(
        await trained(
          `${name}-3`,
          repeated,
          '--plan',
          fileOf({ ...(line.plan as JsonObject), note: 'of somebody else' }),
          '--rank',
          '4',
          ...ofData,
          ...workers,
        ),
      ).toEqual(first);
      if (name !== 'als-mean')
        expect(await trained(`${name}-4`, repeated, ...common.slice(0, 6), ...flags, ...ofData)).toEqual(
          first,
        );
    },
  );

  it('keeps the grid of a plan that was made for more workers', async () => {
    const { plan } = await planned(repeated, ...common, '--algorithm', 'sgd', '--workers', '8');
    await trained('wide', repeated, '--plan', fileOf(plan), '--workers', '1');
    const { factorflow } = JSON.parse(readFileSync(join(folder, 'wide/metadata/part-00000'), 'utf8')) as {
      factorflow: { plan: unknown };
    };
    expect(factorflow.plan).toMatchObject({ choices: { schedule: { rowBands: 16, workers: 8 } } });
  });

  it('runs the plan that plan --analyze printed', async () => {
    await trained(
      'analyzed',
      repeated,
      '--plan',
      fileOf(await planned(repeated, ...common, '--biases', '--analyze')),
    );
  });
});

describe('train --plan exits with 2', () => {
  const train = (...args: readonly string[]) =>
    argv`train ${repeated} --model-dir ${join(folder, 'never')} --device cpu ${args}`;
  let plan: JsonObject = {};
  let sgd: JsonObject = {};
  beforeAll(async () => {
    plan = (await planned(repeated, ...common)).plan as JsonObject;
    sgd = (await planned(repeated, ...common, '--algorithm', 'sgd')).plan as JsonObject;
  });

  it.each<[string, readonly string[], RegExp]>([
    ['another rank', ['--rank', '20'], /--rank 20 contradicts the plan, which has 4/],
    ['another toggle', ['--no-biases'], /--biases false contradicts the plan, which has true/],
    [
      'an ending that it lacks',
      ['--early-stop', '3', '--test-fraction', '0.1'],
      /--early-stop 3 contradicts the plan, which has none/,
    ],
    ['another algorithm', ['--algorithm', 'sgd'], /--algorithm sgd contradicts the plan, which is of als/],
    ['a flag of another algorithm', ['--decay', '1'], /--decay contradicts the plan, which is of als/],
    ['a model to go on from', ['--init-model', 'm'], /--plan cannot be used with --init-model/],
    [
      'held-out ratings that it lacks',
      ['--test-fraction', '0.1'],
      /the plan does not fit: .*sizes\.ratings is \d+ in the plan, and \d+ here/,
    ],
  ])('with %s', async (_, flags, pattern) => {
    await fails(2, pattern, ...train('--plan', fileOf(plan), ...flags));
  });

  it.each<[string, (plan: JsonObject) => unknown, RegExp]>([
    [
      'other users',
      (one) => ({ ...one, sizes: { ...(one.sizes as JsonObject), users: 3 } }),
      /the plan does not fit: sizes\.users is 3 in the plan, and \d+ here/,
    ],
    [
      'other items',
      (one) => ({ ...one, sizes: { ...(one.sizes as JsonObject), items: 3 } }),
      /sizes\.items is 3 in the plan/,
    ],
    [
      'other ratings',
      (one) => ({ ...one, sizes: { ...(one.sizes as JsonObject), ratings: 3 } }),
      /sizes\.ratings is 3 in the plan/,
    ],
    [
      'a GPU',
      (one) => ({ ...one, devices: [{ place: 'gpu:0', kind: 'gpu' }, ...(one.devices as JsonObject[])] }),
      /it computes on gpu:0, cpu, and this session on cpu/,
    ],
    [
      'another version',
      (one) => ({ ...one, planVersion: 5 }),
      /this plan has version 5, and this release runs plans of version 6 \(.*plan-\d+\.json\)/,
    ],
    [
      'no version',
      (one) => ({ ...one, planVersion: undefined }),
      /this is not a plan: it has no planVersion/,
    ],
    ['no stages', (one) => ({ ...one, round: undefined }), /this plan has no usable round/],
    ['stages that are none', (one) => ({ ...one, round: [null] }), /this plan has no usable round/],
    [
      'a stage less',
      (one) => ({ ...one, round: [] }),
      /round\[0\] is not there in the plan, and an object here/,
    ],
    [
      'another kernel',
      (one) =>
        JSON.parse(
          JSON.stringify(one)
            .replace('"kernel":"update"', '"kernel":"downdate"')
            .replace('"kernel":"sgd-block"', '"kernel":"downdate"'),
        ),
      /kernel is "downdate" in the plan/,
    ],
    [
      'another algorithm',
      (one) => ({ ...one, algorithm: 'ccd' }),
      /this plan is of no algorithm that train runs/,
    ],
    [
      'a parameter out of range',
      (one) => ({ ...one, params: { ...(one.params as JsonObject), rank: 1e9 } }),
      /rank must be a whole number from 1 to 4,096, got 1000000000/,
    ],
    [
      'a parameter that is unknown',
      (one) => ({ ...one, params: { ...(one.params as JsonObject), alfa: 1 } }),
      /unknown (ALS|SGD) parameter alfa/,
    ],
    [
      'a parameter that is a list',
      (one) => JSON.stringify(one).replaceAll('"seed":7', `"seed":${'['.repeat(1e5)}${']'.repeat(1e5)}`),
      /seed must be a whole number .* got an array/,
    ],
    ['other rounds', (one) => ({ ...one, rounds: 1e12 }), /rounds is 1000000000000 in the plan, and 2 here/],
  ])('for a plan with %s', async (_, change, pattern) => {
    await fails(2, pattern, ...train('--plan', fileOf(change(plan))));
  });

  it.each([
    [{}],
    [null],
    [{ kind: 'tile', rowBands: 1e9 }],
    [{ workers: 1e9 }],
    [{ rowBands: 3 }],
    [{ deviceBlocks: {} }],
  ])('for the schedule %j', async (change) => {
    const { schedule } = sgd.choices as { schedule: JsonObject };
    const changed = change === null || Object.keys(change).length === 0 ? change : { ...schedule, ...change };
    await fails(
      2,
      /the plan does not fit: its schedule .* does not exist for these ratings/,
      ...train('--plan', fileOf({ ...sgd, choices: { schedule: changed } })),
    );
  });

  it.each<[string, () => string, RegExp]>([
    ['is not there', () => join(folder, 'missing.json'), /no such file or folder \(.*missing\.json\)/],
    ['is a folder', () => folder, /folder/],
    ['is not JSON', () => fileOf('{"a": 1,}'), /the plan is not JSON: .* \(.*plan-\d+\.json\)/],
    ['is a list', () => fileOf([1]), /the plan is not a JSON object \(.*plan-\d+\.json\)/],
    ['holds no plan', () => fileOf({ plan: 3 }), /this is not a plan/],
    [
      'nests too deep',
      () => fileOf(`{"planVersion":6,"algorithm":"als","sizes":${'['.repeat(1e6)}${']'.repeat(1e6)}}`),
      /this plan has no usable sizes/,
    ],
    [
      'is too large',
      () => {
        const file = fileOf('{}');
        truncateSync(file, 65 * 2 ** 20);
        return file;
      },
      /plan: the file has 65\.0 MiB, more than 64\.0 MiB \(.*plan-\d+\.json\)/,
    ],
  ])('for a file that %s', async (_, file, pattern) => {
    await fails(2, pattern, ...train('--plan', file()));
  });
});

describe('plans for devices', () => {
  const hugewiki = argv`--users 50082603 --items 39780 --ratings 3101144313 --rank 100 --no-biases`;

  async function planned(...args: readonly string[]): Promise<JsonObject> {
    const { stdout, stderr, code } = await factorflow('plan', ...args, '--json', '--quiet');
    expect([code, stderr]).toEqual([0, '']);
    return (objectOf(stdout) as { plan: JsonObject }).plan;
  }

  describe('train --partition-users', () => {
    it('tells p, q, places and tasks in its JSON', async () => {
      const { stdout, stderr } = await factorflow(
        ...argv`train ${ratings} --rank 4 --max-iter 1 --device cpu --fake-devices 2 --partition-users
      2,2 --partition-items 2,2 --model-dir ${join(folder, 'model')} --json --quiet`,
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
      expect(
        rejected.some(({ name }) => name.endsWith('items by matrix-free CG that exchanges vectors')),
      ).toBe(true);
      expect(rejected.every(({ reason }) => reason !== '')).toBe(true);
      const rounds = plan.round as { name: string; at: string[]; tasks?: number; partitions?: JsonObject }[];
      const update = rounds.find(({ name }) => name === 'update-users');
      expect(update).toMatchObject({ partitions: { p: 1, q: update?.at.length }, tasks: 1 });
      expect(new Set(update?.at)).toEqual(new Set(['gpu:0', 'gpu:1', 'gpu:2', 'gpu:3']));
    });

    it('takes the folder for files, which it does not make', async () => {
      const spillDir = join(folder, 'spill/planned');
      const sized = [...hugewiki, '--devices', '4x80GB'];
      expect(await planned(...sized, '--spill-dir', spillDir)).toEqual(await planned(...sized));
      expect(existsSync(spillDir)).toBe(false);
    });

    it('takes it for devices of this machine as well', async () => {
      const spillDir = join(folder, 'spill');
      const plan = await planned(
        ...argv`--users 1000 --items 500 --ratings 10000 --device cpu --spill-dir ${spillDir}`,
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
          plan.round as {
            name: string;
            exchange: string;
            reasons?: string[];
            work: { groups?: string[][] };
          }[]
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
        argv`--devices 2x141GB --partition-sums vectors --partition-users 1,2 --partition-items 1,2`,
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
        ...argv`plan --users 1000 --items 900 --ratings 10000 --rank 20 --devices 2x12GB
      --partition-sums vectors`,
      );
    });
  });
});
