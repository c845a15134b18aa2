import { DataError } from '../../../engine/errors.ts';
import type { EventSink } from '../../../index.ts';
import { defineCommand } from '../command.ts';
import { inspectionResult } from '../../report/inspection.ts';
import { columnOptions } from '../../options/data/data-options.ts';
import { readOptions } from '../../options/data/text-options.ts';
import { parquetBackendOption } from '../../options/machine-options.ts';
import { readNamed } from '../../sessions/read-ratings.ts';
import { commonOptions } from '../../options/output-options.ts';

export const inspect = defineCommand({
  summary: 'Describe a data set: files, columns, users, items, ratings',
  positionals: [{ name: 'ratings', describe: 'files (Parquet, CSV, TSV, "::", NDJSON, Arrow), folders of them or quoted globs', required: true, many: true }],
  options: { ...columnOptions, ...readOptions, parquetBackend: parquetBackendOption, ...commonOptions },
  examples: [
    ['inspect ratings/', 'print files, row groups, columns with types and codecs; users, items and ratings'],
    ['inspect ratings/ --user-col userId --item-col movieId', 'name the columns'],
  ],
  epilog: 'Users, items and ratings are counted where their columns have such names as user, item and rating, or are named by flags.',
  run: async ({ values, given, positionals }, { signal, onEvent, expect }) => {
    const { inspectFiles, profileDataset } = await import('../../report/inspect-files.ts');
    const { Session } = await import('../../../api/session.ts');
    await using session = Session.withoutDevices({ parquetBackend: values.parquetBackend });
    const dataset = await readNamed(session, positionals.ratings, values);
    const { layout, columns } = await inspectFiles(positionals.ratings, dataset, { signal });
    const isAsked = (['userCol', 'itemCol', 'ratingCol'] as const).some((key) => given.has(key));
    const { ratedPairsOf } = await import('../../../api/found-columns.ts');
    const found = await ratedPairsOf(dataset, {}, { events: onEvent, signal }).catch((error: unknown) => {
      if (!(error instanceof DataError) || isAsked) throw error;
      return error.summary;
    });
    if (typeof found === 'string') return inspectionResult({ layout, columns, missing: found });
    const missing = Object.values(found).filter((name) => !columns.some((column) => column.name === name));
    if (missing.length > 0 && !isAsked) return inspectionResult({ layout, columns, missing: `there is no column ${missing.map((name) => `"${name}"`).join(', ')}` });
    const names = found;

    let firstBadRow: string | undefined;
    const listen: EventSink = (event) => {
      if (event.type === 'warning') firstBadRow ??= event.text;
      else onEvent(event);
    };
    expect('profile', layout.rows);
    const profile = await profileDataset(dataset, names, { signal, onEvent: listen });
    return inspectionResult({ layout, columns, names, firstBadRow, ...profile });
  },
});
