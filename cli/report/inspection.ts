import { textTable } from '../../api/inspect/text-table.ts';
import { publicPath } from '../../engine/errors.ts';
import { counted, formatBytes, formatCount } from '../../engine/format.ts';
import type { DatasetProfile } from '../../api/inspect/inspect-files.ts';
import type { TrainingWarning } from './measured.ts';
import type { CommandResult } from '../commands/command.ts';
import type { ColumnDescription, DatasetLayout } from '../../api/inspect/dataset-layout.ts';
import { trainingOptions } from '../options/training/training-options.ts';
import { facts } from './facts.ts';
import { nameFlags } from './name-flags.ts';

export interface Inspection {
  readonly layout: DatasetLayout;
  readonly columns: readonly ColumnDescription[];
  /** The reason why columns were not found; there is no summary then. */
  readonly missing?: string;
  readonly names?: { readonly user: string; readonly item: string; readonly rating: string };
  readonly summary?: DatasetProfile['summary'];
  readonly badRows?: number;
  /** The number of bad rows and the place of the first, as text. */
  readonly firstBadRow?: string | undefined;
  readonly warnings?: readonly TrainingWarning[];
}

/** The result of `inspect`. */
export function inspectionResult(inspection: Inspection): CommandResult {
  const { layout, columns, names, summary, badRows, warnings = [] } = inspection;
  const { rows, files, rowGroups, bytes } = layout;
  const stored = { rows, files, rowGroups, bytes, columns: columns.map((column) => ({ ...column })) };
  const counted = summary && {
    users: summary.users,
    items: summary.items,
    ratings: summary.ratings,
    density: densityOf(summary),
    userDegrees: { ...summary.userDegrees },
    itemDegrees: { ...summary.itemDegrees },
    rating: summary.rating ? { ...summary.rating } : null,
    badRows,
    warnings: warnings.map(({ code, text }) => ({ code, text: nameFlags(text, trainingOptions) })),
  };
  return {
    json: { command: 'inspect', ...stored, ...(names ? { names: { ...names } } : {}), ...counted },
    text: inspectionText(inspection),
  };
}

function inspectionText({
  layout,
  columns,
  missing,
  names,
  summary,
  firstBadRow,
  warnings = [],
}: Inspection): string {
  const { paths, files, bytes, rows, rowGroups } = layout;
  const head = `${paths.map(publicPath).join(', ')}: ${counted(rows, 'row')} in ${counted(files, 'file')}, ${rowGroups === 0 ? '' : `${counted(rowGroups, 'row group')}, `}${formatBytes(bytes)}`;
  const parts = [head, columnTable(columns, rows > 0)];
  if (missing !== undefined) {
    parts.push(
      `${missing[0].toUpperCase()}${missing.slice(1)}. To count users, items and ratings, name the columns with --user-col, --item-col and --rating-col.`,
    );
  }
  if (summary !== undefined && names !== undefined) {
    const { users, items, ratings, userDegrees, itemDegrees, rating } = summary;
    const lines: (readonly [string, string | undefined])[] = [
      ['users', `${formatCount(users)} in "${names.user}"; ratings of one: ${degrees(userDegrees)}`],
      ['items', `${formatCount(items)} in "${names.item}"; ratings of one: ${degrees(itemDegrees)}`],
      ['ratings', `${formatCount(ratings)}; ${(100 * densityOf(summary)).toPrecision(3)} % of all pairs`],
      [
        'values',
        rating &&
          `${number(rating.least)} to ${number(rating.most)} in "${names.rating}", mean ${number(rating.mean)}, standard deviation ${number(rating.deviation)}`,
      ],
      ['bad rows', firstBadRow],
    ];
    parts.push(facts(lines), ...warnings.map(({ text }) => `warning: ${nameFlags(text, trainingOptions)}`));
  }
  return parts.join('\n');
}

/** Most columns of the table: its layout takes quadratic time. */
const MOST_COLUMNS = 200;

function columnTable(columns: readonly ColumnDescription[], hasRows: boolean): string {
  const table = textTable(
    {
      head: ['column', 'type', 'nulls', 'codec', 'stored'],
      colAligns: ['left', 'left', 'left', 'left', 'right'],
    },
    columns
      .slice(0, MOST_COLUMNS)
      .map(({ name, type, nullable, codecs, bytes }) => [
        name,
        type,
        nullable ? 'allowed' : 'none',
        codecs.join(', ') || (hasRows ? "folder's name" : ''),
        bytes === 0 ? '' : formatBytes(bytes),
      ]),
  );
  const rest = columns.length - MOST_COLUMNS;
  return rest <= 0 ? table : `${table}\n  and ${counted(rest, 'other column')}; --json has all`;
}

function densityOf({ users, items, ratings }: DatasetProfile['summary']): number {
  return users * items === 0 ? 0 : ratings / (users * items);
}

function degrees({ least, median, mean, most }: DatasetProfile['summary']['userDegrees']): string {
  return `${formatCount(least)} to ${formatCount(most)}, median ${formatCount(median)}, mean ${mean.toFixed(1)}`;
}

function number(value: number): string {
  return String(Number(value.toPrecision(5)));
}
