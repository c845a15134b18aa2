import type { DatasetProfile, ColumnDescription, DatasetLayout } from '../../../api/inspect/inspect-files.ts';
import { textTable } from '../../../api/inspect/text-table.ts';
import { DataError, throwIfAborted, UsageError, publicPath } from '../../../engine/errors.ts';
import { counted, formatBytes, formatCount } from '../../../engine/format.ts';
import type { EventSink } from '../../../index.ts';
import { columnOptions, readOptions } from '../../options/data/data-options.ts';
import { parquetBackendOption } from '../../options/machine-options.ts';
import { refuseFlags } from '../../options/option.ts';
import { commonOptions } from '../../options/output-options.ts';
import { trainingOptions } from '../../options/training/training-options.ts';
import { facts } from '../../report/facts.ts';
import type { TrainingWarning } from '../../report/measured.ts';
import { nameFlags } from '../../report/name-flags.ts';
import { chosenRows, readWhole } from '../../sessions/open-session.ts';
import { defineCommand, type CommandResult, inputFiles, words } from '../command.ts';

const options = { ...columnOptions, ...readOptions, parquetBackend: parquetBackendOption, ...commonOptions };

export const command = defineCommand({
  summary: 'Describe a data set: files, columns, users, items, ratings; or a model',
  positionals: [words('ratings', `${inputFiles}; or the folder of a model`)],
  options,
  examples: [
    ['inspect ratings/', 'print files, row groups, columns with types and codecs; users, items and ratings'],
    ['inspect ratings/ --user-col userId --item-col movieId', 'name the columns'],
    ['inspect model', 'print rank, users, items, parameters and measures of a model'],
  ],
  epilog:
    'Users, items and ratings are counted where their columns have such names as user, item and rating, or are named by flags.',
  run: async ({ values, given, positionals }, { signal, onEvent, expect }) => {
    const [first, ...others] = positionals.ratings;
    const { inspectModel, isModelFolder } = await import('../../../api/inspect/model-folder.ts');
    if (await isModelFolder(first)) {
      if (others.length > 0)
        throw new UsageError(`${first} is a model, which is inspected alone`, {
          advice: 'Leave the other paths out',
        });
      const ofRatings = Object.keys(options).filter((name) => !(name in commonOptions));
      refuseFlags(given, ofRatings, `acts on ratings, and ${first} is a model`, 'Leave it out');
      const { modelInspection } = await import('../../report/model-inspection.ts');
      const model = await inspectModel(first);
      throwIfAborted(signal, 'read');
      return modelInspection(first, model);
    }
    const { inspectFiles, profileDataset } = await import('../../../api/inspect/inspect-files.ts');
    const { Session } = await import('../../../api/session.ts');
    await using session = Session.withoutDevices(
      { parquetBackend: values.parquetBackend },
      { oneVersion: true },
    );
    const files = await readWhole(session, positionals.ratings, values);
    const { layout, columns } = await inspectFiles(positionals.ratings, files, {
      signal,
      onEvent: (event) => void (event.type === 'warning' && onEvent(event)),
    });
    const dataset = await chosenRows(files, values);
    const isAsked = (['userCol', 'itemCol', 'ratingCol'] as const).some((key) => given.has(key));
    const { ratedPairsOf } = await import('../../../api/found-columns.ts');
    const found = await ratedPairsOf(dataset, {}, { events: onEvent, signal }).catch((error: unknown) => {
      if (!(error instanceof DataError) || isAsked) throw error;
      return error.summary;
    });
    if (typeof found === 'string') return inspectionResult({ layout, columns, missing: found });
    // Includes columns that --with computes.
    const { fields } = await dataset.schema({ signal });
    const missing = Object.values(found).filter((name) => !fields.some((field) => field.name === name));
    if (missing.length > 0 && !isAsked)
      return inspectionResult({
        layout,
        columns,
        missing: `there is no column ${missing.map((name) => `"${name}"`).join(', ')}`,
      });
    const names = found;

    let firstBadRow: string | undefined;
    const listen: EventSink = (event) => {
      if (event.type === 'warning' && event.code === undefined) firstBadRow ??= event.text;
      else onEvent(event);
    };
    expect('profile', layout.rows);
    const profile = await profileDataset(dataset, names, { signal, onEvent: listen });
    return inspectionResult({ layout, columns, names, firstBadRow, ...profile });
  },
});

interface Inspection {
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
function inspectionResult(inspection: Inspection): CommandResult {
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
