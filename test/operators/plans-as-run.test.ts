/** Plans with bound data have the number of tasks of every stage that ran. */
import { expect, it } from 'vitest';
import { stageNamed, stagesOf } from '../../engine/plan/physical-plan.ts';
import { ALS, type Model, SGD, type SgdOptions } from '../../index.ts';
import { checkAlsParams } from '../../operators/als/params.ts';
import { planAls } from '../../operators/als/plan/plan-als.ts';
import { cpuInfo } from '../support/devices/device-info.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';
import { cpuSession } from '../support/cpu-session.ts';

const session = await cpuSession();

const rows = randomRatings(5, 900, 3, 12_000).map(({ user, item, rating }, at) => ({
  user,
  item: item + (at % 40 === 0 ? 1 : 0),
  rating,
}));

/** Stages with another number of tasks in the run than in the plan. */
function wrong({ training }: Model): string[] {
  const { plan, iterations } = training!;
  return stagesOf(plan).flatMap(({ phase, stage: { name, work, tasks } }) => {
    if (phase === 'load' || work?.kind === 'exchange' || work?.kind === 'allocate') return [];
    const of = (one: string) =>
      stagesOf(plan).filter((other) => other.phase !== 'load' && other.stage.name === one);
    const planned = of(name).reduce(
      (sum, other) => sum + (other.stage.tasks ?? Number.NaN) * (other.times === 1 ? 1 : iterations.length),
      0,
    );
    return planned === plan.measured?.[name]?.runs
      ? []
      : [`${name}: ${tasks} tasks, ${planned} in all, and ${plan.measured?.[name]?.runs} ran`];
  });
}

const train = (trainer: ALS | SGD) =>
  trainer.fit(session.from(ratingBatches(rows)), {
    validation: session.from(ratingBatches(rows.slice(0, 5000))),
  });

it('by ALS', async () => {
  expect(wrong(await train(new ALS({ rank: 3, maxIter: 3, biases: true })))).toEqual([]);
});

it.each<SgdOptions>([{}, { schedule: 'hogwild', rate: 'adagrad', earlyStop: 1 }])(
  'by SGD, %j',
  async (options) => {
    expect(wrong(await train(new SGD({ rank: 3, maxIter: 3, ...options })))).toEqual([]);
  },
);

it('has no more tasks than rows before the data are known too', () => {
  const plan = planAls({ users: 20_000, items: 50, ratings: 1_000_000 }, checkAlsParams({}), {
    compute: [cpuInfo],
    host: cpuInfo,
  });
  expect(
    ['update-items', 'update-users', 'penalty-items', 'train-error'].map(
      (name) => stageNamed(plan, name).tasks,
    ),
  ).toEqual([50, 128, 50, 128]);
});
