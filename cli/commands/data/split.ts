import { checkWritable } from '../../../api/output/check-output.ts';
import { refuseOverlap } from '../../../api/output/check-overlap.ts';
import { UsageError } from '../../../engine/errors.ts';
import { counted, formatBytes, formatCount } from '../../../engine/format.ts';
import { pairColumnOptions, readOptions } from '../../options/data/data-options.ts';
import { checkSplit, splitOptions } from '../../options/data/held-out-options.ts';
import { requiredText } from '../../options/kinds.ts';
import { grouped } from '../../options/option.ts';
import { copyingOptions } from '../../options/output-options.ts';
import { seconds3 } from '../../progress/phrases.ts';
import { facts } from '../../report/facts.ts';
import { openSession } from '../../sessions/open-session.ts';
import { defineCommand, inputFiles, words } from '../command.ts';

const options = {
  ...grouped('Required:', {
    output: requiredText('folder that the parts are written to'),
  }),
  ...splitOptions,
  ...pairColumnOptions,
  ...readOptions,
  ...copyingOptions,
  to: { ...copyingOptions.to, defaultText: 'parquet, a folder of part files for each part' },
};

export const command = defineCommand({
  summary: 'Write the parts of ratings to train and to test on',
  positionals: [words('ratings', inputFiles)],
  options,
  examples: [
    [
      'split ratings/ --output parts --test-fraction 0.1',
      'parts/train and parts/test, as train --test-fraction 0.1 holds them out',
    ],
    [
      'split ratings/ --output parts --test-fraction 0.1 --validation-fraction 0.1 --test-by time',
      'the newest tenth, and the tenth before it',
    ],
    ['split ratings/ --output parts --test-leave-out 1 --test-by time', "each user's last rating"],
    [
      'split ratings/ --output parts --cold-items 0.1',
      'all ratings of a tenth of the items, to test on new ones',
    ],
    ['split ratings/ --output parts --before 2024-06-01', 'the rows before a day, and the rows after it'],
    [
      'split ratings/ --output parts --folds 5 --to csv',
      'parts/fold-1/train.csv, parts/fold-1/test.csv and so on',
    ],
  ],
  epilog: [
    'The parts do not depend on the order of rows. Repetitions of a pair stay together, except where rows are divided by time.',
    'The same ratings, flags and seed give the parts that train holds out. All columns are kept.',
  ].join(' '),
  run: async ({ values, given, positionals }, { signal, onEvent, profile }) => {
    checkSplit(values, given);
    const { output, to: format, codec, parquetBackend, escapeFormulas, workers, force: overwrite } = values;
    const writing = { format, codec, parquetBackend, escapeFormulas, overwrite };
    if (positionals.ratings.includes('-'))
      throw new UsageError('a split reads the ratings once for each part, and stdin can be read only once', {
        advice: 'Name a file',
      });
    await refuseOverlap(output, positionals.ratings);
    await checkWritable(output);
    const { checkPartsFolder, writeParts } = await import('../../../api/write-parts.ts');
    await checkPartsFolder(output, writing);
    await using session = await openSession({ device: 'cpu', workers, parquetBackend }, { signal, profile });
    const { openPairs, splitParts } = await import('../../sessions/split-parts.ts');
    const parts = await splitParts(
      await openPairs(session, positionals.ratings, values, { signal, onEvent }),
      values,
      { signal, onEvent },
    );
    const written = await writeParts(parts, output, { ...writing, signal, onEvent });
    const empty = written.filter(({ rows }) => rows === 0);
    if (empty.length > 0)
      onEvent({
        type: 'warning',
        text: `${empty.map(({ path }) => path).join(', ')} ${empty.length === 1 ? 'has' : 'have'} no rows`,
      });
    const seconds = performance.now() / 1000;
    return {
      json: {
        command: 'split',
        parts: written.map(({ rows, bytes, path }, at) => ({ name: parts[at].name, rows, bytes, path })),
        seconds: { total: seconds },
        output,
      },
      isSummary: true,
      text: facts([
        ...written.map(
          ({ rows, bytes, path }, at) =>
            [parts[at].name, `${counted(rows, 'row')}, ${path} (${formatBytes(bytes)})`] as const,
        ),
        ['time', `${seconds3(seconds)} in all, ${formatCount(written.length)} parts`],
      ]),
    };
  },
});
