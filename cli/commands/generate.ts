import { presetNames } from '../../connectors/synthetic/preset.ts';
import { formatBytes, formatCount } from '../../engine/format.ts';
import { checkWritable } from '../check-output.ts';
import { defineCommand } from '../command.ts';
import { facts } from '../facts.ts';
import { decimal, requiredChoice, requiredText, wholeNumber } from '../options/kinds.ts';
import { commonOptions, forceOption } from '../options/output-options.ts';
import { seconds3 } from '../progress/phrases.ts';

export const generate = defineCommand({
  summary: 'Write a synthetic data set whose best reachable error is known',
  positionals: [],
  options: {
    preset: requiredChoice({ describe: `the data set whose shape it has: ${presetNames.join(', ')}`, group: 'Required:', choices: presetNames }),
    output: requiredText({ describe: 'folder to write train/, test/ and dataset.json to', group: 'Required:' }),
    scale: decimal({ describe: 'users and ratings grow with it, items with its square root', group: 'Data:', above: 0, fallback: 1 }),
    seed: wholeNumber({ describe: 'the same seed gives the same files', group: 'Data:', least: 0, most: Number.MAX_SAFE_INTEGER, fallback: 0 }),
    force: forceOption,
    ...commonOptions,
  },
  examples: [
    ['generate --preset movielens20m --output ml20m', '138,493 users, 27,278 items, 18 million ratings to train on and 2 million to test'],
    ['generate --preset movielens20m --scale 0.01 --output small', 'a hundredth of it'],
  ],
  run: async ({ values }, { signal, onEvent }) => {
    const { preset, output, scale, seed, force } = values;
    await checkWritable(output);
    const { generateDataset } = await import('../../connectors/synthetic/write-dataset.ts');
    const { description, files, seconds } = await generateDataset({ preset, scale, seed, output, overwrite: force, signal, onEvent });
    const { users, items, train, test, bestTestRmse } = description;
    const bytes = files.train.bytes + files.test.bytes;
    return {
      json: { command: 'generate', preset, scale, seed, users, items, train, test, bestTestRmse, bytes, seconds: { total: seconds }, output },
      text: facts([
        ['users', formatCount(users)],
        ['items', formatCount(items)],
        ['train', `${formatCount(train)} ratings in ${files.train.path}`],
        ['test', `${formatCount(test)} ratings in ${files.test.path}`],
        ['best RMSE', `${bestTestRmse.toFixed(4)}: what the planted signal leaves on the test ratings; no model can expect less`],
        ['time', `${seconds3(seconds)}, ${formatCount((train + test) / seconds)} ratings/s`],
        ['output', `${output} (${formatBytes(bytes)})`],
      ]),
    };
  },
});
