import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import { factorflow, fails, json, ratings, temporaryFolder } from '../run-cli.ts';

const folder = temporaryFolder();
const quick = ['--rank', '4', '--max-iter', '3', '--device', 'cpu'];

describe('plan', () => {
  it('of sgd gives the order of visits, the workers and the collisions', async () => {
    const { code, stdout } = await factorflow(
      'plan',
      ratings,
      '--algorithm',
      'sgd',
      '--workers',
      '2',
      ...quick,
    );
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Physical plan: sgd\n/);
    expect(stdout).toMatch(/11 +sgd-epoch +round +cpu +sgd-block blocks +8 x 8 +64 +3 /);
    expect(stdout).toMatch(/rate paper: γ_t = 0\.08 \/ \(1 \+ 0\.3 t\^1\.5\)/);
    expect(stdout).toMatch(
      /a block has one worker at a time; more than one would have to be far fewer than min\(⌊m\/i⌋, ⌊n\/j⌋\) = 1313/,
    );
  });

  it('without data, and with the measures of a run', async () => {
    const counts = await json(
      'plan',
      '--users',
      '480189',
      '--items',
      '17770',
      '--ratings',
      '99072112',
      '--algorithm',
      'sgd',
      '--schedule',
      'hogwild',
    );
    expect(counts).toMatchObject({
      plan: {
        algorithm: 'sgd',
        round: expect.arrayContaining([expect.objectContaining({ name: 'sgd-epoch' })]),
      },
    });
    const analyzed = await json('plan', ratings, '--analyze', '--algorithm', 'sgd', ...quick);
    const { measured, sizes } = analyzed.plan as PhysicalPlan;
    expect(measured?.['sgd-epoch'].rows).toBe(3 * sizes.ratings);
  });

  it('with --algorithm auto gives the rule and its figures', async () => {
    const small = await factorflow('plan', ratings, '--algorithm', 'auto', ...quick);
    expect(small.stdout).toMatch(
      /^Physical plan: als\n(.|\n)*algorithm auto: als, since the longer side has 6\.0 ratings a row/,
    );
    const large = await factorflow(
      'plan',
      '--users',
      '138493',
      '--items',
      '27278',
      '--ratings',
      '18000000',
      '--rank',
      '64',
      '--algorithm',
      'auto',
      '--device',
      'cpu',
    );
    expect(large.stdout).toMatch(
      /^Physical plan: sgd\n(.|\n)*algorithm auto: sgd; an iteration of ALS takes about .* s, 2 epochs of SGD, which do as much/,
    );
  });
});

describe('train --algorithm auto', () => {
  it('trains by its choice, and gives the reason', async () => {
    const { code, stdout, stderr } = await factorflow(
      'train',
      ratings,
      '--model-dir',
      join(folder, 'auto'),
      '--algorithm',
      'auto',
      ...quick,
    );
    expect(code).toBe(0);
    expect(stderr).toContain('algorithm auto: als, since');
    expect(stdout).toMatch(/^Trained ALS/);
  });
});

describe('flags that cannot be used exit with 2', () => {
  const train = ['train', ratings, '--model-dir', join(folder, 'never')];
  it.each<[string[], RegExp]>([
    [['--learning-rate', '0.1'], /--learning-rate cannot be used with --algorithm als. Give --algorithm sgd/],
    [
      ['--algorithm', 'als', '--reg-param-users', '0.1'],
      /--reg-param-users cannot be used with --algorithm als/,
    ],
    [
      ['--algorithm', 'sgd', '--solver', 'cg'],
      /--solver cannot be used with --algorithm sgd. Give --algorithm als/,
    ],
    [['--algorithm', 'sgd', '--nonnegative'], /--nonnegative cannot be used with --algorithm sgd/],
    [['--algorithm', 'auto', '--schedule', 'blocks'], /--schedule cannot be used with --algorithm auto/],
    [['--algorithm', 'auto', '--cg-steps', '2'], /--cg-steps cannot be used with --algorithm auto/],
    [
      ['--algorithm', 'sgd', '--rate', 'bold', '--decay', '1'],
      /--decay .* acts only with --rate paper, not with bold/,
    ],
    [['--algorithm', 'sgd', '--rate', 'fast'], /--rate must be paper, constant, bold or adagrad, got "fast"/],
    [
      ['--algorithm', 'sgd', '--schedule', 'rows'],
      /--schedule must be auto, hogwild, wavefront, .*got "rows"/,
    ],
    [
      ['--algorithm', 'sgd', '--schedule', 'tile', '--device', 'cpu'],
      /schedule tile cannot be used on the CPU/,
    ],
    [
      ['--algorithm', 'sgd', '--precision', 'f16', '--device', 'cpu'],
      /--precision f16 cannot be used with --device cpu, which computes in float32/,
    ],
    [['--algorithm', 'sgd', '--learning-rate', '0'], /--learning-rate must be a number above 0/],
    [
      ['--algorithm', 'sgd', '--reg-param', '1', '--reg-param-users', '1', '--reg-param-items', '1'],
      /--reg-param has no effect together with/,
    ],
    [['--algorithm', 'als', '--init-model', 'm'], /--init-model cannot be used with --algorithm als/],
    [['--init-model', 'm', '--rank', '3'], /--rank cannot be used with --init-model/],
    [['--init-model', 'm', '--no-biases'], /--no-biases cannot be used with --init-model/],
    [['--init-model', 'm', '--solver', 'cg'], /--solver cannot be used with --algorithm sgd/],
    [['--algorithm', 'ccd'], /--algorithm must be als, sgd or auto, got "ccd"/],
  ])('train %j', async (flags, pattern) => {
    await fails(2, pattern, ...train, ...flags);
  });
});
