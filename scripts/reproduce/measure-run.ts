import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import { Session } from '../../index.ts';
import { type Flags, flagWords, runCommand } from './command.ts';
import type { RunOptions } from './options.ts';
import type { Variant } from './runs.ts';

/** Part of a preset's users and ratings that is generated if `--scale` is not given. */
const DEFAULT_SCALE = { gpu: 1, cpu: 0.02, small: 0.002 };

/** Device of the trainings; a GPU that computes on the processor counts as one for the scale. */
interface RunDevice {
  readonly kind: 'cpu' | 'gpu';
  readonly description: string;
  readonly software: boolean;
}

/** An iteration or epoch of a training. */
export interface Iteration {
  readonly iteration: number;
  /** Of this iteration alone. */
  readonly seconds: number;
  readonly loss: number;
  readonly testRmse: number;
}

export interface GeneratedRatings {
  readonly folder: string;
  readonly scale: number;
  /** By the device, or as given. */
  readonly scaleReason: string;
  readonly users: number;
  readonly items: number;
  readonly ratings: number;
  readonly testRatings: number;
  /** Test RMSE of the factors that the ratings are made of: no model can be expected to be below. */
  readonly bestTestRmse: number;
}

export async function findDevice(requested: RunOptions['device']): Promise<RunDevice> {
  const session = await Session.create({ device: requested });
  try {
    const { kind, description, adapter, warning } = session.device;
    const software = kind === 'gpu' && warning !== undefined;
    return { kind, description: kind === 'gpu' ? (adapter ?? description) : description, software };
  } finally {
    await session.close();
  }
}

export function generateRatings(options: RunOptions, device: RunDevice): GeneratedRatings {
  const { run, workFolder, seed } = options;
  const { scale, reason } = scaleOf(options, device);
  const folder = join(workFolder, 'ratings');
  const flags = { preset: run.preset, scale, seed, output: folder, force: true, quiet: true } as const;
  const { output } = runCommand<Record<'users' | 'items' | 'train' | 'test' | 'bestTestRmse', number>>(
    ['generate'],
    flags,
  );
  const { users, items, train: ratings, test: testRatings, bestTestRmse } = output;
  return { folder, scale, scaleReason: reason, users, items, ratings, testRatings, bestTestRmse };
}

function scaleOf({ scale, small }: RunOptions, { kind, software }: RunDevice) {
  if (scale !== undefined) return { scale, reason: 'as given' };
  if (small || software) return { scale: DEFAULT_SCALE.small, reason: small ? '--small' : 'a software GPU' };
  return { scale: DEFAULT_SCALE[kind], reason: `the default of a ${kind === 'gpu' ? 'GPU' : 'CPU'}` };
}

interface MeasuredVariant {
  readonly label: string;
  /** Flags of `train`, without files and folders. */
  readonly flags: string;
  readonly iterations: readonly Iteration[];
}

/** A result of the command, as scripts/reproduce/results/NAME.json keeps it. */
export interface MeasuredRun {
  readonly device: RunDevice;
  readonly ratings: Omit<GeneratedRatings, 'folder'>;
  readonly variants: readonly MeasuredVariant[];
  /** The machine's cores, and its load average of the last minute at the end. */
  readonly load: { readonly average: number; readonly cores: number };
}

/** True if other programs ran: then seconds are upper bounds, and ratios between variants mean little. */
export function wasBusy({ load: { average, cores } }: MeasuredRun): boolean {
  return average > 1.5 * cores;
}

/** The machine's load during a run, in a sentence. */
export function describeLoad(measured: MeasuredRun): string {
  const { average, cores } = measured.load;
  const load = `Load average ${average} on ${cores} cores at the end`;
  return wasBusy(measured)
    ? `${load}: other programs ran, so seconds are upper bounds, and times of variants are not comparable.`
    : `${load}.`;
}

/** The generated ratings, in a sentence that says what they are not. */
export function describeRatings(preset: string, ratings: Omit<GeneratedRatings, 'folder'>): string {
  const count = (value: number) => value.toLocaleString('en-US');
  return (
    `generated in the shape of ${preset}, scale ${ratings.scale} (${ratings.scaleReason}): ` +
    `${count(ratings.users)} users, ${count(ratings.items)} items, ${count(ratings.ratings)} ratings and ` +
    `${count(ratings.testRatings)} test ratings; the factors that they are made of have test RMSE ` +
    `${ratings.bestTestRmse.toFixed(4)}`
  );
}

/** Trains by each variant that the device has, one after the other. */
export function measureVariants(
  options: RunOptions,
  device: RunDevice,
  { folder, ...ratings }: GeneratedRatings,
): MeasuredRun {
  const variants = options.run.variants.filter(({ only = device.kind }) => only === device.kind);
  return {
    device,
    ratings,
    variants: variants.map((variant) => measureVariant(options, device, folder, variant)),
    load: { average: Math.round(loadavg()[0] * 10) / 10, cores: availableParallelism() },
  };
}

function measureVariant(
  { run, workFolder, seed, rank, small }: RunOptions,
  { kind }: RunDevice,
  folder: string,
  { label, flags: own }: Variant,
): MeasuredVariant {
  const flags: Flags = {
    device: kind,
    ...run.flags,
    ...(small && { rank: 8 }),
    ...(rank !== undefined && { rank }),
    ...own,
    'max-iter': small ? 3 : run.iterations,
    seed,
  };
  const { output } = runCommand<{ readonly iterations: readonly Iteration[] }>(
    ['train', join(folder, 'train')],
    {
      test: join(folder, 'test'),
      'model-dir': join(workFolder, 'model'),
      ...flags,
      'no-ranking': true,
      force: true,
      quiet: true,
    },
  );
  const iterations = output.iterations.map(({ iteration, seconds, loss, testRmse }) => ({
    iteration,
    seconds,
    loss,
    testRmse,
  }));
  return { label, flags: flagWords(flags).join(' '), iterations };
}
