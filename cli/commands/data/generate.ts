import { choices } from '../../../api/check-objects.ts';
import { checkWritable } from '../../../api/output/check-output.ts';
import { UsageError } from '../../../engine/errors.ts';
import { counted, formatBytes, formatCount } from '../../../engine/format.ts';
import type { GenerateDatasetOptions } from '../../../synthetic/dataset/generate-dataset.ts';
import {
  choice,
  decimal,
  list,
  option,
  requiredText,
  text,
  toggle,
  wholeNumber,
} from '../../options/kinds.ts';
import { machineOptions } from '../../options/machine-options.ts';
import { flagName, grouped, type Values } from '../../options/option.ts';
import { commonOptions, forceOption } from '../../options/output-options.ts';
import { seconds3 } from '../../progress/phrases.ts';
import { facts } from '../../report/facts.ts';
import { type CommandContext, type CommandResult, defineCommand } from '../command.ts';

/** Two whole numbers separated by a comma. */
const copiesOption = option(
  'write a grid of U x V copies, along users and along items, such as 160,20',
  { defaultText: '1,1' },
  'two whole numbers from 1, such as 100,1',
  (given) => {
    const match = typeof given === 'string' ? /^\s*(\d{1,9})\s*[,x]\s*(\d{1,9})\s*$/.exec(given) : null;
    const [users, items] = (match ?? []).slice(1).map(Number);
    return users >= 1 && items >= 1 ? { users, items } : undefined;
  },
);

const count = (describe: string, most = 2 ** 31 - 1) => wholeNumber(describe, { least: 1, most });

const options = {
  ...grouped('Required:', {
    preset: choice('the data set whose shape is imitated', { choices: choices.presets }),
    from: text('instead of --preset: ratings to copy, or a folder with train/ and test/'),
    users: count('users: with --items and --ratings a data set of that size, instead of --preset'),
    items: count('number of items, with --users'),
    ratings: count('ratings of the data set, with a tenth as test part', Number.MAX_SAFE_INTEGER),
    output: requiredText('folder to write train/, test/ and dataset.json to'),
  }),
  scale: decimal('factor of the number of users and ratings; items grow with its square root', {
    above: 0,
    fallback: 1,
  }),
  seed: wholeNumber('seed of the ratings; the same seed gives the same files', {
    least: 0,
    most: Number.MAX_SAFE_INTEGER,
    fallback: 0,
  }),
  timestamps: toggle('add a column of times, timestamp, in seconds since 1970'),
  copies: copiesOption,
  userCol: text('column of user ids in --from (int32 or int64)', { fallback: 'user' }),
  itemCol: text('column of item ids in --from', { fallback: 'item' }),
  workers: { ...machineOptions.workers, describe: 'threads; any number gives the same files' },
  force: forceOption,
  ...commonOptions,
};

const idColumns = ['userCol', 'itemCol'] as const;

export const command = defineCommand({
  summary: 'Write a synthetic data set whose best reachable error is known, or copies of one',
  positionals: [],
  options,
  examples: [
    [
      'generate --preset movielens20m --output ml20m',
      '138,493 users, 27,278 items, 18 million ratings to train on and 2 million to test',
    ],
    [
      'generate --preset netflix --scale 0.01 --output small',
      'a hundredth of the users and ratings of the Netflix Prize',
    ],
    [
      'generate --users 1e6 --items 50000 --ratings 1e8 --output any',
      'any size, with degrees and ratings like MovieLens',
    ],
    [
      'generate --from ratings/ --copies 100,1 --output large',
      'a hundred times the users, each with the ratings of the first',
    ],
  ],
  run: async ({ values, given }, context) => {
    const { preset, from, users, items, ratings, output } = values;
    const counts = [users, items, ratings].filter((value) => value !== undefined).length;
    if (Number(preset !== undefined) + Number(from !== undefined) + Number(counts > 0) !== 1)
      throw new UsageError('generate needs either --preset, or --users, --items and --ratings, or --from', {
        advice: 'Give one of them',
      });
    if (counts > 0 && counts < 3)
      throw new UsageError('a data set of a given size needs all of --users, --items and --ratings', {
        advice: 'Give all three',
      });
    const [origin, idle] =
      from !== undefined
        ? ['--from', ['scale', 'seed', 'timestamps'] as const]
        : preset !== undefined
          ? ['--preset', idColumns]
          : ['--users', ['scale', ...idColumns] as const];
    const useless = idle.filter((key) => given.has(key));
    if (useless.length > 0)
      throw new UsageError(
        `${list(useless.map((key) => `--${flagName(key)}`))} cannot be used with ${origin}`,
      );
    await checkWritable(output);
    if (from !== undefined) return copy({ ...values, from }, context);
    return generateOne(
      values,
      preset ?? { users: users ?? 0, items: items ?? 0, ratings: ratings ?? 0 },
      context,
    );
  },
});

type Given = Values<typeof options>;

async function generateOne(
  values: Given,
  preset: GenerateDatasetOptions['preset'],
  { signal, onEvent }: CommandContext,
): Promise<CommandResult> {
  const { scale, seed, timestamps, copies, workers, output, force } = values;
  const { generateDataset } = await import('../../../synthetic/dataset/generate-dataset.ts');
  const { description, files, seconds } = await generateDataset({
    preset,
    scale,
    seed,
    timestamps,
    copies,
    workers,
    output,
    overwrite: force,
    signal,
    onEvent,
  });
  const { users, items, train, test, bestTestRmse } = description;
  const bytes = files.train.bytes + files.test.bytes;
  const grid = description.copies && { copies: description.copies };
  return {
    json: {
      command: 'generate',
      preset: description.preset,
      scale,
      seed,
      ...grid,
      users,
      items,
      train,
      test,
      bestTestRmse,
      bytes,
      seconds: { total: seconds },
      output,
    },
    isSummary: true,
    text: facts([
      ['users', formatCount(users)],
      ['items', formatCount(items)],
      ['train', `${counted(train, 'rating')} in ${files.train.path}`],
      ['test', `${counted(test, 'rating')} in ${files.test.path}`],
      [
        'best RMSE',
        `${bestTestRmse.toFixed(4)}: the error of the planted signal itself on the test ratings; no model can expect less`,
      ],
      ['time', `${seconds3(seconds)}, ${formatCount((train + test) / seconds)} ratings/s`],
      ['output', `${output} (${formatBytes(bytes)})`],
    ]),
  };
}

async function copy(
  values: Given & { readonly from: string },
  { signal, onEvent }: CommandContext,
): Promise<CommandResult> {
  const { from, copies = { users: 1, items: 1 }, userCol, itemCol, workers, output, force } = values;
  const { copyDataset } = await import('../../../synthetic/copies/copy-dataset.ts');
  const { description, files, seconds } = await copyDataset({
    from,
    copies,
    userColumn: userCol,
    itemColumn: itemCol,
    workers,
    output,
    overwrite: force,
    signal,
    onEvent,
  });
  const { ratings, userSpan, itemSpan, bestTestRmse } = description;
  const bytes = Object.values(files).reduce((sum, part) => sum + part.bytes, 0);
  const rows = Object.fromEntries(
    Object.entries(files).map(([part, { rows }]) => [part === '' ? 'ratings' : part, rows]),
  );
  const best = bestTestRmse !== undefined && { bestTestRmse };
  return {
    json: {
      command: 'generate',
      from,
      copies: [copies.users, copies.items],
      ...rows,
      ratings,
      userSpan,
      itemSpan,
      ...best,
      bytes,
      seconds: { total: seconds },
      output,
    },
    isSummary: true,
    text: facts([
      [
        'copies',
        `${formatCount(copies.users)} along users, ids ${formatCount(userSpan)} apart; ${formatCount(copies.items)} along items, ids ${formatCount(itemSpan)} apart`,
      ],
      ...Object.values(files).map(({ path, rows }): [string, string] => [
        'ratings',
        `${formatCount(rows)} in ${path}`,
      ]),
      ...(bestTestRmse === undefined
        ? []
        : [['best RMSE', `${bestTestRmse.toFixed(4)}, as before`] as [string, string]]),
      ['time', `${seconds3(seconds)}, ${formatCount(ratings / seconds)} ratings/s`],
      ['output', `${output} (${formatBytes(bytes)})`],
    ]),
  };
}
