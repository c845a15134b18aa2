/** Part of docs/measured/published-tables.md: times on generated ratings, of scripts/reproduce/runs/. */
import { readRecord, type Recorded } from '../reproduce/record.ts';
import {
  cardFigure,
  cardPoints,
  coursesOf,
  iterationCells,
  publishedCells,
  summaryCells,
  techniqueCells,
} from '../reproduce/runs/run-cells.ts';
import { describeLoad, type MeasuredRun } from '../reproduce/runs/measure-run.ts';
import { type PublishedRun, runs } from '../reproduce/runs/runs.ts';
import { describeRatings } from '../reproduce/runs/reproduce-run.ts';
import { markdownTable } from '../reproduce/result-table.ts';

/** Ratings of the preset at scale 1, as bench/results has them. */
const NETFLIX = 99_072_112;

const introduction = `
## Times on generated ratings

    npm run reproduce -- NAME [--scale X] [--device cpu|gpu]

repeats the experiments about time of the papers that FactorFlow implements. The ratings are generated, by
default all of them on a GPU and 0.02 of the users and ratings on a CPU, and every command is printed. Seconds
of an iteration are the median of those after the first.
`;

export function publishedRuns(): string {
  return [introduction, ...runs.map(section)].join('');
}

function section(run: PublishedRun): string {
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
