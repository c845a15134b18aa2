/** docs/measured/published-tables.md: published tables with FactorFlow's rows, of scripts/reproduce/. */
import { flagWords, readRecord, type Recorded } from '../reproduce/command.ts';
import { publishedFiles } from '../reproduce/formats.ts';
import { describeLoad, describeRatings, type MeasuredRun } from '../reproduce/measure-run.ts';
import { attributesName, type MeasuredSet } from '../reproduce/reproduce.ts';
import { type PublishedRun, runs } from '../reproduce/runs.ts';
import { readSettings, settingsFile } from '../reproduce/search.ts';
import { type PublishedSet, publishedRows, sets } from '../reproduce/sets.ts';
import {
  cardFigure,
  cardPoints,
  coursesOf,
  iterationCells,
  publishedCells,
  resultCells,
  summaryCells,
  techniqueCells,
} from '../reproduce/tables.ts';
import { markdownTable } from './markdown.ts';

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
\`--attributes\` trains a second time, with the words or tags of the items, which DIR has as
\`citeulike-t/words.parquet\` (item, word, count) and \`citeulike-a/tags.parquet\` (item, tag).
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
  const origins = sets.map((set) => {
    const files = publishedFiles(set).map(({ name }) => `\`${name}\``);
    return `| \`${set.name}\` | ${files.join(', ')} | ${set.origin} |\n`;
  });
  return [introduction, ...origins, ...sets.map(setSection), runsIntroduction, ...runs.map(runSection)].join(
    '',
  );
}

function setSection(set: PublishedSet): string {
  const { source, rows } = publishedRows(set.name);
  const record = readRecord<MeasuredSet>(set.name);
  const withAttributes = readRecord<MeasuredSet>(attributesName(set.name));
  const own = (name: string, measured: MeasuredSet | undefined) =>
    measured
      ? [{ name: `**FactorFlow, ${name}rank ${measured.settings.rank}**`, values: measured.metrics }]
      : [];
  const table = markdownTable(
    resultCells([...rows, ...own('', record), ...own('with attributes, ', withAttributes)]),
  );
  return (
    `\n## ${set.title}\n\n${table}\nPublished rows: ` +
    `${source}.\n\n${record === undefined ? notMeasured(set) : measuredBy(set, record)}` +
    (withAttributes === undefined ? '' : `\n${attributesBy(set, withAttributes)}`)
  );
}

function attributesBy({ name, attributes }: PublishedSet, record: Recorded<MeasuredSet>): string {
  const { settings, users, machine, commit } = record;
  return (
    `    npm run reproduce -- ${name} --data DIR --attributes\n\nSettings: \`--implicit ` +
    `${flagWords(settings).join(' ')}\`; ${users.toLocaleString('en-US')} users. ${machine}, commit ${commit}. ` +
    `${attributes?.remark}\n`
  );
}

function notMeasured({ name }: PublishedSet): string {
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

/** Ratings of the preset at scale 1, as bench/results has them. */
const NETFLIX = 99_072_112;

const runsIntroduction = `
## Times on generated ratings

    npm run reproduce -- NAME [--scale X] [--device cpu|gpu]

repeats the experiments about time of the papers that FactorFlow implements. The ratings are generated, by
default all of them on a GPU and 0.02 of the users and ratings on a CPU, and every command is printed. Seconds
of an iteration are the median of those after the first.
`;

function runSection(run: PublishedRun): string {
  const record = readRecord<MeasuredRun>(run.name);
  const parts = [
    `\n### ${run.title}\n`,
    `${run.about}\n`,
    markdownTable(publishedCells(run)),
    ...(run.techniques === undefined
      ? []
      : [markdownTable(techniqueCells(run, record, cardFigure)), cardMachine(run)]),
    ...(run.cards === undefined ? [] : [cards(run)]),
    record === undefined ? unmeasured(run) : measured(run, record),
  ];
  return parts.join('\n');
}

function cards({ cards = [] }: PublishedRun): string {
  const found = cards.map((card) => ({ label: card.label, ...cardPoints(card) }));
  const courses = found.map(({ label, points }) => ({ label, points, ratings: NETFLIX }));
  const sources = [...new Set(found.map(({ result: { id, date } }) => `\`${id}\` of ${date}`))];
  return (
    `On one NVIDIA H200, all ratings of the preset (bench/results, ${sources.join(', ')}; evaluation not ` +
    `counted):\n\n${markdownTable(summaryCells(courses))}`
  );
}

function cardMachine({ techniques = [] }: PublishedRun): string {
  const found = techniques.flatMap(({ card }) => card?.result ?? []);
  const ids = [...new Set(found)].map((id) => `\`${id}\``).join(' and ');
  return `The card is one NVIDIA H200; ${ids} are results of bench/results/als-techniques.json.\n`;
}

function unmeasured({ name }: PublishedRun): string {
  return `On a CPU not run yet: \`npm run reproduce -- ${name}\`.\n`;
}

function measured(run: PublishedRun, record: Recorded<MeasuredRun>): string {
  const { machine, commit, device, ratings, variants } = record;
  const flags = variants.map(({ label, flags }) => `- ${label}: \`train ${flags}\`\n`).join('');
  return (
    `    npm run reproduce -- ${run.name}\n\n` +
    `on the ${device.kind === 'gpu' ? 'GPU' : 'CPU'} (${device.description}), ` +
    `${describeRatings(run.preset, ratings)}. ${machine}, commit ${commit}. ` +
    `${describeLoad(record)}\n\n${flags}\n` +
    `${markdownTable(summaryCells(coursesOf(record)))}\n${markdownTable(iterationCells(record))}`
  );
}
