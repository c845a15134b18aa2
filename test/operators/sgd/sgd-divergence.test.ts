import { describe, expect, it } from 'vitest';
import {
  type Dataset,
  DivergedError,
  type Model,
  type ProgressEvent,
  SGD,
  type SgdOptions,
  UsageError,
} from '../../../index.ts';
import { plantedRatings } from '../../support/planted.ts';
import { randomRatings, ratingBatches, type Triple } from '../../support/ratings.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { valuesOf as factors } from '../../support/model-values.ts';

const session = await cpuSession();

const dataset = (rows: readonly Triple[], of = session): Dataset => of.from(ratingBatches(rows, 997));

describe('divergence', () => {
  const rows = plantedRatings(19, 150, 100, 5000);

  async function events(
    options: SgdOptions,
    of: readonly Triple[] = rows,
  ): Promise<{ model: Model; warnings: string[] }> {
    const warnings: string[] = [];
    const onEvent = (event: ProgressEvent) => event.type === 'warning' && warnings.push(event.text);
    return {
      model: await new SGD(options).fit(dataset(of), { onEvent: (event) => void onEvent(event) }),
      warnings,
    };
  }

  it('halves the rate and runs the epoch again from the last good one', async () => {
    const { model, warnings } = await events({ rank: 8, learningRate: 0.8, rate: 'constant', maxIter: 5 });
    expect(warnings.length).toBeGreaterThan(0);
    expect(warnings[0]).toMatch(/epoch \d diverged: the loss is .*half the learning rate, 0\.4$/);
    const { iterations = [] } = model.training ?? {};
    expect(iterations.map(({ iteration }) => iteration)).toEqual([1, 2, 3, 4, 5]);
    expect(factors(model.userFactors).every(Number.isFinite)).toBe(true);
    iterations.slice(1).forEach(({ loss }, i) => expect(loss).toBeLessThanOrEqual(1.1 * iterations[i].loss));
  });

  it.each([true, false])('is not the penalty of the start on sparse ratings, biases %s', async (biases) => {
    const sparse = randomRatings(4, 700, 10_000, 20_000);
    const { model, warnings } = await events({ rank: 64, biases, maxIter: 3 }, sparse);
    expect(warnings.filter((text) => text.includes('diverged'))).toEqual([]);
    const losses = model.training?.iterations.map(({ loss }) => loss) ?? [];
    expect(losses).toEqual([...losses].sort((left, right) => right - left));
  });

  it('ends with DivergedError after three restarts', async () => {
    const run = events({ rank: 8, learningRate: 1e5, maxIter: 5 });
    await expect(run).rejects.toThrow(DivergedError);
    await expect(run).rejects.toThrow(
      /epoch 1: the loss is .* 3 runs at halved learning rates.*Lower learningRate \(α\), which is 100000/,
    );
  });
});

describe('parameters', () => {
  it.each<[object, RegExp]>([
    [{ rank: 0 }, /rank must be a whole number from 1 to 4,096/],
    [{ learningRate: 0 }, /learningRate \(α\) must be a number above 0/],
    [{ decay: -1 }, /decay must be a number of 0 or more/],
    [{ rate: 'constant', decay: 0.1 }, /decay \(β\) acts only with rate paper, not with constant/],
    [{ rate: 'linear' }, /rate must be paper, constant, bold or adagrad/],
    [{ schedule: 'rows' }, /schedule must be auto, hogwild, wavefront, .*got "rows"/],
    [{ regParam: 1, regParamUsers: 1, regParamItems: 1 }, /regParam has no effect together with/],
    [{ solver: 'cg' }, /unknown SGD parameter solver/],
    [{ epochs: 5 }, /unknown SGD parameter epochs\. Did you mean maxIter\?/],
    [{ earlyStop: 0 }, /earlyStop/],
  ])('%j are refused', (options, pattern) => {
    expect(() => new SGD(options as SgdOptions)).toThrow(UsageError);
    expect(() => new SGD(options as SgdOptions)).toThrow(pattern);
  });
});
