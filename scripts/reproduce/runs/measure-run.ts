import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import { type Flags, flagWords, runCommand } from '../run-command.ts';
import type { Iteration } from './course.ts';
import type { GeneratedRatings, RunDevice } from './generate-ratings.ts';
import type { Variant } from './published-run.ts';
import type { RunOptions } from './run-options.ts';

export interface MeasuredVariant {
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
  options: RunOptions,
  { kind }: RunDevice,
  folder: string,
  { label, flags: own }: Variant,
): MeasuredVariant {
  const { run, workFolder, seed, rank, small } = options;
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
