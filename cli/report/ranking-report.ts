import { formatCount } from '../../engine/format.ts';
import type { RankingEvaluation } from '../../index.ts';
import type { CommandResult } from '../commands/command.ts';
import { isVerdict } from './beside-means.ts';
import { facts } from './facts.ts';
import { trainingOptions } from '../options/training/training-options.ts';
import { rankedUsersText } from './held-out-ranking.ts';
import { nameFlags } from './name-flags.ts';
import { namedBaselines } from './named-baselines.ts';

/** The result of `evaluate --ranking`. */
export function rankingResult(found: RankingEvaluation): CommandResult {
  const { metrics, intervals, baselines, warnings, ...counts } = found;
  return {
    json: {
      command: 'evaluate',
      metrics,
      intervals,
      baselines: { ...baselines },
      ...counts,
      warnings: warnings.map(({ code, text }) => ({ code, text: nameFlags(text, trainingOptions) })),
    },
    text: rankingText(found),
  };
}

function rankingText({ metrics, intervals, baselines, warnings, ...counts }: RankingEvaluation): string {
  const columns: (readonly [title: string, of: (name: string) => string])[] = [
    ['metric', (name) => name],
    ['model', (name) => number(metrics[name])],
    ...(Object.keys(intervals).length > 0
      ? [
          [
            '95 %',
            (name: string) =>
              intervals[name] ? `${number(intervals[name][0])} to ${number(intervals[name][1])}` : '',
          ] as const,
        ]
      : []),
    ...namedBaselines(baselines).map(
      ([title, values]) => [title, (name: string) => number(values[name])] as const,
    ),
  ];
  const rows = [
    columns.map(([title]) => title),
    ...Object.keys(metrics).map((name) => columns.map(([, of]) => of(name))),
  ];
  const widths = columns.map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const table = rows
    .map((row) => `  ${row.map((cell, column) => cell.padEnd(widths[column])).join('  ')}`.trimEnd())
    .join('\n');
  const some = (count: number, text: string) => (count === 0 ? undefined : `${formatCount(count)} ${text}`);
  return [
    table,
    facts([
      [
        'users',
        `${rankedUsersText(counts)}${counts.coldUsers > 0 ? `; ${formatCount(counts.coldUsers)} others are unknown to the model` : ''}`,
      ],
      ['pairs', formatCount(counts.pairs)],
      ['cold pairs', some(counts.coldPairs, 'with a user or an item that the model does not know')],
      ['leaked pairs', some(counts.leakedPairs, 'are excluded as well; not ranked')],
      ['repeated pairs', some(counts.repeatedPairs, 'repeat another; ranked once')],
      ['irrelevant pairs', some(counts.irrelevantPairs, 'are rated below --min-rating')],
      ...candidateFacts(counts.candidates),
      [
        'unknown exclusions',
        some(counts.unknownExcluded, 'with a user or an item that the model does not know'),
      ],
    ]),
    ...warnings.filter(isVerdict).map(({ text }) => `warning: ${nameFlags(text, trainingOptions)}`),
  ].join('\n\n');
}

function candidateFacts(
  candidates: RankingEvaluation['candidates'],
): (readonly [name: string, value: string | undefined])[] {
  if (candidates === undefined) return [];
  const { pairs, coldPairs, excludedPairs, repeatedPairs, idlePairs, usersWithout } = candidates;
  const left = [
    [coldPairs, 'that the model does not know'],
    [excludedPairs, 'are excluded'],
    [repeatedPairs, 'repeat another'],
    [idlePairs, 'of users without a known test pair'],
  ] as const;
  const shown = left.flatMap(([count, text]) => (count === 0 ? [] : [`${formatCount(count)} ${text}`]));
  return [
    ['candidates', `${formatCount(pairs)}${shown.length === 0 ? '' : `; not ranked: ${shown.join(', ')}`}`],
    [
      'no candidates',
      usersWithout === 0 ? undefined : `${formatCount(usersWithout)} users, who are not measured`,
    ],
  ];
}

function number(value: number | undefined): string {
  if (value === undefined) return '-';
  return Number.isFinite(value) ? value.toFixed(4) : 'none';
}
