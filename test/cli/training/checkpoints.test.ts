import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { killedRuns, spillingRun } from '../../support/damage/killed-runs.ts';
import { isDeep } from '../../support/deep.ts';
import { refusals, argv, fails, factorflow, json, ratings, start } from '../run-cli.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const here = (name: string) => join(folder, name);
const train = (model: string, ...more: string[]) =>
  argv`train ${ratings} --model-dir ${here(model)} --rank 4 --device cpu ${more}`;

// A sample of bench/cases/kills.ts.
/** Milliseconds for a test of several whole runs of the command, on a machine that does other work too. */
const SEVERAL_RUNS = 180_000;

describe.runIf(isDeep)('runs that are killed after their first checkpoint', () => {
  it.each([
    ['als', ['--rank', '16', '--solver', 'cg', '--max-iter', '12']],
    ['sgd', argv`--algorithm sgd --schedule wavefront --rate adagrad --rank 16 --max-iter 12`],
  ])(
    'give the same model bit for bit by %s once they are resumed, and leave nothing',
    { timeout: SEVERAL_RUNS },
    async (name, flags) => {
      mkdirSync(here(`killed-${name}`));
      const kills = await killedRuns({
        train: ['train', ratings, '--device', 'cpu', ...flags],
        interval: 2,
        kills: 1,
        seed: 5,
        folder: here(`killed-${name}`),
      });
      expect(kills).toMatchObject([{ differing: [], left: [] }]);
      // Iterations since the last complete checkpoint: at most one interval, and another one while the next
      // checkpoint was being written.
      for (const { told, resumedFrom } of kills) expect(told - resumedFrom).toBeLessThanOrEqual(4);
    },
  );
});

it.runIf(isDeep)(
  'a run whose ratings lie in files is resumed like others, and its files go',
  { timeout: SEVERAL_RUNS },
  async () => {
    mkdirSync(here('killed-files'));
    const kills = await killedRuns({
      train: spillingRun(here('killed-files'), 10),
      interval: 2,
      kills: 1,
      seed: 6,
      folder: here('killed-files'),
    });
    expect(kills).toMatchObject([{ differing: [], left: [] }]);
  },
);

describe('a run that is stopped', () => {
  it('keeps its last checkpoint, says how to go on, and goes on', async () => {
    const flags = ['--checkpoint-dir', here('stopped'), '--checkpoint-interval', '2'];
    const stopped = start(train('stopped-model', '--max-iter', '100000', ...flags));
    await stopped.stderrMatches(/iteration 5\//);
    stopped.child.kill('SIGINT');
    const { code, stderr } = await stopped.outcome;
    expect(code).toBe(130);
    expect(stderr).toMatch(
      /^factorflow: .*cancelled\. The checkpoint of iteration \d+ is .*checkpoint-\d{8}: continue from it with --resume$/m,
    );
    const iteration = Number(/checkpoint of iteration (\d+)/.exec(stderr)?.[1]);
    expect(iteration).toBeGreaterThanOrEqual(4);
    expect(readdirSync(here('stopped')).every((name) => name.startsWith('checkpoint-'))).toBe(true);
    const more = String(iteration + 1);
    const { resumedFrom, iterations } = await json(
      ...train('resumed-model', '--max-iter', more, ...flags, '--resume'),
    );
    expect(resumedFrom).toEqual({
      iteration,
      checkpoint: join(here('stopped'), `checkpoint-${String(iteration).padStart(8, '0')}`),
      planChanges: [],
    });
    expect(iterations).toHaveLength(iteration + 1);
  });

  it('with --resume starts from the beginning where there is no checkpoint', async () => {
    const { code, stdout, stderr } = await factorflow(
      ...train('first', '--max-iter', '2', '--checkpoint-dir', here('first-checkpoints'), '--resume'),
    );
    expect(code).toBe(0);
    expect(stderr).toContain(
      `no checkpoint in ${here('first-checkpoints')}: training starts from the beginning`,
    );
    expect(stdout).toMatch(/resumed +no checkpoint was there, from the beginning/);
    expect(
      await json(
        ...train('second', '--max-iter', '2', '--checkpoint-dir', here('second-checkpoints'), '--resume'),
      ),
    ).toMatchObject({ resumedFrom: null });
    expect(
      await json(...train('third', '--max-iter', '2', '--checkpoint-dir', here('third-checkpoints'))),
    ).not.toHaveProperty('resumedFrom');
  });
});

it('two runs do not use one folder: the second ends with 2 and names the first', async () => {
  const flags = ['--checkpoint-dir', here('shared'), '--checkpoint-interval', '1', '--max-iter', '100000'];
  const first = start(train('shared-model', ...flags));
  await first.stderrMatches(/iteration 1\//);
  const { code, stderr } = await factorflow(...train('other-model', ...flags, '--resume', '--quiet'));
  expect(stderr).toMatch(
    new RegExp(
      `^factorflow: the folder is in use by process ${first.child.pid} on this machine, since 20.*lock\\)\\. Wait until it has ended`,
    ),
  );
  expect(code).toBe(2);
  first.child.kill('SIGINT');
  expect((await first.outcome).code).toBe(130);
});

describe('flags of checkpoints', () => {
  it('are refused where they cannot be used', async () => {
    for (const [args, pattern] of refusals`
      ${train('never', '--checkpoint-interval', '2')} | --checkpoint-interval acts only with --checkpoint-dir
      ${train('never', '--resume')} | --resume acts only with --checkpoint-dir
      train ${ratings} --model-dir ${here('never')} --init-model ${here('any')} --checkpoint-dir ${here('c')} | --checkpoint-dir cannot be used with --init-model
    `)
      await fails(2, pattern, ...args);
    writeFileSync(here('a-file'), '');
    await fails(
      2,
      /--checkpoint-dir .*a-file is not a folder/,
      ...train('never', '--checkpoint-dir', here('a-file')),
    );
  });

  it('show in the plan, of data and of counts alone', async () => {
    const flags = ['--checkpoint-dir', here('planned'), '--checkpoint-interval', '4', '--device', 'cpu'];
    for (const of of [[ratings], ['--users', '1000', '--items', '500', '--ratings', '20000']]) {
      const { stdout } = await factorflow('plan', ...of, ...flags);
      expect(stdout).toMatch(/write-checkpoint +checkpoint +host .* 3 /);
      expect(stdout).toContain('the last two checkpoints are kept');
    }
    expect(readdirSync(folder)).not.toContain('planned');
  });
});
