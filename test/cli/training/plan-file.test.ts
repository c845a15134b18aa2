import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../engine/json.ts';
import { everyNth } from '../../support/deep.ts';
import { factorflow, fails, objectOf, ratings, temporaryFolder, writeParquet } from '../run-cli.ts';

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
    'train',
    ...args,
    '--model-dir',
    directory,
    '--device',
    'cpu',
    '--quiet',
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
          [
            '--algorithm',
            'sgd',
            '--schedule',
            'wavefront',
            '--workers',
            '1',
            '--reg-param-users',
            '0.1',
            '--reg-param-items',
            '0.2',
          ],
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
      for (const part of name === 'als' ? ['metadata', 'metadata/part-00000'] : [])
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
  const train = (...args: readonly string[]) => [
    'train',
    repeated,
    '--model-dir',
    join(folder, 'never'),
    '--device',
    'cpu',
    ...args,
  ];
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
    for (const one of [plan, sgd]) await fails(2, pattern, ...train('--plan', fileOf(change(one))));
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
