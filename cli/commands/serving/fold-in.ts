import { checkWritable } from '../../../api/output/check-output.ts';
import { refuseOverlap } from '../../../api/output/check-overlap.ts';
import { UsageError } from '../../../engine/errors.ts';
import { counted, formatCount } from '../../../engine/format.ts';
import { withAttributeFiles } from '../../options/data/attribute-options.ts';
import { columnOptions, policyOptions, readOptions } from '../../options/data/data-options.ts';
import { decimal, text } from '../../options/kinds.ts';
import { grouped, refuseFlags } from '../../options/option.ts';
import { writingOptions } from '../../options/output-options.ts';
import { type CheckedSink, openOutput, summaryOf } from '../../output/write-output.ts';
import { seconds3 } from '../../progress/phrases.ts';
import { openSession, readNamed } from '../../sessions/open-session.ts';
import { defineCommand, modelFolder, words } from '../command.ts';

const { onDuplicates, onBadRows } = policyOptions;

export const command = defineCommand({
  summary: 'Solve new users from their ratings',
  positionals: [
    modelFolder,
    words(
      'ratings',
      "ratings of the users, with the model's columns: files, folders, quoted globs, or - for stdin",
    ),
  ],
  options: {
    ...grouped('Output:', {
      output: text(
        "the users' factors (id, features): a .parquet or .arrow file; a folder of Parquet part files, without an ending; or - for stdout, with --to arrow",
      ),
      modelDir: text('folder for a model of these users and the unchanged items, for recommend and others'),
    }),
    regParam: decimal('λ for the users', { least: 0, defaultText: "the training's" }),
    userAttributes: text(
      "file with attributes of users, with the columns of the training's, to which the users are drawn",
    ),
    onDuplicates,
    onBadRows,
    ...columnOptions,
    ...readOptions,
    ...writingOptions,
  },
  examples: [
    ['fold-in model new-users.parquet --model-dir new-users', 'then recommend new-users --output recs'],
    ['fold-in model new-users.csv --output factors.parquet', 'their factors alone'],
  ],
  epilog:
    'Each user is solved by the equations of the training, to the residual of an exact solve, with the items as they are. Ratings of unknown items, and users who have no others, are counted and left out.',
  run: async ({ values, given, positionals }, { signal, onEvent, profile }) => {
    const { output, modelDir, force, regParam, onDuplicates: duplicates, onBadRows: badRows } = values;
    requireOutput(values, given);
    const inputs = [positionals.model[0], ...positionals.ratings];
    const sink = output === undefined ? undefined : await openFactors(output, values, inputs);
    if (modelDir !== undefined) {
      await refuseOverlap(modelDir, inputs);
      await checkWritable(modelDir);
    }
    await using session = await openSession(values, { signal, profile });
    const stored = await session.loadModel(positionals.model[0], { signal, onEvent });
    const model = await withAttributeFiles(stored, { user: values.userAttributes }, { signal, onEvent });
    const folded = await model.foldIn(await readNamed(session, positionals.ratings, values), {
      regParam,
      onDuplicates: duplicates,
      onBadRows: badRows,
      signal,
      onEvent,
    });
    const { users, withoutItems, ratings, coldRatings } = folded;
    if (modelDir !== undefined) await folded.model.save(modelDir, { overwrite: force, signal });
    if (sink !== undefined) await session.from([folded.model.userFactors]).runInto(sink, { signal, onEvent });
    const seconds = performance.now() / 1000;
    return {
      json: {
        command: 'fold-in',
        users,
        withoutItems,
        ratings,
        coldRatings,
        seconds: { total: seconds },
        ...(output === undefined ? {} : { output }),
        ...(modelDir === undefined ? {} : { model: modelDir }),
      },
      text: summaryOf(output ?? '', [
        [
          'users',
          `${formatCount(users)}${withoutItems === 0 ? '' : `; ${formatCount(withoutItems)} without a known item ${withoutItems === 1 ? 'is' : 'are'} left out`}`,
        ],
        [
          'ratings',
          `${formatCount(ratings)}${coldRatings === 0 ? '' : `; ${counted(coldRatings, 'rating')} of unknown items`}`,
        ],
        ['time', seconds3(seconds)],
        ...(output === undefined ? [] : ([['output', output]] as const)),
        ...(modelDir === undefined ? [] : ([['model', modelDir]] as const)),
      ]),
    };
  },
});

/** Throws UsageError if nothing would be written, and for a flag without effect. */
function requireOutput(
  { output, modelDir }: { readonly output?: string | undefined; readonly modelDir?: string | undefined },
  given: ReadonlySet<string>,
): void {
  if (output === undefined && modelDir === undefined)
    throw new UsageError('fold-in needs --output or --model-dir', {
      advice: 'Say where to write the factors, or a model of the users',
    });
  if (output === undefined) refuseFlags(given, ['codec', 'to'], 'acts only with --output', 'Leave it out');
}

/** An output for factors. Throws UsageError for a format that has no lists of numbers. */
async function openFactors(...[output, ...others]: Parameters<typeof openOutput>): Promise<CheckedSink> {
  const sink = await openOutput(output, ...others);
  if (['parquet-sink', 'arrow-sink'].includes(sink.name)) return sink;
  throw new UsageError(`--output ${output} cannot hold factors, which are lists of numbers`, {
    advice: 'Write Parquet or Arrow instead',
  });
}
