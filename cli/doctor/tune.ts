import type { RatingsTuning } from '../../api/training/tune-ratings.ts';
import { publicPath } from '../../engine/errors.ts';
import { counted, formatCount } from '../../engine/format.ts';
import type { AlsOptions, JsonObject } from '../../index.ts';
import { checkAlsParams } from '../../operators/als/params.ts';
import type { CommandContext, CommandResult } from '../commands/command.ts';
import { openSession } from '../sessions/open-session.ts';

type SideTunings = RatingsTuning['tunings'][number];
type KernelTuning = NonNullable<SideTunings['users']>;

export interface TuneRequest {
  readonly rank: readonly number[];
  readonly solver: NonNullable<AlsOptions['solver']>;
  readonly biases: boolean;
  readonly paths: readonly string[];
  readonly columns: { readonly [Name in 'userCol' | 'itemCol' | 'ratingCol']: string | undefined };
}

/** Ratings in the shape of MovieLens-20M: 4 million, or 20,000 for a software GPU. */
const GENERATED = { preset: 'movielens20m', scale: { hardware: 0.2, software: 0.001 } };

/** Times every kernel on given or generated ratings, and stores the fastest for similar problems. */
export async function tune(
  { rank, solver, biases, paths, columns }: TuneRequest,
  { signal, onEvent }: CommandContext,
): Promise<CommandResult> {
  const wanted = rank.map((one) => checkAlsParams({ rank: one, solver, biases }));
  await using session = await openSession({ device: 'gpu', workers: undefined }, { signal });
  const { generatedRatings, tuneRatings } = await import('../../api/training/tune-ratings.ts');
  const scale = session.device.warning === undefined ? GENERATED.scale.hardware : GENERATED.scale.software;
  const ratings =
    paths.length > 0
      ? await session.read.any(paths)
      : session.source(generatedRatings(GENERATED.preset, scale));
  const of = paths.length > 0 ? paths.map(publicPath).join(' ') : `generated, ${GENERATED.preset} x ${scale}`;
  const {
    users,
    items,
    ratings: count,
    tunings,
  } = await tuneRatings(ratings, wanted, columns, { signal, onEvent });
  const tables = tunings.flatMap((sides, i) => tablesOf(rank[i], sides));
  return {
    json: {
      command: 'doctor',
      adapter: session.device.description,
      data: { of, users, items, ratings: count },
      tunings: tables.map(({ rank, side, tuning }) => ({ rank, side, ...tuning }) as unknown as JsonObject),
    },
    text: [
      `  ${session.device.description}`,
      `  ${counted(count, 'rating')} of ${counted(users, 'user')} and ${counted(items, 'item')} (${of})`,
      ...tables.map(({ text }) => text),
    ].join('\n'),
  };
}

function tablesOf(rank: number, { users, items }: SideTunings) {
  return Object.entries({ users, items }).flatMap(([side, tuning]) =>
    tuning === undefined ? [] : [{ rank, side, tuning, text: tableOf(rank, side, tuning) }],
  );
}

/** A line for each variant, fastest first. */
function tableOf(
  rank: number,
  side: string,
  { times, rows, ratings, clock, variant: chosen, note }: KernelTuning,
): string {
  const width = Math.max(...times.map(({ variant }) => variant.length));
  const lines = times
    .toSorted((left, right) => (left.milliseconds ?? Infinity) - (right.milliseconds ?? Infinity))
    .map(({ variant, milliseconds, problem }) => {
      if (milliseconds === null) return `    ${variant.padEnd(width)}  failed: ${problem ?? ''}`;
      const speed = ratings / milliseconds / 1e6;
      return `    ${variant.padEnd(width)}  ${milliseconds.toFixed(2).padStart(10)} ms  ${speed.toFixed(speed < 1 ? 4 : 2).padStart(8)} G ratings/s${variant === chosen ? '  chosen' : ''}`;
    });
  return [
    `\n  rank ${rank}, ${side}: ${formatCount(rows)} rows, ${formatCount(ratings)} ratings, by the ${clock === 'gpu' ? "GPU's" : "host's"} clock`,
    ...lines,
    ...(note === undefined ? [] : [`    ${note}`]),
  ].join('\n');
}
