import { choices } from '../../../api/check-objects.ts';
import { UsageError } from '../../../engine/errors.ts';
import { formatBytes, formatCount } from '../../../engine/format.ts';
import { rowOptions, readSpec, textOptions } from '../../options/data/data-options.ts';
import { choice } from '../../options/kinds.ts';
import { partitionByOption, copyingOptions } from '../../options/output-options.ts';
import { openOutput, summaryOf } from '../../output/write-output.ts';
import { seconds3 } from '../../progress/phrases.ts';
import { chosenRows, knownRows, openSession } from '../../sessions/open-session.ts';
import { defineCommand, words } from '../command.ts';

const options = {
  from: choice('format of the input', {
    choices: choices.formats,
    defaultText: "by the files' endings and first bytes",
  }),
  ...rowOptions,
  ...textOptions,
  partitionBy: partitionByOption,
  ...copyingOptions,
};

export const command = defineCommand({
  summary: 'Copy ratings into another format: Parquet, CSV, TSV, "::", NDJSON, Arrow',
  positionals: [
    words(
      'paths',
      'inputs (files, folders, quoted globs, a URL of Parquet, - for stdin), then the output (a file, a folder for Parquet, - for stdout)',
      { lastIsOutput: true },
    ),
  ],
  options,
  examples: [
    ['convert ratings.csv ratings.parquet', 'header, delimiter and types are inferred'],
    ['convert ml-1m/ratings.dat ratings/ --types user=int64', 'write part files in a folder'],
    ['convert ratings.jsonl.zst ratings.csv.lz4', 'NDJSON and text may be packed by gzip, zstd or lz4'],
    [
      `convert plays.csv liked.parquet --with "rating = log1p(plays)" --where "plays > 1"`,
      'compute columns and keep some of the rows',
    ],
    [
      'convert ratings.csv by-year/ --partition-by year',
      'write folders by-year/year=1999/ and so on, as Spark does; every command reads them back',
    ],
    ['convert ratings/ - --to arrow', 'write an Arrow stream for the next program'],
  ],
  epilog:
    'Types are inferred from the first 4 MiB of a text; give them where later values differ. Empty fields are nulls, and in columns of numbers also NA, NULL and the like.',
  run: async ({ values, positionals }, { signal, onEvent, expect, profile }) => {
    const started = performance.now();
    const { from, workers, parquetBackend } = values;
    const output = positionals.paths.at(-1) ?? '';
    const inputs = positionals.paths.slice(0, -1);
    if (inputs.length === 0)
      throw new UsageError('convert needs an input and an output', {
        advice: 'See factorflow convert --help',
      });
    const sink = await openOutput(output, values, inputs);
    await using session = await openSession({ device: 'cpu', workers, parquetBackend }, { signal, profile });
    const source = await chosenRows(
      await session.read.any(inputs, readSpec({ ...values, format: from })),
      values,
    );
    expect('write', (await knownRows(source)) ?? 0);
    const { rows, bytes } = await source.runInto(sink, { signal, onEvent });
    const seconds = (performance.now() - started) / 1000;
    return {
      json: { command: 'convert', rows, bytes, seconds, output },
      isSummary: true,
      text: summaryOf(output, [
        ['rows', formatCount(rows)],
        ['time', `${seconds3(seconds)}, ${formatCount(rows / seconds)} rows/s`],
        ['output', `${output} (${formatBytes(bytes)})`],
      ]),
    };
  },
});
