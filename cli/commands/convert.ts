import { fileFormats } from '../../connectors/files/format-names.ts';
import { type TextType, textTypes } from '../../connectors/text/text-type.ts';
import { UsageError } from '../../engine/errors.ts';
import { formatBytes, formatCount } from '../../engine/format.ts';
import { defineCommand } from './command.ts';
import { choice, list, text, textOf, toggle } from '../options/kinds.ts';
import { parquetBackendOption } from '../options/machine-options.ts';
import type { Option } from '../options/option.ts';
import { codecOption, commonOptions, forceOption } from '../options/output-options.ts';
import { openOutput, STANDARD_STREAM, writeOutput } from '../output/write-output.ts';
import { seconds3 } from '../progress/phrases.ts';
import { facts } from '../report/facts.ts';
import { knownRows } from '../sessions/open-session.ts';

/** "user=int64,item=utf8" */
const columnTypesOption: Option<Readonly<Record<string, TextType>> | undefined> = {
  describe: `types of columns of a text input, such as user=int64,item=utf8 (${textTypes.join(', ')})`,
  group: 'Data:',
  fallback: undefined,
  read: (given, flag) => {
    const entries = textOf(given, flag).split(',').map((part) => part.split('='));
    return Object.fromEntries(
      entries.map(([name, type, ...more]) => {
        const known = textTypes.find((candidate) => candidate === type?.trim());
        if (known === undefined || name.trim() === '' || more.length > 0) throw new UsageError(`${flag} takes column=type with commas between, type one of ${list(textTypes)}, got "${textOf(given, flag)}"`);
        return [name.trim(), known];
      }),
    );
  },
};

const options = {
  from: choice({ describe: 'format of the input', group: 'Data:', choices: fileFormats, defaultText: "by the files' endings and first bytes" }),
  to: choice({ describe: 'format of the output', group: 'Output:', choices: fileFormats, defaultText: "by the output's ending" }),
  delimiter: text({ describe: 'delimiter between the fields of a text input, such as ";" or "::"', group: 'Data:', defaultText: 'by the first line' }),
  columns: text({ describe: 'names of the columns of a text without a header, with commas between them', group: 'Data:', isList: true }),
  noHeader: toggle({ describe: 'take the first row of the text input as data', group: 'Data:' }),
  types: columnTypesOption,
  codec: codecOption,
  parquetBackend: parquetBackendOption,
  force: forceOption,
  ...commonOptions,
};

export const convert = defineCommand({
  summary: 'Copy ratings into another format: Parquet, CSV, TSV, "::", Arrow',
  positionals: [{ name: 'paths', describe: 'inputs (files, folders, quoted globs, a URL of Parquet, - for stdin), then the output (a file, a folder for Parquet, - for stdout)', required: true, many: true }],
  options,
  examples: [
    ['convert ratings.csv ratings.parquet', 'header, delimiter and types are inferred'],
    ['convert ml-1m/ratings.dat ratings/ --types user=int64', 'write part files in a folder'],
    ['convert ratings/ - --to arrow', 'write an Arrow stream for the next program'],
  ],
  epilog: 'Types are inferred from the first 4 MiB of a text; give them where later values differ. Empty fields are nulls.',
  run: async ({ values, positionals }, { signal, onEvent, expect }) => {
    const started = performance.now();
    const { from, to, delimiter, columns, noHeader, types, codec, parquetBackend, force, json } = values;
    const output = positionals.paths.at(-1) ?? '';
    const inputs = positionals.paths.slice(0, -1);
    if (inputs.length === 0) throw new UsageError('convert needs an input and an output', { advice: 'See factorflow convert --help' });
    if (output === STANDARD_STREAM && json) throw new UsageError('--json and the output would both go to stdout', { advice: 'Name a file for the output, or leave --json out' });
    const sink = await openOutput(output, { format: to, codec, parquetBackend, force }, inputs);
    const { Session } = await import('../../api/session.ts');
    await using session = Session.withoutDevices({ parquetBackend });
    const rowsOf = { format: from, delimiter, columns: columns?.split(',').map((name) => name.trim()), header: noHeader ? false : undefined, types };
    const source = await session.read.any(inputs, rowsOf);
    expect('write', (await knownRows(source)) ?? 0);
    const { rows, bytes } = await writeOutput(source, sink, { signal, onEvent });
    const seconds = (performance.now() - started) / 1000;
    return {
      json: { command: 'convert', rows, bytes, seconds, output },
      text: output === STANDARD_STREAM ? '' : facts([['rows', formatCount(rows)], ['time', `${seconds3(seconds)}, ${formatCount(rows / seconds)} rows/s`], ['output', `${output} (${formatBytes(bytes)})`]]),
    };
  },
});
