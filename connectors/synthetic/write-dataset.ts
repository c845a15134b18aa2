import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as eventLoopTurn } from 'node:timers/promises';
import { throwIfAborted } from '../../engine/errors.ts';
import { type EventSink, noEvents } from '../../engine/events.ts';
import { atomicOutput } from '../atomic-output.ts';
import { fileProblem } from '../file-problem.ts';
import { isDatasetEntry, ParquetSink, type WriteSummary } from '../parquet-sink.ts';
import { BatchChannel } from './batch-channel.ts';
import { findPreset, ratingParts, type RatingPart, type RatingPreset, scalePreset } from './preset.ts';
import { ratingSchema } from './rating-batch.ts';
import { generateRatings } from './rating-generator.ts';
import { type DegreeSummary, RatingStatistics, summarizeDegrees } from './rating-statistics.ts';
import { buildRatingTables, checkSeed, type RatingTables } from './rating-tables.ts';

/** Grows whenever the same preset and seed give other data than before. */
const GENERATOR_VERSION = 1;

const PROGRESS_MILLISECONDS = 100;

export interface GenerateDatasetOptions {
  /** A name from `presetNames`, or a preset of one's own. */
  readonly preset: string | RatingPreset;
  /** See `scalePreset`; 1 when left out. */
  readonly scale?: number;
  /** An integer from 0 below 2^53; 0 when left out. */
  readonly seed?: number;
  readonly output: string;
  /** Replace a data set that is there already. */
  readonly overwrite?: boolean;
  readonly signal?: AbortSignal;
  readonly onEvent?: EventSink;
}

/** dataset.json: all of it follows from preset, scale and seed. */
export interface DatasetDescription {
  readonly generator: number;
  readonly preset: string;
  readonly scale: number;
  readonly seed: number;
  readonly users: number;
  readonly items: number;
  /** Rows of each part. */
  readonly train: number;
  readonly test: number;
  /** RMSE over the test part of E[rating | planted signal]: the floor for any model, in units of the rating. */
  readonly bestTestRmse: number;
  readonly ratings: { readonly mean: number; readonly deviation: number };
  /** Ratings in both parts of the users and the items that have any. */
  readonly degrees: { readonly users: DegreeSummary; readonly items: DegreeSummary };
  /** What was asked of the generator, after scaling. */
  readonly shape: RatingPreset;
}

export interface GeneratedDataset {
  readonly description: DatasetDescription;
  readonly files: Readonly<Record<RatingPart, WriteSummary>>;
  readonly seconds: number;
}

/**
 * Writes output/train/part-*.parquet, output/test/part-*.parquet {user: int32, item: int32, rating: float32} and
 * output/dataset.json in one pass over the ratings. Memory holds one row group a part and arrays of users and items;
 * the same options give the same bytes. The folder appears whole or not at all.
 *
 * @throws UsageError for unknown presets, impossible scales or seeds, or output that may not be replaced; CancelledError.
 */
export async function generateDataset(options: GenerateDatasetOptions): Promise<GeneratedDataset> {
  const { scale = 1, signal, onEvent = noEvents } = options;
  const base = typeof options.preset === 'string' ? findPreset(options.preset) : options.preset;
  const shape = scalePreset(base, scale);
  const seed = checkSeed(options.seed ?? 0);
  throwIfAborted(signal, 'generate');
  const output = await atomicOutput(options.output, { kind: 'folder', overwrite: options.overwrite, recognizes });
  try {
    const started = performance.now();
    const rows = shape.train + shape.test;
    onEvent({ type: 'phase-start', phase: 'generate', total: rows, unit: 'ratings' });
    const statistics = new RatingStatistics(shape);
    const written = await writeParts(output.temporary, buildRatingTables(shape, seed), statistics, signal, onEvent);
    const description = describe(shape, scale, seed, statistics);
    await writeDescription(join(output.temporary, 'dataset.json'), description);
    await output.commit();
    const seconds = (performance.now() - started) / 1000;
    onEvent({ type: 'phase-end', phase: 'generate', seconds, done: rows, unit: 'ratings' });
    const files = { train: inPlace(written.train, options.output, 'train'), test: inPlace(written.test, options.output, 'test') };
    return { description, files, seconds };
  } catch (error) {
    throw await output.fail(error);
  }
}

/** One producer, two sinks that pull; whichever fails first ends all three. */
async function writeParts(folder: string, tables: RatingTables, statistics: RatingStatistics, signal: AbortSignal | undefined, onEvent: EventSink) {
  const channels = { train: new BatchChannel(ratingSchema), test: new BatchChannel(ratingSchema) };
  const context = { signal: signal ?? new AbortController().signal, events: noEvents };
  const write = (part: RatingPart) => new ParquetSink(join(folder, part)).consume(channels[part], context).finally(() => channels[part].leave());
  const sinks = Promise.allSettled([write('train'), write('test')]);
  let failure: unknown;
  try {
    await produce(channels, tables, statistics, signal, onEvent);
    for (const part of ratingParts) channels[part].end();
  } catch (error) {
    failure = error;
    for (const part of ratingParts) channels[part].fail(error);
  }
  const [train, test] = await sinks;
  if (failure !== undefined) throw failure;
  if (train.status === 'rejected') throw train.reason;
  if (test.status === 'rejected') throw test.reason;
  return { train: train.value, test: test.value };
}

/** Stops early when a sink is gone; the sink's own error tells why. */
async function produce(channels: Record<RatingPart, BatchChannel>, tables: RatingTables, statistics: RatingStatistics, signal: AbortSignal | undefined, onEvent: EventSink) {
  const { train, test } = tables.preset;
  let told = performance.now();
  for (const { part, batch, rowsSoFar } of generateRatings(tables, { statistics })) {
    throwIfAborted(signal, 'generate');
    if (!(await channels[part].put(batch))) return;
    // Without this turn no signal and no timer could fire while sinks keep up.
    await eventLoopTurn();
    if (performance.now() - told < PROGRESS_MILLISECONDS) continue;
    told = performance.now();
    onEvent({ type: 'phase-progress', phase: 'generate', done: rowsSoFar, total: train + test, unit: 'ratings' });
  }
}

function describe(shape: RatingPreset, scale: number, seed: number, statistics: RatingStatistics): DatasetDescription {
  const { users, items, train, test } = shape;
  const { bestTestRmse, ratings } = statistics;
  const degrees = { users: summarizeDegrees(statistics.userDegrees), items: summarizeDegrees(statistics.itemDegrees) };
  return { generator: GENERATOR_VERSION, preset: shape.name, scale, seed, users, items, train, test, bestTestRmse, ratings, degrees, shape };
}

async function writeDescription(file: string, description: DatasetDescription): Promise<void> {
  try {
    await writeFile(file, `${JSON.stringify(description, undefined, 2)}\n`);
  } catch (error) {
    throw fileProblem(error, 'write', file);
  }
}

/** The summary under the name that the folder has got by now. */
function inPlace(summary: WriteSummary, output: string, part: RatingPart): WriteSummary {
  return { ...summary, path: join(output, part) };
}

function recognizes(path: string): boolean {
  if (path === 'dataset.json') return true;
  const part = ratingParts.find((name) => path.startsWith(`${name}/`));
  if (part === undefined) return false;
  const inside = path.slice(part.length + 1);
  return inside === '' || isDatasetEntry(inside);
}
