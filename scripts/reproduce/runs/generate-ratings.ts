import { join } from 'node:path';
import { Session } from '../../../index.ts';
import { runCommand } from '../run-command.ts';
import type { RunOptions } from './run-options.ts';

/** Part of a preset's users and ratings that is generated if `--scale` is not given. */
const DEFAULT_SCALE = { gpu: 1, cpu: 0.02, small: 0.002 };

/** Device of the trainings; a GPU that computes on the processor counts as one for the scale. */
export interface RunDevice {
  readonly kind: 'cpu' | 'gpu';
  readonly description: string;
  readonly software: boolean;
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

interface Generated {
  readonly users: number;
  readonly items: number;
  readonly train: number;
  readonly test: number;
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
  const { output } = runCommand<Generated>(['generate'], {
    preset: run.preset,
    scale,
    seed,
    output: folder,
    force: true,
    quiet: true,
  });
  const { users, items, train, test, bestTestRmse } = output;
  return {
    folder,
    scale,
    scaleReason: reason,
    users,
    items,
    ratings: train,
    testRatings: test,
    bestTestRmse,
  };
}

function scaleOf({ scale, small }: RunOptions, { kind, software }: RunDevice) {
  if (scale !== undefined) return { scale, reason: 'as given' };
  if (small || software) return { scale: DEFAULT_SCALE.small, reason: small ? '--small' : 'a software GPU' };
  return { scale: DEFAULT_SCALE[kind], reason: `the default of a ${kind === 'gpu' ? 'GPU' : 'CPU'}` };
}
