import { checkTraining, trainOptions, withPlan } from '../options/training/training-options.ts';
import { defineCommand, inputFiles, words } from './command.ts';

export const command = defineCommand({
  summary: 'Train a factor model on ratings',
  positionals: [words('ratings', `${inputFiles}, or - for stdin`)],
  options: trainOptions,
  examples: [
    [
      'train ratings/ --model-dir model --rank 64 --test-fraction 0.1',
      'measure the error on a tenth of the ratings',
    ],
    ['train ratings.parquet --model-dir model --user-col userId --item-col movieId', 'name the columns'],
    ['train ratings/ --model-dir model --algorithm sgd --rank 64', 'by stochastic gradient descent'],
    ['train new-ratings/ --init-model model --model-dir updated', 'update a model with new ratings'],
    ['train ratings/ --model-dir model --plan plan.json', 'run a plan that plan --json printed'],
    [
      'train ratings/ --model-dir model --checkpoint-dir checkpoints --resume',
      'continue a stopped run from its last checkpoint',
    ],
    ['train ratings/ --model-dir model -c als.json --max-iter 20', 'flags win over the configuration'],
  ],
  epilog:
    'The same ratings in any order, with the same seed and flags, give the same model bit for bit for any number of workers. SGD on the CPU does so for up to 4 workers or the same number, with --schedule wavefront for the same number, and with hogwild never; on a GPU only with wavefront.',
  run: async ({ values: flags, given: ofFlags, positionals }, context) => {
    const { values, given, plan } = await withPlan(flags, ofFlags);
    checkTraining(values, given);
    // A GPU starts to open before the rest of the command is loaded. Its thread starts before the CPU's
    // threads: started in parallel with many others, it takes twice as long.
    const { OpeningDevices } = await import('../../api/devices/open-devices.ts');
    await using opening = new OpeningDevices({ ...values, loads: 'read-ratings', signal: context.signal });
    const { runTraining } = await import('../sessions/run-training.ts');
    opening.openCpu();
    return await runTraining({ values, given, plan, ratings: positionals.ratings, opening }, context);
  },
});
