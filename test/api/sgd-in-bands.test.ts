/** SGD on more ratings than one block has: in bands of rows, each a block of its own. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { hostMeter } from '../../engine/run/memory-meter.ts';
import { CancelledError, CapacityError, Model, Session, SGD, type SgdOptions } from '../../index.ts';
import { blockLimit } from '../../operators/planner/sizes.ts';
import { ratingBatches } from '../support/ratings.ts';
import { fit, last, LIMIT, scheduleOf, current, train, usual } from './banded-sgd.ts';

const factorsOf = ({ userFactors, itemFactors }: Model) =>
  [userFactors, itemFactors].map((batch) => batch.data.children[1].children[0].values as Float32Array);

const measuresOf = ({ training }: Model) =>
  training!.iterations.map(({ loss, trainRmse, testRmse }) => [
    loss,
    trainRmse as number,
    testRmse as number,
  ]);

describe('ratings that one block does not have, on a CPU', () => {
  beforeAll(async () => {
    current.session = await Session.create({ device: 'cpu', workers: 2 });
  });

  it.each<SgdOptions>([
    {},
    { biases: false },
    { biases: false, rate: 'adagrad', learningRate: 0.2 },
    { earlyStop: 1, regOffset: 0.2 },
    { schedule: 'blocks', regParamUsers: 0.02, regParamItems: 0.2 },
  ])('give the bits of one block: %j', async (options) => {
    const [bands, whole] = [await fit(LIMIT, options), await fit(usual, options)];
    expect(scheduleOf(bands.training!.plan)).toMatchObject({ rowBands: 8, inBands: true });
    expect(
      bands
        .training!.plan.datasets.filter(({ name }) => ['rows', 'ratings', 'tests'].includes(name))
        .map(({ parts }) => parts.length),
    ).toEqual([8, 8, 8]);
    expect(factorsOf(bands)).toEqual(factorsOf(whole));
    // Errors are summed in slices of each band.
    measuresOf(bands).forEach((measures, epoch) =>
      measures.forEach((value, k) =>
        expect(Math.abs(value / measuresOf(whole)[epoch][k] - 1)).toBeLessThan(1e-9),
      ),
    );
    expect(bands.training!.ratings).toBe(train.length);
  });

  it('give them where items are the rows, and where rows are fewer than usual bands', async () => {
    for (const rows of [
      train.map(({ user, item, rating }) => ({ user: item, item: user, rating })),
      train.filter(({ user }) => user < 100),
    ]) {
      const [bands, whole] = [
        await fit(1000, {}, { validation: undefined }, rows),
        await fit(usual, {}, { validation: undefined }, rows),
      ];
      expect(scheduleOf(bands.training!.plan).inBands).toBe(true);
      if (scheduleOf(bands.training!.plan).rowBands === 8) expect(factorsOf(bands)).toEqual(factorsOf(whole));
      else expect(Math.abs(last(bands).trainRmse! / last(whole).trainRmse! - 1)).toBeLessThan(0.02);
    }
  });

  it('go on from a checkpoint to the same bits', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'bands-'));
    try {
      await fit(LIMIT, { maxIter: 2 }, { checkpointDir: folder, checkpointInterval: 1 });
      const [resumed, whole] = [
        await fit(LIMIT, { maxIter: 4 }, { checkpointDir: folder, checkpointInterval: 1, resume: true }),
        await fit(LIMIT, { maxIter: 4 }),
      ];
      expect(factorsOf(resumed)).toEqual(factorsOf(whole));
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('are saved, loaded and judged as the model that was trained', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'bands-'));
    try {
      const model = await fit(LIMIT);
      await model.save(join(folder, 'model'));
      const loaded = await Model.load(current.session!, join(folder, 'model'));
      expect(factorsOf(loaded)).toEqual(factorsOf(model));
      expect((await loaded.evaluate(current.session!.from(ratingBatches(train)))).rmse).toBeCloseTo(
        last(model).trainRmse!,
        4,
      );
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('have repeated pairs treated by the policy, band by band', async () => {
    const rows = [...train, ...train.slice(0, 700).map((one) => ({ ...one, rating: one.rating + 1 }))];
    const blocks = (limit: number) => {
      blockLimit.ratings = limit;
      return new SGD({ rank: 6, maxIter: 2, seed: 3, onDuplicates: 'mean' }).fit(
        current.session!.from(ratingBatches(rows)),
      );
    };
    const [bands, whole] = [await blocks(LIMIT), await blocks(usual)];
    expect(bands.training!.ratings).toBe(whole.training!.ratings);
    expect(Math.abs(last(bands).loss / last(whole).loss - 1)).toBeLessThan(0.02);
    blockLimit.ratings = LIMIT;
    await expect(
      new SGD({ rank: 4, onDuplicates: 'error' }).fit(current.session!.from(ratingBatches(rows))),
    ).rejects.toThrow(/repeat an earlier \(user, item\) pair/);
  });

  it('are refused where they must be one block, with figures', async () => {
    await expect(fit(LIMIT, { schedule: 'hogwild' })).rejects.toThrow(
      /schedule hogwild needs 7,469 ratings in one block, and a block has at most 2,500\. Leave the schedule out/,
    );
    await expect(fit(LIMIT, { schedule: 'wavefront' })).rejects.toThrow(CapacityError);
    await expect(fit(LIMIT, { earlyStop: 1, earlyStopMetric: 'ndcg@5' })).rejects.toThrow(CapacityError);
    const model = await fit(usual);
    blockLimit.ratings = LIMIT;
    await expect(model.update(current.session!.from(ratingBatches(train)))).rejects.toThrow(
      /do not fit into one block, which tune, cross-validation and updates of a model need/,
    );
  });

  it('leave nothing behind a cancel, nor behind a failure', async () => {
    const before = hostMeter.now;
    const controller = new AbortController();
    await expect(
      fit(
        LIMIT,
        { maxIter: 10_000 },
        {
          signal: controller.signal,
          onEvent: (event) =>
            void (event.type === 'iteration' && event.iteration === 2 && controller.abort()),
        },
      ),
    ).rejects.toBeInstanceOf(CancelledError);
    expect(hostMeter.now).toBe(before);
    await expect(fit(LIMIT, { learningRate: 1e6, rate: 'constant' })).rejects.toThrow(
      /diverge|not finite|did not lower/,
    );
    expect(hostMeter.now).toBe(before);
    expect((await fit(LIMIT)).training!.iterations).toHaveLength(3);
  });
});
