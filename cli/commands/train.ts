import type { Model } from '../../api/model.ts';
import { DeviceLostError } from '../../engine/errors.ts';
import { checkWritable } from '../output/check-output.ts';
import { refuseOverlap } from '../output/check-overlap.ts';
import { defineCommand } from './command.ts';
import { fitCheckpoints } from '../options/training/checkpoint-options.ts';
import { openSession } from '../sessions/open-session.ts';
import { checkTraining, trainOptions } from '../options/training/training-options.ts';
import { withPlan } from '../options/training/plan-file.ts';
import { withoutComparison } from '../report/beside-means.ts';
import { trainingResult } from '../report/training-report.ts';
import { trainerOf } from '../sessions/trainer.ts';
import { trainingSets } from '../sessions/training-sets.ts';

export const train = defineCommand({
  summary: 'Train a factor model on ratings',
  positionals: [{ name: 'ratings', describe: 'files (Parquet, CSV, TSV, "::", NDJSON, Arrow), folders of them or quoted globs, or - for stdin', required: true, many: true }],
  options: trainOptions,
  examples: [
    ['train ratings/ --model-dir model --rank 64 --test-fraction 0.1', 'measure the error on a tenth of the ratings'],
    ['train ratings.parquet --model-dir model --user-col userId --item-col movieId', 'name the columns'],
    ['train ratings/ --model-dir model --algorithm sgd --rank 64', 'by stochastic gradient descent'],
    ['train new-ratings/ --init-model model --model-dir updated', 'go on from a model with new ratings'],
    ['train ratings/ --model-dir model --plan plan.json', 'run a plan that plan --json printed'],
    ['train ratings/ --model-dir model --checkpoint-dir checkpoints --resume', 'go on where a run that was stopped had its last checkpoint'],
    ['train ratings/ --model-dir model -c als.json --max-iter 20', 'flags win over the configuration'],
  ],
  epilog: 'The same ratings in any order, with the same seed and flags, give the same model bit for bit for any number of workers. SGD on the CPU does so for up to 4 workers or the same number, with --schedule wavefront for the same number, and with hogwild never; on a GPU only with wavefront.',
  run: async ({ values: flags, given: ofFlags, positionals }, context) => {
    const { values, given, plan } = withPlan(flags, ofFlags);
    const { modelDir, force } = values;
    checkTraining(values, given);
    // Begins before the engine is loaded and the threads of the CPU are busy.
    await using ahead = await (await import('../../api/devices/gpu-ahead.ts')).GpuAhead.begin(values);
    await refuseOverlap(modelDir, [...positionals.ratings, values.test, values.initModel]);
    await checkWritable(modelDir);
    const { checkModelDirectory } = await import('../../connectors/model/model-store.ts');
    await checkModelDirectory(modelDir, force);
    const trainer = await trainerOf(values, given);
    await using session = await openSession(values, context, true, ahead);
    const sets = await trainingSets(session, positionals.ratings, values, context);
    const { signal } = context;
    const onEvent = withoutComparison(context.onEvent);
    const ready = await trainer.prepare(session, sets.train, context);
    const model = await saveLostModel(ready.fit(sets.train, { validation: sets.test, signal, onEvent, ...fitCheckpoints(values), ...(plan === undefined ? {} : { plan }) }), modelDir, { overwrite: force, signal });
    // It ends while the model is written.
    if (values.report === undefined) session.closeGpus();
    await model.save(modelDir, { overwrite: force, signal });
    if (model.training === undefined) throw new Error('a model that was just trained has no report');
    const run = {
      model,
      training: model.training,
      adapter: session.device.adapter,
      modelDir,
      updated: values.initModel !== undefined,
      resume: values.resume,
      options: trainOptions,
      // Counted from the start of the process.
      totalSeconds: performance.now() / 1000,
      peakRssBytes: process.resourceUsage().maxRSS * 1024,
    };
    if (values.report === undefined) return trainingResult(run);
    const { trainingPage } = await import('../report/training-page.ts');
    return { ...trainingResult(run), report: await trainingPage(run, sets.test, { signal, onBadRows: values.onBadRows }) };
  },
});

/** Gives the model of `fit`. When the GPU is lost on the way, throws an error that names the last checkpoint or, without one, the folder that the last copy of the model is saved in (exit 5). */
export async function saveLostModel(fit: Promise<Model>, directory: string, options: { readonly overwrite: boolean; readonly signal: AbortSignal }): Promise<Model> {
  try {
    return await fit;
  } catch (error) {
    const { LostTrainingError } = await import('../../api/training/lost-training.ts');
    if (!(error instanceof LostTrainingError)) throw error;
    const { model, iteration, cause, checkpoint } = error;
    const { summary } = cause as DeviceLostError;
    // The run that goes on from it gives the model.
    if (checkpoint !== undefined) throw new DeviceLostError(`${summary}; the last checkpoint is ${checkpoint}`, { phase: 'train', advice: 'Go on from it with --resume, also with --device cpu', cause });
    await model.save(directory, options);
    throw new DeviceLostError(`${summary}; the model of iteration ${iteration} is saved in ${directory}`, { phase: 'train', advice: 'Train again, or use --device cpu', cause });
  }
}
