import { parseSize } from '../../api/sizes.ts';
import type { AssumedDevice } from '../../api/training/plans/plan-of-problem.ts';
import { UsageError } from '../../engine/errors.ts';
import type { PhysicalPlan } from '../../index.ts';
import { text, toggle, wholeNumber } from '../options/kinds.ts';
import { grouped, type Values, refuseFlags } from '../options/option.ts';
import { reportOption } from '../options/output-options.ts';
import { algorithmOf, givenParams } from '../options/training/param-options.ts';
import {
  fitCheckpoints,
  checkTraining,
  initModelOption,
  trainingOptions,
} from '../options/training/training-options.ts';
import { openSession } from '../sessions/open-session.ts';
import { trainerOf, trainingSets } from '../sessions/trainer.ts';
import { type CommandContext, defineCommand, inputFiles, words } from './command.ts';

const counts = { least: 1, most: Number.MAX_SAFE_INTEGER };

const options = {
  ...grouped('Without data:', {
    users: wholeNumber('number of users m', counts),
    items: wholeNumber('number of items n', counts),
    ratings: wholeNumber('number of ratings Nz', counts),
    devices: text(
      "GPUs to assume instead of this machine's, with their memory: 4x12GB, 80GB,141GB, or 2x4x12GB " +
        'for two sockets; estimates the time of an iteration, --memory-budget limits the host',
    ),
  }),
  ...grouped('Options:', {
    analyze: toggle('also train, and print measured next to planned figures; saves nothing'),
  }),
  ...trainingOptions,
  initModel: initModelOption,
  ...grouped('Output:', {
    modelDir: text(
      'flag of train, accepted so that the same command or configuration can be planned; nothing is written',
    ),
    force: toggle('flag of train, without effect here'),
  }),
  report: reportOption,
};

type PlanValues = Values<typeof options>;

/** Flags that only affect ratings. */
const dataFlags = [
  'userCol',
  'itemCol',
  'ratingCol',
  'timestampCol',
  'onDuplicates',
  'onBadRows',
  'parquetBackend',
  'test',
  'testLeaveOut',
  'testBy',
  'analyze',
  'initModel',
] as const;

export const command = defineCommand({
  summary: 'Show what a training run would do, and why',
  positionals: [
    words('paths', `${inputFiles}; none with --users, --items and --ratings`, { required: false }),
  ],
  options,
  examples: [
    ['plan ratings/ --rank 64', 'count users and items, then plan'],
    ['plan ratings/ --rank 64 --analyze', 'run it as well, and compare'],
    ['plan --users 480189 --items 17770 --ratings 99072112 --rank 100', 'without data'],
    [
      'plan --users 50082603 --items 39780 --ratings 3101144313 --rank 100 --devices 4x80GB',
      'on devices that are not there',
    ],
  ],
  run: async ({ values, given, positionals }, context) => {
    checkTraining(values, given);
    const { physical, planned } =
      positionals.paths.length > 0
        ? await planOfData(positionals.paths, values, given, context)
        : sameOf(await planOfCounts(values, given, context));
    const { ExplainedPlan } = await import('../../api/training/plans/explained-plan.ts');
    const { comparedMemory } = await import('../../api/reports/training-report.ts');
    const report =
      values.report === undefined ? undefined : (await import('../page/sections/plan.ts')).planPage(physical);
    return {
      json: {
        command: 'plan',
        analyzed: values.analyze,
        ...(values.analyze ? { memory: comparedMemory(physical) } : {}),
        plan: JSON.parse(JSON.stringify(planned)),
      },
      text: String(new ExplainedPlan(physical)),
      report,
    };
  },
});

/**
 * A plan for display, and the plan that train --plan accepts. After a run they differ: the first one is bound
 * to the data.
 */
interface Plans {
  readonly physical: PhysicalPlan;
  readonly planned: PhysicalPlan;
}

function sameOf(plan: PhysicalPlan): Plans {
  return { physical: plan, planned: plan };
}

async function planOfData(
  paths: readonly string[],
  values: PlanValues,
  given: ReadonlySet<string>,
  context: CommandContext,
): Promise<Plans> {
  const instead = 'Give --users, --items and --ratings in place of the paths';
  refuseFlags(given, ['devices'], 'acts only without data', instead);
  refuseFlags(
    given,
    ['users', 'items', 'ratings'],
    'and paths of ratings exclude each other',
    'Leave the counts out: they come from the ratings',
  );
  const { signal, onEvent, profile } = context;
  const trainer = await trainerOf(values, given);
  await using session = await openSession(values, { signal, profile });
  const { train, test } = await trainingSets(session, paths, values, context);
  const ready = await trainer.prepare(session, train, context);
  const because = (physical: PhysicalPlan): PhysicalPlan =>
    ready.reason === undefined ? physical : { ...physical, reasons: [ready.reason, ...physical.reasons] };
  if (!values.analyze)
    return sameOf(
      because(
        (await ready.plan(train, { validation: test, signal, onEvent, ...fitCheckpoints(values) })).plan,
      ),
    );
  const { training } = await ready.fit(train, { validation: test, signal, onEvent });
  if (training === undefined) throw new Error('a model that was just trained has no report');
  const { plan: physical, planned } = training;
  return { physical: because(physical), planned: because({ ...planned, measured: physical.measured }) };
}

async function planOfCounts(
  values: PlanValues,
  given: ReadonlySet<keyof typeof options>,
  { signal, profile: times }: CommandContext,
): Promise<PhysicalPlan> {
  const { users, items, ratings, testFraction = 0 } = values;
  if (users === undefined || items === undefined || ratings === undefined) {
    throw new UsageError('a plan needs paths of ratings, or all of --users, --items and --ratings', {
      advice: 'See factorflow plan --help',
    });
  }
  refuseFlags(given, dataFlags, 'acts only with paths of ratings', 'Leave it out, or name the ratings');
  const { planOfAssumed, planOfProblem } = await import('../../api/training/plans/plan-of-problem.ts');
  const testRatings = Math.round(ratings * testFraction);
  const profile = {
    users,
    items,
    ratings: ratings - testRatings,
    ...(testFraction > 0 ? { testRatings } : {}),
  };
  const problem = {
    profile,
    algorithm: algorithmOf(values),
    als: givenParams('als', values, given),
    sgd: givenParams('sgd', values, given),
    checkpoints: fitCheckpoints(values),
  };
  if (values.devices !== undefined)
    return planOfAssumed(
      problem,
      assumedDevicesOf(values.devices, given),
      given.has('memoryBudget') ? values.memoryBudget : undefined,
    );
  // Nothing is written, so the folder need not exist.
  await using session = await openSession({ ...values, spillDir: undefined }, { signal, profile: times });
  return await planOfProblem(problem, session);
}

/** Most devices of a plan. */
const MOST_DEVICES = 64;

/** Parses --devices: "4x12GB", or a list of their memory. Throws UsageError for flags of real devices. */
function assumedDevicesOf(devices: string, given: ReadonlySet<string>): AssumedDevice[] {
  refuseFlags(
    given,
    ['device', 'deviceMemory', 'workers', 'fakeDevices'],
    'cannot be used with --devices',
    'Leave one of them out',
  );
  return devices.split(',').flatMap(devicesOf);
}

/** "4x12GB", or "2x4x12GB" for two sockets with four devices each. */
function devicesOf(text: string): AssumedDevice[] {
  const [, sockets, each = '1', size] =
    /^\s*(?:(\d{1,3})\s*x\s*(?=\d{1,3}\s*x))?(?:(\d{1,3})\s*x)?\s*(.+)$/i.exec(text) ?? [];
  const count = Number(each) * Number(sockets ?? 1);
  if (size !== undefined && /^[\d.]+$/.test(size))
    throw new UsageError(`--devices needs a unit of memory after ${size}`, {
      advice: 'Write 4x12GB, or 4x12GiB',
    });
  if (size === undefined || count < 1 || count > MOST_DEVICES)
    throw new UsageError(`--devices must be devices with their memory, got ${JSON.stringify(text)}`, {
      advice: `Give up to ${MOST_DEVICES} of them, such as 4x12GB, 80GB,141GB, or 2x4x12GB for two sockets`,
    });
  return Array.from({ length: count }, (_, n) => ({
    bytes: parseSize(size, '--devices'),
    ...(sockets === undefined ? {} : { socket: Math.floor(n / Number(each)) }),
  }));
}
