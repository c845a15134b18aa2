import type { OpeningDevices } from '../../api/devices/open-devices.ts';
import type { FitOptions } from '../../api/fit-options.ts';
import type { Model } from '../../api/model.ts';
import { checkWritable } from '../../api/output/check-output.ts';
import { refuseOverlap } from '../../api/output/check-overlap.ts';
import { DeviceLostError } from '../../engine/errors.ts';
import type { JsonObject } from '../../index.ts';
import type { CommandContext, CommandResult } from '../commands/command.ts';
import { readNames } from '../options/data/name-options.ts';
import {
  fitCheckpoints,
  type TrainCommandValues,
  trainOptions,
} from '../options/training/training-options.ts';
import { type CheckedSink, openOutput } from '../output/write-output.ts';
import { withoutVerdict } from '../report/measured.ts';
import { peakMemoryBytes, trainingResult } from '../report/training-report.ts';
import { openSession } from './open-session.ts';
import { trainerOf, trainingSets } from './trainer.ts';

/** A `train` command with checked flags. */
export interface TrainingRun {
  readonly values: TrainCommandValues;
  readonly given: ReadonlySet<string>;
  readonly plan?: JsonObject | undefined;
  /** Paths of the ratings. */
  readonly ratings: readonly string[];
  readonly opening: OpeningDevices;
}

/** Checks files and folders, trains, and saves the model. */
export async function runTraining(
  { values, given, plan, ratings, opening }: TrainingRun,
  context: CommandContext,
): Promise<CommandResult> {
  const { modelDir, force } = values;
  const testSink = await openOutputs(values, ratings);
  const trainer = await trainerOf(values, given);
  await using session = await openSession(values, context, {
    opening,
    once: values.report === undefined,
  });
  const names = await readNames(session, values, context, { itemCol: values.itemCol });
  const sets = await trainingSets(session, ratings, values, context);
  const { signal } = context;
  const onEvent = withoutVerdict(context.onEvent);
  const ready = await trainer.prepare(session, sets.train, context);
  const model = await saveLostModel(
    ready.fit(sets.train, {
      validation: sets.test,
      ...rankingOf(values),
      signal,
      onEvent,
      ...fitCheckpoints(values),
      ...(plan === undefined ? {} : { plan }),
    }),
    modelDir,
    { overwrite: force, signal },
  );
  await model.save(modelDir, { overwrite: force, signal });
  const heldOut = testSink && sets.test && (await sets.test.runInto(testSink, { signal, onEvent }));
  if (model.training === undefined) throw new Error('a model that was just trained has no report');
  const run = {
    model,
    training: model.training,
    adapter: session.device.adapter,
    modelDir,
    updated: values.initModel !== undefined,
    resume: values.resume,
    heldOut,
    options: trainOptions,
    // Counted from the start of the process.
    totalSeconds: performance.now() / 1000,
    peakRssBytes: peakMemoryBytes(),
  };
  if (values.report === undefined) return trainingResult(run);
  if (names !== undefined) {
    const { noteMatch } = await import('../../api/serving/name-columns.ts');
    noteMatch(names, model.itemArrays.ids, onEvent);
  }
  const { trainingPage } = await import('../report/training-page.ts');
  return {
    ...trainingResult(run),
    report: await trainingPage(run, { ...sets, names, signal, onBadRows: values.onBadRows }),
  };
}

/**
 * Checks that the model and the held-out ratings can be written; returns the output of the held-out ratings.
 */
async function openOutputs(
  { modelDir, force, test, testOutput, initModel }: TrainCommandValues,
  ratings: readonly string[],
): Promise<CheckedSink | undefined> {
  await refuseOverlap(modelDir, [...ratings, test, initModel]);
  await checkWritable(modelDir);
  const { checkModelDirectory } = await import('../../api/inspect/model-folder.ts');
  await checkModelDirectory(modelDir, force);
  if (testOutput === undefined) return undefined;
  return openOutput(testOutput, { force, json: false, to: undefined }, [...ratings, initModel]);
}

/** The ranking options of `fit`; updating a model has none. */
function rankingOf({
  initModel,
  ranking,
  rankUsers,
}: TrainCommandValues): Pick<FitOptions, 'ranking' | 'rankUsers'> {
  return initModel === undefined ? { ranking, rankUsers } : {};
}

/**
 * Returns the model of `fit`. If the GPU is lost, throws an error that names the last checkpoint or, without
 * one, the folder where the last copy of the model was saved (exit 5).
 */
export async function saveLostModel(
  fit: Promise<Model>,
  directory: string,
  options: { readonly overwrite: boolean; readonly signal: AbortSignal },
): Promise<Model> {
  try {
    return await fit;
  } catch (error) {
    const { LostTrainingError } = await import('../../api/training/lost-training.ts');
    if (!(error instanceof LostTrainingError)) throw error;
    const { model, iteration, cause, checkpoint } = error;
    const { summary } = cause as DeviceLostError;
    // A resumed run will produce the model.
    if (checkpoint !== undefined)
      throw new DeviceLostError(`${summary}; the last checkpoint is ${checkpoint}`, {
        phase: 'train',
        advice: 'Continue from it with --resume, also with --device cpu',
        cause,
      });
    await model.save(directory, options);
    throw new DeviceLostError(`${summary}; the model of iteration ${iteration} is saved in ${directory}`, {
      phase: 'train',
      advice: 'Train again, or use --device cpu',
      cause,
    });
  }
}
