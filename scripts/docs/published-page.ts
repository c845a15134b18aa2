/** docs/measured/published-tables.md: published tables with FactorFlow's rows, of scripts/reproduce/. */
import { type MeasuredSet, readRecord, type Recorded } from '../reproduce/record.ts';
import { markdownTable, publishedRows, resultCells } from '../reproduce/result-table.ts';
import { flagWords } from '../reproduce/run-command.ts';
import { type PublishedSet, sets } from '../reproduce/sets.ts';
import { readSettings, settingsFile } from '../reproduce/search.ts';
import { publishedRuns } from './published-runs.ts';

const introduction = `# Published tables by one command

    npm run reproduce -- NAME --data DIR

trains and evaluates implicit ALS on a published split, and prints the result next to the published rows. It
prints every \`factorflow\` command that it runs.
It downloads nothing: DIR has the files of one set as their authors publish them, or as Parquet
(\`train.parquet\`, \`test.parquet\` and, where items are ranked among candidates,
\`candidates.parquet\`, with the columns \`user\` and \`item\`). DIR may also have a folder for each set;
without \`--data\` it is the folder that the variable \`FACTORFLOW_DATA\` names. The command is run in the
project's folder: the package has no scripts. [Times on generated ratings](#times-on-generated-ratings) need
no files.

\`--search\` chooses the settings anew: on pairs held out of the training part it tries two forms of
weights, iALS's (w with λ (n_u + w n)) and Spark's (α with λ n^ν), with their parameters
together and each iteration, then larger ranks. The chosen settings are kept in
\`scripts/reproduce/settings/\`. The test part is ranked once, by the model of the final training.
\`npm run reproduce -- --help\` lists all flags.

Pairs of users and items without a training row count as misses. Before training, the command counts test
pairs that are in the training part and refuses them unless \`--allow-leaked\` is given
(they are then left out of the rankings). It counts repeated pairs, users and items without a training row,
and candidates that are test or training pairs. Candidates that are training pairs are left out, as in the
published tables,
or ranked with \`--seen-candidates keep\`; those that are test pairs are ranked once, as positives.

| NAME | files | from, terms |
|---|---|---|
`;

export function publishedPage(): string {
  const origins = sets.map(
    ({ name, files, origin }) =>
      `| \`${name}\` | ${files.names.map((file) => `\`${file}\``).join(', ')} | ${origin} |\n`,
  );
  return [introduction, ...origins, ...sets.map(section), publishedRuns()].join('');
}

function section(set: PublishedSet): string {
  const { source, rows } = publishedRows(set.name);
  const record = readRecord<MeasuredSet>(set.name);
  const own = record && { name: `**FactorFlow, rank ${record.settings.rank}**`, values: record.metrics };
  const table = markdownTable(resultCells(own === undefined ? rows : [...rows, own]));
  return (
    `\n## ${set.title}\n\n${table}\nPublished rows: ` +
    `${source}.\n\n${record === undefined ? unmeasured(set) : measuredBy(set, record)}`
  );
}

function unmeasured({ name }: PublishedSet): string {
  return `Not measured yet: \`npm run reproduce -- ${name} --data DIR --search\`.\n`;
}

function measuredBy({ name, remark }: PublishedSet, record: Recorded<MeasuredSet>): string {
  const { settings, trainSeconds, evaluateSeconds, users, machine, commit } = record;
  const command = `    npm run reproduce -- ${name} --data DIR\n`;
  const flags = `Settings: \`--implicit ${flagWords(settings).join(' ')}\`${choice(name)}.`;
  const seconds =
    `${trainSeconds.toFixed(1)} s training and ${evaluateSeconds.toFixed(1)} s evaluating ` +
    `${users.toLocaleString('en-US')} users, whole commands.`;
  return (
    `${command}\n${flags} ${seconds} ${machine}, commit ` +
    `${commit}.${remark === undefined ? '' : ` ${remark}`}\n`
  );
}

function choice(name: string): string {
  const chosen = readSettings(settingsFile(name))?.chosen;
  if (chosen === undefined) return '';
  const { trials, seconds, metric, validation } = chosen;
  return (
    `, the best of ${trials} tried in ${seconds.toLocaleString('en-US')} s, by ${metric} on the part ` +
    `that \`${validation}\` holds out`
  );
}
