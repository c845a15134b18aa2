import { counted, formatBytes, formatCount } from '../../../engine/format.ts';
import { pairColumnOptions, readOptions } from '../../options/data/data-options.ts';
import { choice, requiredText } from '../../options/kinds.ts';
import { grouped } from '../../options/option.ts';
import { escapeFormulasOption, writingOptions } from '../../options/output-options.ts';
import { openOutput, OUTPUT_DESCRIPTION, summaryOf } from '../../output/write-output.ts';
import { seconds3 } from '../../progress/phrases.ts';
import { knownRows, openSession, readNamed } from '../../sessions/open-session.ts';
import { defineCommand, modelFolder, words } from '../command.ts';

export const command = defineCommand({
  summary: 'Predict the ratings of pairs of users and items',
  positionals: [
    modelFolder,
    words(
      'pairs',
      "rows with the model's user and item columns, others are passed on: files, folders, quoted globs, or - for stdin",
    ),
  ],
  options: {
    ...grouped('Required:', {
      output: requiredText(OUTPUT_DESCRIPTION),
    }),
    ...pairColumnOptions,
    ...readOptions,
    coldStart: choice('rows with unknown users or items: NaN, or left out', {
      choices: ['nan', 'drop'],
      defaultText: "the model's",
    }),
    escapeFormulas: escapeFormulasOption,
    ...writingOptions,
  },
  examples: [
    [
      'predict model pairs.parquet --output predictions --cold-start drop',
      'with an additional column "prediction"',
    ],
    ['predict model - --format csv --output - --to csv', 'pairs from stdin, predictions to stdout'],
  ],
  run: async ({ values, positionals }, { signal, onEvent, expect, profile }) => {
    const { output, coldStart } = values;
    const sink = await openOutput(output, values, [positionals.model[0], ...positionals.pairs]);
    await using session = await openSession(values, { signal, profile });
    const pairs = await readNamed(session, positionals.pairs, values);
    expect('write', (await knownRows(pairs)) ?? 0);
    const model = await session.loadModel(positionals.model[0], { signal, onEvent });
    const { countColdPairs } = await import('../../output/cold-pairs.ts');
    const { predictions, counts } = countColdPairs(
      pairs,
      (rows) => model.predict(rows, { coldStart }),
      model.columns.prediction,
    );
    const { rows, bytes, files } = await predictions.runInto(sink, { signal, onEvent });
    const { unknown, leftOut } = counts();
    const coldPairs = unknown + leftOut;
    const seconds = performance.now() / 1000;
    return {
      json: { command: 'predict', rows, coldPairs, files, bytes, seconds: { total: seconds }, output },
      text: summaryOf(output, [
        ['predictions', formatCount(rows)],
        [
          'cold pairs',
          coldPairs === 0
            ? '0'
            : `${formatCount(coldPairs)} with an unknown user or item (${leftOut > 0 ? 'left out' : 'NaN'})`,
        ],
        ['time', seconds3(seconds)],
        ['output', `${output} (${counted(files, 'file')}, ${formatBytes(bytes)})`],
      ]),
    };
  },
});
