import { DataError, throwIfAborted, UsageError } from '../../../engine/errors.ts';
import type { EventSink } from '../../../index.ts';
import { defineCommand } from '../command.ts';
import { inspectionResult } from '../../report/inspection.ts';
import { columnOptions } from '../../options/data/data-options.ts';
import { readOptions } from '../../options/data/text-options.ts';
import { parquetBackendOption } from '../../options/machine-options.ts';
import { chosenRows, readWhole } from '../../sessions/read-ratings.ts';
import { flagName } from '../../options/option.ts';
import { commonOptions } from '../../options/output-options.ts';

const options = { ...columnOptions, ...readOptions, parquetBackend: parquetBackendOption, ...commonOptions };

export const inspect = defineCommand({
  summary: 'Describe a data set: files, columns, users, items, ratings; or a model',
  positionals: [
    {
      name: 'ratings',
      describe:
        'files (Parquet, CSV, TSV, "::", NDJSON, Arrow), folders of them or quoted globs; or the folder of a model',
      required: true,
      many: true,
    },
  ],
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
      const idle = Object.keys(options).find(
        (name) => given.has(name as keyof typeof options) && !(name in commonOptions),
      );
      if (idle !== undefined)
        throw new UsageError(`--${flagName(idle)} acts on ratings, and ${first} is a model`, {
          advice: 'Leave it out',
        });
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
